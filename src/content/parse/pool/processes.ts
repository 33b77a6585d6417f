import { Lanes } from '../../../fairness/lanes.ts';
import { AppError } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import { trace } from '../../../tracing/trace.ts';
import { ParseError } from '../types.ts';
import { findConfinement } from './confinement.ts';
import {
  KilledError,
  ownWorkerFile,
  ParserProcess,
  type PartWatch,
  type ProcessOptions,
  type TaskReply,
} from './process.ts';
import type { OnProgress, TaskFields } from './worker-loop.ts';

export type ProcessesOptions = {
  /**
   * The maximum number of concurrent documents of one lane; the same number is reserved for other lanes. One unused
   * process is kept ready and warm.
   */
  workers: number;
  /** The memory of one process (its whole resident set) in MiB. */
  memoryMb: number;
  /** The time limit for one document, from the moment a process has it. Preparing a text gets more, by its length. */
  deadlineMs: number;
  /** Directories that the processes may read, apart from their code. */
  directories: string[];
  log: Logger;
  /** Refuses documents and pictures where the system cannot keep parser processes from the network. */
  needsIsolation?: boolean;
  /** Replaces what the system was found to allow, in tests. */
  isIsolated?: () => boolean;
  /** A replacement of worker.ts, for tests. */
  workerFile?: string;
  /** The number of documents that may wait, half of them in one lane. Further ones are refused with `unavailable`. */
  queueMax?: number;
};

export type RunOptions = {
  signal?: AbortSignal;
  /** The app of the document. Lanes share the processes, so that none blocks another. */
  lane?: string;
};

export type ExecuteOptions = RunOptions & {
  deadlineMs?: number;
  /** For a long document of a job, which gets a process of its own. */
  isLong?: boolean;
  /** Called a few times a second with the pages read so far. */
  onProgress?: OnProgress;
  watch?: PartWatch;
};

/** The bytes for the task, and its other arguments as JSON. */
export type TaskInput = { bytes: Uint8Array } & TaskFields;

export type ProcessCounts = { busy: number; idle: number; starting: number; waiting: number; workers: number };

type Waiting = {
  task: string;
  input: TaskInput;
  signal: AbortSignal | undefined;
  deadlineMs: number;
  onProgress: OnProgress | undefined;
  watch: PartWatch | undefined;
  /**
   * Removes the task from the queue. Registered only while it waits: otherwise, a long-lived signal would keep every
   * document in memory.
   */
  giveUp: () => void;
  resolve(reply: TaskReply): void;
  reject(error: unknown): void;
};

const queueMaxDefault = 512;
const longDocumentsMax = 2;
/** Apps whose last document was read this recently share the processes of `workers`, at least one each. */
const shareMs = 2_000;
const startRetryMsMax = 5_000;
/** After this many consecutive failed starts, documents in the queue are refused. */
const failedStartsMax = 4;
/** Starting a process takes half a second of processor time. One whose memory has grown is replaced earlier. */
const tasksPerProcessMax = 10_000;

/** The parser processes, and the tasks that wait for one: each app in a lane of its own. */
export class ParserProcesses {
  readonly #options: ProcessesOptions;
  readonly #processOptions: ProcessOptions;
  readonly #lanes: Lanes<Waiting>;
  readonly #idle: ParserProcess[] = [];
  readonly #busy = new Set<ParserProcess>();
  readonly #starting = new Set<ParserProcess>();
  readonly #waitingForStart: (() => void)[] = [];
  /** Whether a document has arrived. Until then, one process is enough. */
  #used = false;
  #failedStarts = 0;
  #retryTimer: NodeJS.Timeout | undefined;
  #closed = false;
  /** Long documents of jobs: one per lane at a time, two in total, in additional processes. */
  readonly #longLanes: Lanes<Waiting>;
  #longCount = 0;

