import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/**
 * A number for this process, its PostgreSQL, the processes that read documents and learn, the benchmark's client, and
 * the children of this process that have ended.
 */
type ByPart = { server: number; postgres: number; parsers: number; learning: number; client: number; ended: number };

const ticksPerSecond = 100;

type Part = keyof ByPart;
/** Its own time, and that of its children that have ended and been waited for. */
type Process = { id: number; parent: number; seconds: number; endedSeconds: number };

/** Reads the processor seconds of the tree, with that of its ended processes. */
export function readTimes(): ByPart {
  const times = noneOf();
  for (const { part, id, seconds, endedSeconds } of listTree()) {
    times[part] += seconds;
    times[id === process.pid ? 'ended' : part] += endedSeconds;
  }
  return times;
}

/** Reads the resident memory of the tree in MiB. Pages that processes share count once. */
export function readMemory(): ByPart {
  const memory = noneOf();
  for (const { part, id } of listTree()) {
    try {
      const pss = /^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${id}/smaps_rollup`, 'utf8'))?.[1];
      memory[part] += Number(pss ?? 0) / 1024;
    } catch {
      // The process has just ended.
    }
  }
  return memory;
}

/** Seconds of processor time of these processes and all of their children, including ended ones. */
export function cpuOfTree(roots: readonly number[]): number {
  const all = listProcesses();
  const wanted = new Set(roots);
  for (let size = -1; size !== wanted.size; ) {
    size = wanted.size;
    for (const { id, parent } of all) if (wanted.has(parent)) wanted.add(id);
  }
  return all
    .filter(({ id }) => wanted.has(id))
    .reduce((sum, { seconds, endedSeconds }) => sum + seconds + endedSeconds, 0);
}

/** The processes that were started with this directory, such as its PostgreSQL. */
export function postmasters(dataDir: string): number[] {
  return spawnSync('pgrep', ['-f', dataDir], { encoding: 'utf8' })
    .stdout.split('\n')
    .filter((line) => line !== '')
    .map(Number);
}

function noneOf(): ByPart {
  return { server: 0, postgres: 0, parsers: 0, learning: 0, client: 0, ended: 0 };
}

function listTree(): (Process & { part: Part })[] {
  const all = listProcesses();
  const tree: (Process & { part: Part })[] = [];
  const visit = (process: Process, part: Part) => {
    tree.push({ ...process, part });
    for (const child of all) if (child.parent === process.id) visit(child, part === 'server' ? partOf(child.id) : part);
  };
  const own = all.find(({ id }) => id === process.pid);
  if (own) visit(own, 'server');
  return tree;
}

function listProcesses(): Process[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (readProcess(Number(name)) ?? []) : []));
}

function partOf(id: number): Part {
  let command = '';
  try {
    command = readFileSync(`/proc/${id}/cmdline`, 'utf8');
  } catch {
    return 'parsers';
  }
  if (command.includes('postgres')) return 'postgres';
  if (command.includes('client.ts')) return 'client';
  return command.includes('learn') ? 'learning' : 'parsers';
}

function readProcess(id: number): Process | undefined {
  try {
    const fields = readFileSync(`/proc/${id}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    const [, parent, ...rest] = fields.map(Number);
    const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = rest.slice(9, 13);
    const [seconds, endedSeconds] = [user + system, endedUser + endedSystem].map((ticks) => ticks / ticksPerSecond);
    return { id, parent: parent ?? 0, seconds: seconds ?? 0, endedSeconds: endedSeconds ?? 0 };
  } catch {
    return undefined;
  }
}
