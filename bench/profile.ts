import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The parts of a V8 profile that are read here: times in microseconds, and the function that was running at each. */
type Profile = {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[];
  samples: number[];
  timeDeltas: number[];
};

type Hot = { name: string; place: string; ms: number };

const root = fileURLToPath(new URL('..', import.meta.url));
const functionsShown = 30;
/** A process that worked for less only started something. */
const busyMsMin = 500;
/** The time in these is not work. */
const idle = new Set(['(idle)', '(program)', '(root)']);

/** Makes an empty directory for the profiles of a benchmark, and the environment in which its processes write them. */
export function startProfiles(name: string): { directory: string; env: Record<string, string> } {
  const directory = join(root, 'test', 'output', 'profiles', name);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const options = `${process.env.NODE_OPTIONS ?? ''} --cpu-prof --cpu-prof-dir=${directory}`.trim();
  return { directory, env: { NODE_OPTIONS: options } };
}

/** Writes `top.txt`: the functions in which each process spent the most time, the busiest process first. */
export function summarizeProfiles(directory: string): string {
  const processes = readdirSync(directory)
    .filter((name) => name.endsWith('.cpuprofile'))
    .map((name) => {
      const hot = listHot(JSON.parse(readFileSync(join(directory, name), 'utf8')) as Profile);
      return { name, hot, ms: hot.reduce((sum, one) => sum + one.ms, 0) };
    })
    .filter(({ ms }) => ms >= busyMsMin)
    .sort((a, b) => b.ms - a.ms);
  const text = processes
    .map(({ name, hot, ms }) => {
      const lines = hot
        .slice(0, functionsShown)
        .map((one) => `${((one.ms / ms) * 100).toFixed(1).padStart(5)} %  ${one.name}  ${one.place}`);
      return [`${name}: ${(ms / 1_000).toFixed(1)} s of work`, ...lines].join('\n');
    })
    .join('\n\n');
  writeFileSync(join(directory, 'top.txt'), `${text}\n`);
  return text;
}

/** The functions by the time spent in each itself, without those that it calls. */
function listHot({ nodes, samples, timeDeltas }: Profile): Hot[] {
  const frames = new Map(nodes.map((node) => [node.id, node.callFrame]));
  const hot = new Map<string, Hot>();
  for (const [i, id] of samples.entries()) {
    const frame = frames.get(id);
    if (frame === undefined || idle.has(frame.functionName)) continue;
    const file = frame.url.startsWith('file:') ? relative(root, fileURLToPath(frame.url)) : frame.url;
    const place = file === '' ? '' : `${file}:${frame.lineNumber + 1}`;
    const name = frame.functionName || '(anonymous)';
    const known = hot.get(`${name} ${place}`) ?? { name, place, ms: 0 };
    known.ms += Math.max(0, timeDeltas[i] ?? 0) / 1_000;
    hot.set(`${name} ${place}`, known);
  }
  return [...hot.values()].sort((a, b) => b.ms - a.ms);
}