  constructor(options: ProcessesOptions) {
    this.#options = options;
    this.#lanes = new Lanes({
      slots: 2 * options.workers,
      waitingMax: options.queueMax ?? queueMaxDefault,
      recentMs: shareMs,
    });
    this.#longLanes = new Lanes({ slots: longDocumentsMax, waitingMax: options.queueMax ?? queueMaxDefault });
    const { memoryMb, workerFile, directories } = options;
    this.#processOptions = { memoryMb, workerFile, directories };
  }

  /** The numbers of processes, of waiting documents, and of concurrent documents for one app. */
  get counts(): ProcessCounts {
    return {
      busy: this.#busy.size,
      idle: this.#idle.length,
      starting: this.#starting.size,
      waiting: this.#lanes.waiting + this.#longLanes.waiting,
      workers: this.#options.workers,
    };
  }

  /** Starts one process. The others start with the first task. */
  warm(): void {
    this.#fill();
  }

  /** Ends every process. Waiting and running documents are refused with `unavailable`. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#retryTimer);
    for (const waiting of this.#drain()) waiting.reject(closedError());
    const all = [...this.#idle, ...this.#busy, ...this.#starting];
    await Promise.all(all.map((process) => process.kill()));
  }

  /** Resolves when a process is ready or none can be started. */
  findReady(): Promise<void> {
    if (this.#closed || this.#idle.length + this.#busy.size > 0) return Promise.resolve();
    this.#fill();
    return new Promise((resolve) => this.#waitingForStart.push(resolve));
  }

  #endStart(process: ParserProcess): void {
    this.#starting.delete(process);
    for (const resolve of this.#waitingForStart.splice(0)) resolve();
  }

  /** Has a process do a task, and another one if something killed the first from outside. */
  execute(task: string, input: TaskInput, options: ExecuteOptions): Promise<TaskReply> {
    const { needsIsolation = false, isIsolated = hasOwnNetwork } = this.#options;
    // Only these run decoders that were not written for this.
    const decodes = ['parse', 'page', 'picture', 'image-size'].includes(task);
    if (needsIsolation && decodes && !isIsolated()) return Promise.reject(notIsolated());
    const attributes = { 'quarry.parser.bytes': input.bytes.length };
    return trace(`parser ${task}`, { attributes }, async () => {
      try {
        return await this.#enqueue(task, input, options);
      } catch (error) {
        if (!(error instanceof KilledError)) throw error;
        return this.#enqueue(task, input, options);
      }
    });
  }

  #enqueue(task: string, input: TaskInput, options: ExecuteOptions): Promise<TaskReply> {
    if (this.#closed) return Promise.reject(closedError());
    const { signal, onProgress, watch, isLong = false, lane = '', deadlineMs = this.#options.deadlineMs } = options;
    if (signal?.aborted) return Promise.reject(signal.reason);
    const lanes = isLong ? this.#longLanes : this.#lanes;
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        if (lanes.remove(lane, waiting)) waiting.reject(signal?.reason);
      };
      const waiting: Waiting = { task, input, signal, deadlineMs, onProgress, watch, giveUp, resolve, reject };
      if (!lanes.add(lane, waiting)) return reject(queueFullError());
      signal?.addEventListener('abort', giveUp, { once: true });
      this.#used = true;
      this.#dispatch();
      this.#fill();
    });
  }

  #drain(): Waiting[] {
    return [...this.#lanes.drain(), ...this.#longLanes.drain()];
  }

  #dispatch(): void {
    while (this.#idle.length > 0) {
      const usual = this.#lanes.take();
      const lanes = usual ? this.#lanes : this.#longLanes;
      const taken = usual ?? lanes.take();
      if (!taken) return;
      taken.item.signal?.removeEventListener('abort', taken.item.giveUp);
      // The process that worked last: its code and memory are warm.
      const process = this.#idle.pop();
      if (process) void this.#work(process, lanes, taken);
    }
  }

  async #work(process: ParserProcess, lanes: Lanes<Waiting>, taken: { lane: string; item: Waiting }): Promise<void> {
    const { lane, item: waiting } = taken;
    const isLong = lanes === this.#longLanes;
    this.#busy.add(process);
    if (isLong) this.#longCount += 1;
    this.#fill();
    const startedMs = performance.now();
    const { bytes, ...fields } = waiting.input;
    waiting.watch?.onStart();
    try {
      waiting.resolve(await process.run(waiting.task, bytes, fields, waiting));
    } catch (error) {
      if (error instanceof ParseError && !process.alive)
        this.#options.log.warn({ reason: error.reason, cause: String(error.cause) }, 'A parser process was killed');
      waiting.reject(this.#closed ? closedError() : error);
    }
    this.#busy.delete(process);
    if (isLong) this.#longCount -= 1;
    lanes.release(lane, performance.now() - startedMs);
    if (process.alive && !this.#closed && process.tasksDone < tasksPerProcessMax && !process.spent && !this.#hasSpare)
      this.#idle.push(process);
    else await process.kill();
    this.#fill();
    this.#dispatch();
  }

  /** One process for each worker, or for each active document if those are more, and one spare process. */
  get #wantedCount(): number {
    if (!this.#used) return 1;
    const { workers } = this.#options;
    const usual = this.#busy.size - this.#longCount;
    return Math.min(2 * workers, Math.max(workers, usual) + 1) + this.#longCount;
  }

  get #hasSpare(): boolean {
    return this.#idle.length + this.#busy.size + this.#starting.size >= this.#wantedCount;
  }

  #fill(): void {
    if (this.#closed || this.#retryTimer !== undefined) return;
    while (!this.#hasSpare) this.#start();
  }

  #start(): void {
    const process = new ParserProcess(this.#processOptions);
    this.#starting.add(process);
    process.ready.then(
      () => {
        this.#endStart(process);
        this.#failedStarts = 0;
        if (this.#closed) return;
        this.#idle.push(process);
        this.#dispatch();
      },
      (error: unknown) => {
        this.#endStart(process);
        if (this.#closed) return;
        this.#failedStarts += 1;
        this.#options.log.error({ err: error }, 'A parser process did not start');
        if (this.#failedStarts >= failedStartsMax && this.#busy.size + this.#idle.length === 0)
          for (const waiting of this.#drain()) waiting.reject(startError());
        this.#retryTimer ??= setTimeout(
          () => {
            this.#retryTimer = undefined;
            this.#fill();
          },
          Math.min(startRetryMsMax, 100 * 2 ** this.#failedStarts),
        );
        this.#retryTimer.unref();
      },
    );
    void process.exited.then(() => {
      const index = this.#idle.indexOf(process);
      if (index < 0) return;
      this.#idle.splice(index, 1);
      this.#fill();
    });
  }
}

function queueFullError(): AppError {
  return new AppError('unavailable', 'Too many documents are waiting to be read. Try again shortly.', {
    headers: { 'retry-after': '5' },
  });
}

function startError(): AppError {
  return new AppError(
    'unavailable',
    'No parser process could be started; the server log has the reason. Try again later.',
    {
      headers: { 'retry-after': '30' },
    },
  );
}

function closedError(): AppError {
  return new AppError('unavailable', 'The server is stopping and reads no more documents.');
}

function hasOwnNetwork(): boolean {
  return findConfinement(ownWorkerFile).network;
}

function notIsolated(): ParseError {
  const message =
    'This server reads no documents, because its parsers would have access to its network. Its operator can change this with QUARRY_PARSE_NETWORK.';
  return new ParseError('extraction_failed', message);
}
