import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { scanningThreadsMax } from '../../content/wide-scan.ts';
import { Slots } from '../../fairness/slots.ts';
import { AppError } from '../../lib/errors.ts';
import { programFile } from '../../lib/program-file.ts';
import { BorrowedMemory } from './shared.ts';
import { type Tasks, tasks } from './tasks.ts';
import type { ThreadReply } from './thread.ts';

/** A single app gets half of the threads, one for each processor; the others start once another app needs one. */
const threadsMax = Math.min(2 * availableParallelism(), scanningThreadsMax / 2);
/** Below this number of chunks, or of bytes of postings, a message to a thread takes longer than the work. */
const threadedSizeMin = 50_000;
/** A thread that has nothing to do for this long ends, and frees its memory. */
const idleMs = 30_000;
const triesMax = 2;
/** A small young generation: messages name shared memory, which is only freed when they are collected. */
const resourceLimits = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 512 };

type Thread = {
  worker: Worker;
  page: number;
  /** What waits for the reply. */
  task: { resolve(reply: ThreadReply): void; reject(error: unknown): void } | undefined;
  timer: NodeJS.Timeout | undefined;
};

class ThreadEnded extends Error {}

/**
 * Computes parts of searches in threads, so that a large source keeps neither other requests nor other searches waiting.
 * Threads share the memory of the index with this one. Each app waits in its own lane.
 */
export class ComputingThreads {
  readonly #sizeMin: number;
  readonly #program: string;
  readonly #slots = new Slots({ slots: threadsMax, tooMany });
  readonly #threads: Thread[] = [];
  /** The pages of threads that have not ended. */
  readonly #pages = new Set<number>();
  /** What is in a thread or waits for one. */
  readonly #running = new Set<Promise<unknown>>();
  #closed = false;

  /** Tests give all work to threads, or to another program. */
  constructor({ sizeMin = threadedSizeMin, program = programFile('./thread', import.meta.url) } = {}) {
    this.#sizeMin = sizeMin;
    this.#program = program;
  }

  /**
   * Runs a task: in a thread if its `size` (chunks or bytes) is large, otherwise here. If the thread ends, the task is
   * repeated in another. Throws AppError `unavailable` if too many tasks of this lane wait.
   */
  async run<Name extends keyof Tasks>(
    lane: string,
    size: number,
    name: Name,
    input: Parameters<Tasks[Name]>[0],
  ): Promise<ReturnType<Tasks[Name]>> {
    if (!this.isLarge(size)) return tasks[name](input as never) as ReturnType<Tasks[Name]>;
    const task = this.#slots.run(lane, async () => {
      for (let tries = 1; ; tries++)
        try {
          return (await this.#send({ name, input })) as ReturnType<Tasks[Name]>;
        } catch (error) {
          if (!(error instanceof ThreadEnded) || this.#closed || tries === triesMax) throw error;
        }
    });
    this.#running.add(task);
    try {
      return await task;
    } finally {
      this.#running.delete(task);
    }
  }

  /**
   * Memory for the input of tasks. Giving it back is safe at any time: what was running then still has it for itself,
   * whether or not the search has waited for it.
   */
  borrow(): BorrowedMemory {
    return new BorrowedMemory(() => Promise.allSettled(this.#running));
  }

  isLarge(size: number): boolean {
    return size >= this.#sizeMin;
  }

  /** Starts a thread for work of this size, if there is none, while the data that it needs is being read. */
  prepare(size: number): void {
    if (this.isLarge(size) && this.#threads.length === 0 && !this.#closed) this.#rest(this.#start());
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#threads.splice(0).map((thread) => this.#end(thread, new ThreadEnded('is closing'))));
  }

  async #send(task: { name: string; input: unknown }): Promise<unknown> {
    if (this.#closed) throw new ThreadEnded('The process is closing.');
    const thread = this.#threads.find((one) => one.task === undefined) ?? this.#start();
    clearTimeout(thread.timer);
    try {
      const reply = await new Promise<ThreadReply>((resolve, reject) => {
        thread.task = { resolve, reject };
        thread.worker.postMessage(task);
      });
      if ('error' in reply) throw new Error(`A search failed in its thread: ${reply.error}`);
      return reply.result;
    } finally {
      thread.task = undefined;
      if (this.#threads.includes(thread)) this.#rest(thread);
    }
  }

  #rest(thread: Thread): void {
    thread.timer = setTimeout(() => this.#drop(thread, new ThreadEnded('was idle')), idleMs).unref();
  }

  #start(): Thread {
    let page = 1;
    while (this.#pages.has(page)) page += 1;
    if (page >= scanningThreadsMax) throw new AppError('unavailable', 'Too many threads of searches are ending.');
    this.#pages.add(page);
    // This option of the process goes before the limits of threads. Its own heap keeps what it has started with.
    setFlagsFromString('--max-semi-space-size=0');
    const worker = new Worker(this.#program, { workerData: { page }, resourceLimits });
    const thread: Thread = { worker, page, task: undefined, timer: undefined };
    worker.on('message', (reply: ThreadReply) => thread.task?.resolve(reply));
    worker.on('error', (cause) => this.#drop(thread, new ThreadEnded('A thread of searches failed.', { cause })));
    worker.on('exit', () => this.#drop(thread, new ThreadEnded('A thread of searches ended.')));
    // A thread does not keep this process alive.
    worker.unref();
    this.#threads.push(thread);
    return thread;
  }

  #drop(thread: Thread, reason: Error): void {
    const at = this.#threads.indexOf(thread);
    if (at < 0) return;
    this.#threads.splice(at, 1);
    void this.#end(thread, reason);
  }

  async #end(thread: Thread, reason: Error): Promise<void> {
    clearTimeout(thread.timer);
    thread.task?.reject(reason);
    await thread.worker.terminate();
    this.#pages.delete(thread.page);
  }
}

function tooMany(): AppError {
  const message = 'Too many searches are waiting. Try again in a moment.';
  return new AppError('unavailable', message, { headers: { 'retry-after': '5' } });
}
