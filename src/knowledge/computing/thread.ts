import { parentPort, workerData } from 'node:worker_threads';
import { useScanPage } from '../../content/wide-scan.ts';
import { tasks } from './tasks.ts';

/** A task and its input; the reply has its result, or the message of its error. */
export type ThreadTask = { name: keyof typeof tasks; input: unknown };
export type ThreadReply = { result: unknown } | { error: string };

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
