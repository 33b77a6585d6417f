import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startProfiles, summarizeProfiles } from './profile.ts';
import { commitRatios, findWorse, type Ratios, ratiosVariable, readCommitted, readKept } from './ratios.ts';

/**
 * Runs benchmarks one after another, each in a separate process:
 *   node bench/run.ts                   all that need no external data
 *   node bench/run.ts kv files          these
 *   node bench/run.ts kv --seconds 5    one with its own options
 *   node bench/run.ts profile kv        one with its options, and where its processes spent their time
 *   node bench/run.ts --check           a short round of those with a bare baseline; names what got worse by over 15 %
 *   node bench/run.ts --record          the same, and writes bench/ratios.json, to which later rounds are compared
 * Each file in this folder says what it measures and against what; docs/performance.md holds the figures.
 */
const folder = fileURLToPath(new URL('.', import.meta.url));
const helpers = new Set(['run', 'support', 'ratios', 'processes', 'profile']);
/** These need a collection with ground truth or another checkout as an argument, or programs of their own. */
const needData = new Set(['extract-quality', 'pdf-structure', 'peers', 'retrieval', 'scripts', 'versions']);
/** What `--check` runs, about six minutes. */
const checked: Record<string, string[]> = {
  kv: ['--only', 'requests', '--seconds', '2', '--rounds', '3'],
  files: ['--megabytes', '100', '--rounds', '3', '--readers', '100'],
  limits: ['--seconds', '2', '--rounds', '5'],
  parse: [],
  ingest: [],
  automations: ['--only', 'runs'],
};

const all = readdirSync(folder)
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.slice(0, -'.ts'.length))
  .filter((name) => !helpers.has(name));
const [first, ...rest] = process.argv.slice(2);
if (first === '--check' || first === '--record') process.exitCode = await compare(first === '--record');
else if (first === 'profile') process.exitCode = await profileNamed(rest);
else process.exitCode = await runNamed();

async function runNamed(): Promise<number> {
  const named = first === undefined ? all.filter((name) => !needData.has(name)) : [first, ...rest.filter(isName)];
  const options = named.length === 1 ? rest : [];
  const unknown = named.filter((name) => !all.includes(name));
  if (unknown.length > 0) {
    console.error(`There is no benchmark ${unknown.join(', ')}. There are: ${all.join(', ')}.`);
    return 2;
  }
  let failed = 0;
  for (const name of named) {
    console.log(`\n# ${name}`);
    failed = (await runBenchmark(name, options)) || failed;
  }
  return failed;
}

/** Runs a benchmark whose processes write profiles, each of which browsers show as a flame graph. */
async function profileNamed([name = '', ...options]: string[]): Promise<number> {
  if (!all.includes(name)) {
    console.error(`Name a benchmark to profile: ${all.join(', ')}.`);
    return 2;
  }
  const { directory, env } = startProfiles(name);
  const code = await runBenchmark(name, options, env);
  console.log(`\n${summarizeProfiles(directory)}`);
  console.log(
    `\nThis list and the profiles are in ${directory}. The performance panel of Chromium shows a .cpuprofile file as a flame graph.`,
  );
  return code;
}

function isName(text: string): boolean {
  return all.includes(text);
}

/** A benchmark with worse ratios is run again, because a busy moment of the machine looks the same. */
async function compare(record: boolean): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'quarry-bench-ratios-'));
  const committed = readCommitted();
  const measured: Ratios = {};
  const failed: string[] = [];
  try {
    for (const [name, options] of Object.entries(checked)) {
      const run = async (round: number) => {
        const file = join(directory, `${name}-${round}`);
        writeFileSync(file, '');
        const code = await runBenchmark(name, options, { [ratiosVariable]: file });
        if (code !== 0) failed.push(`The benchmark ${name} ended with ${code}.`);
        for (const [key, ratio] of Object.entries(readKept(file)))
          measured[key] = Math.max(ratio, measured[key] ?? Number.NEGATIVE_INFINITY);
        return Object.keys(readKept(file));
      };
      console.log(`\n# ${name}`);
      const keys = await run(1);
      if (!record && findWorse(measured, committed).some((key) => keys.includes(key))) await run(2);
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  console.log('\nRatios to the bare baseline: committed, now');
  for (const [name, ratio] of Object.entries(measured))
    console.log(`${name.padEnd(44)} ${String(committed[name] ?? '–').padStart(6)} ${String(ratio).padStart(6)}`);
  if (record) {
    for (const failure of failed) console.error(failure);
    if (failed.length === 0) commitRatios(measured);
    return failed.length > 0 ? 1 : 0;
  }
  const problems = [
    ...failed,
    ...findWorse(measured, committed).map(
      (name) => `${name} got worse by more than 15 %: ${committed[name]}, now ${measured[name]}.`,
    ),
    ...Object.keys(committed)
      .filter((name) => !Object.hasOwn(measured, name))
      .map((name) => `${name} was not measured.`),
    ...Object.keys(measured)
      .filter((name) => !Object.hasOwn(committed, name))
      .map((name) => `${name} has no committed ratio: --record writes one.`),
  ];
  for (const problem of problems) console.error(problem);
  if (problems.length === 0) console.log('\nNothing got worse by more than 15 %.');
  return problems.length > 0 ? 1 : 0;
}

function runBenchmark(name: string, options: readonly string[], env: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(folder, `${name}.ts`), ...options], {
      stdio: 'inherit',
      env: { ...process.env, ...env },
    });
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}
