import { readdirSync, readFileSync } from 'node:fs';

/** A number for this process, its PostgreSQL, and the processes that read documents and learn. */
type ByPart = { server: number; postgres: number; parsers: number; learning: number };

const ticksPerSecond = 100;

type Part = keyof ByPart;
type Process = { id: number; parent: number; seconds: number };

/** Reads the processor seconds of the tree, with that of its ended processes. */
export function readTimes(): ByPart {
  const times = { server: 0, postgres: 0, parsers: 0, learning: 0 };
  for (const { part, seconds } of listTree()) times[part] += seconds;
  return times;
}

/** Reads the resident memory of the tree in MiB. Pages that processes share count once. */
export function readMemory(): ByPart {
  const memory = { server: 0, postgres: 0, parsers: 0, learning: 0 };
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

function listTree(): (Process & { part: Part })[] {
  const all = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (readProcess(Number(name)) ?? []) : []));
  const tree: (Process & { part: Part })[] = [];
  const visit = (process: Process, part: Part) => {
    tree.push({ ...process, part });
    for (const child of all) if (child.parent === process.id) visit(child, part === 'server' ? partOf(child.id) : part);
  };
  const own = all.find(({ id }) => id === process.pid);
  if (own) visit(own, 'server');
  return tree;
}

function partOf(id: number): Part {
  let command = '';
  try {
    command = readFileSync(`/proc/${id}/cmdline`, 'utf8');
  } catch {
    return 'parsers';
  }
  if (command.includes('postgres')) return 'postgres';
  return command.includes('learn') ? 'learning' : 'parsers';
}

/** Its own time and, except for the server, that of its children that have ended and been waited for. */
function readProcess(id: number): Process | undefined {
  try {
    const fields = readFileSync(`/proc/${id}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    const [, parent, ...rest] = fields.map(Number);
    const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = rest.slice(9, 13);
    const ended = id === process.pid ? 0 : endedUser + endedSystem;
    return { id, parent: parent ?? 0, seconds: (user + system + ended) / ticksPerSecond };
  } catch {
    return undefined;
  }
}
