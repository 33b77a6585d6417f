import { readlinkSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { basename } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { useScanPage } from '../../content/wide-scan.ts';
import { tasks } from './tasks.ts';

/** A task and its input; the reply has its result, or the message of its error. */
export type ThreadTask = { name: keyof typeof tasks; input: unknown };
export type ThreadReply = { result: unknown } | { error: string };

/** Between the event loop, for which every request waits, and the processes that parse documents. */
const niceness = constants.priority.PRIORITY_BELOW_NORMAL / 2;

lowerPriority();
useScanPage((workerData as { page: number }).page);
parentPort?.on('message', ({ name, input }: ThreadTask) => {
  parentPort?.postMessage(run(name, input));
});

function run(name: ThreadTask['name'], input: unknown): ThreadReply {
  try {
    return { result: tasks[name](input as never) };
  } catch (error) {
    return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

/** Lowers the priority of this thread alone, which only Linux has. */
function lowerPriority(): void {
  try {
    const thread = Number(basename(readlinkSync('/proc/thread-self')));
    setPriority(thread, Math.min(constants.priority.PRIORITY_LOW, getPriority() + niceness));
  } catch {
    // Not permitted, or another system: the thread runs at normal priority.
  }
}
