import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { AppError } from '../../errors.ts';
import { Lanes } from '../../lanes.ts';
import { programFile } from '../../program-file.ts';
import type { ThreadStarted } from './expression-entry.ts';
import type { ExpressionReply, ExpressionRequest, ThreadReady } from './expression-thread.ts';

/** A single app gets half of the threads; the others start once another app needs one. */
const threadsMax = 4;
const threadMemoryMb = 64;
const waitingMax = 10_000;
const checkMs = 100;
/**
 * If a thread's processor time is unknown, its work may take this many times as long by the wall clock; if it is known,
 * the square of that, for a thread that gets no processor.
 */
const wallFactor = 5;

type ThreadTask = {
  /** The app that the work belongs to. */
  lane: string;
  request: ExpressionRequest;
  /** The thread is terminated after this much processor time: running code may never check a clock. */
  killAfterMs: number;
};

type Task = ThreadTask & { resolve(reply: ExpressionReply): void };
type Thread = {
  worker: Worker;
  ready: Promise<void>;
  task: Task | undefined;
  /** The app that it last worked for. */
  lane: string | undefined;
  startedMs: number;
  processorMs: () => number | undefined;
  startedProcessorMs: number | undefined;
  timer: NodeJS.Timeout | undefined;
};

/** Runs tenants' expressions and schemas in threads. Each app waits in its own lane. */
export class ExpressionPool {
  readonly #threads: Thread[] = [];
  readonly #lanes = new Lanes<Task>({ slots: threadsMax, waitingMax });
  #closed = false;

  /** Throws AppError `unavailable` if too much work of this lane waits. */
  run(task: ThreadTask): Promise<ExpressionReply> {
    if (this.#closed) return Promise.resolve(closing);
    return new Promise((resolve, reject) => {
      if (!this.#lanes.add(task.lane, { ...task, resolve }))
        reject(
          new AppError('unavailable', 'Too many expressions are waiting. Try again in a moment.', {
            headers: { 'retry-after': '5' },
          }),
        );
      this.#dispatch();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const task of this.#lanes.drain()) task.resolve(closing);
    const threads = this.#threads.splice(0);
    for (const thread of threads) this.#finish(thread, closing);
    await Promise.all(threads.map(({ worker }) => worker.terminate()));
  }

  #dispatch(): void {
    for (let next = this.#lanes.take(); next; next = this.#lanes.take()) {
      void this.#begin(this.#threadFor(next.lane), next.item);
    }
  }

  /** The lane's previous thread, which is warm; otherwise a new one, or at the maximum that of another lane. */
  #threadFor(lane: string): Thread {
    const idle = this.#threads.filter(({ task }) => task === undefined);
    const own = idle.find((thread) => thread.lane === lane);
    if (own) return own;
    return this.#threads.length < threadsMax ? this.#start() : (idle[0] ?? this.#start());
  }

  async #begin(thread: Thread, task: Task): Promise<void> {
    thread.task = task;
    thread.lane = task.lane;
    await thread.ready;
    if (thread.task !== task) return;
    thread.startedMs = performance.now();
    thread.startedProcessorMs = thread.processorMs();
    thread.timer = setInterval(() => this.#endLate(thread, task), checkMs);
    thread.worker.postMessage(task.request);
  }

  #endLate(thread: Thread, { killAfterMs }: Task): void {
    const wallMs = performance.now() - thread.startedMs;
    const usedMs = thread.processorMs();
    const late =
      usedMs === undefined || thread.startedProcessorMs === undefined
        ? wallMs > killAfterMs * wallFactor
        : usedMs - thread.startedProcessorMs > killAfterMs || wallMs > killAfterMs * wallFactor ** 2;
    if (late) this.#replace(thread, { problem: 'took longer than its deadline', limit: true });
  }

  #finish(thread: Thread, reply: ExpressionReply): void {
    clearInterval(thread.timer);
    const { task } = thread;
    if (!task) return;
    thread.task = undefined;
    this.#lanes.release(task.lane, performance.now() - thread.startedMs);
    task.resolve(reply);
  }

  #replace(thread: Thread, reply: ExpressionReply): void {
    const at = this.#threads.indexOf(thread);
    if (at < 0) return;
    this.#threads.splice(at, 1);
    void thread.worker.terminate();
    this.#finish(thread, reply);
    if (!this.#closed) this.#dispatch();
  }

  #start(): Thread {
    const worker = new Worker(programFile('./expression-entry', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: threadMemoryMb, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
      env: {},
      execArgv: [],
      stdout: true,
      stderr: true,
    });
    const ready = Promise.withResolvers<void>();
    const thread: Thread = {
      worker,
      ready: ready.promise,
      task: undefined,
      lane: undefined,
      startedMs: performance.now(),
      processorMs: () => undefined,
      startedProcessorMs: undefined,
      timer: undefined,
    };
    worker.on('message', (reply: ExpressionReply | ThreadReady | ThreadStarted) => {
      if ('ready' in reply) return ready.resolve();
      if ('threadPath' in reply) {
        const { threadPath } = reply;
        if (threadPath !== undefined) thread.processorMs = () => readProcessorMs(threadPath);
        return;
      }
      this.#finish(thread, reply);
      this.#dispatch();
    });
    worker.on('error', (error) => {
      const memory = 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      const problem = memory ? `needs more than ${threadMemoryMb} MiB of memory` : 'ended its thread';
      this.#replace(thread, { problem, limit: true });
    });
    worker.on('exit', () => this.#replace(thread, { problem: 'ended its thread', limit: true }));
    worker.unref();
    this.#threads.push(thread);
    return thread;
  }
}

const closing: ExpressionReply = { problem: 'came while the server was closing' };

/** The processor time that a thread has used, which Linux reports at `/proc/<process>/task/<thread>`. */
function readProcessorMs(threadPath: string): number | undefined {
  try {
    return Number(readFileSync(`/proc/${threadPath}/schedstat`, 'utf8').split(' ', 1)[0]) / 1e6;
  } catch {
    return undefined;
  }
}
