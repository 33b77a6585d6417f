import { readdirSync, readFileSync } from 'node:fs';

/** The processes that a process has started. None if it has ended in the meantime. */
export function childrenOf(pid: number): number[] {
  let threads: string[] = [];
  try {
    threads = readdirSync(`/proc/${pid}/task`);
  } catch {
    // The process has ended in the meantime.
  }
  return threads.flatMap((thread) =>
    readProcessFile(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number),
  );
}

/** Empty if the process has ended in the meantime. */
export function readProcessFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** False if the process has ended in the meantime. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
