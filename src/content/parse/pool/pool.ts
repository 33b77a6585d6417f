import { Lanes } from '../../../fairness/lanes.ts';
import { defined } from '../../../lib/defined.ts';
import { AppError } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import { trace } from '../../../tracing/trace.ts';
import type { PictureRequest, SmallPicture } from '../../picture/picture.ts';
import type { PreparedText, PrepareInput } from '../../prepare.ts';
import { documentName, type Extractor } from '../external/extractor.ts';
import { readInTurns } from '../mail/read-in-turns.ts';
import type { ReadingTerms } from '../reading.ts';
import { type ImageSize, type ParsedDocument, ParseError, type ParseInput } from '../types.ts';
import { findConfinement } from './confinement.ts';
import { joinParts } from './join-parts.ts';
import { findOcrProblem, type OcrProblem, type OcrSettings } from './ocr-data.ts';
import {
  KilledError,
  ownWorkerFile,
  ParserProcess,
  type PartWatch,
  type ProcessOptions,
  type TaskReply,
} from './process.ts';
import type { OnProgress, TaskFields } from './worker-loop.ts';

/** The tasks of worker.ts. */
type TaskName =
  | 'parse'
  | 'kind'
  | 'page'
  | 'robots'
  | 'sitemap'
  | 'feed'
  | 'body'
  | 'prepare'
  | 'picture'
  | 'image-size'
  | 'locate'
  | 'compare';

type PoolOptions = {
  /**
   * The maximum number of concurrent documents of one lane; the same number is reserved for other lanes. One unused
   * process is kept ready and warm.
   */
  workers: number;
  /** The memory of one process (its whole resident set) in MiB. */
  memoryMb: number;
  /** The time limit for one document, from the moment a process has it. Preparing a text gets more, by its length. */
  deadlineMs: number;
  /** The same for a document that a background job reads. */
  jobDeadlineMs?: number;
  ocr?: OcrSettings;
  /** Reads documents of chosen types instead of the processes, which read what it cannot. */
  extractor?: Extractor | undefined;
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

type ParseOptions = RunOptions & {
  /** For background jobs: the document may take longer, and what was read of it is kept if time or memory runs out. */
  patient?: boolean;
  /** `apart`: attachments of a mail are returned in `parts`. Otherwise, their text follows that of the mail. */
  parts?: 'apart';
  /** Called a few times a second with the pages read so far. */
  onProgress?: OnProgress;
};

type ExecuteOptions = ParseOptions & { deadlineMs?: number; lanes?: Lanes<Waiting>; watch?: PartWatch };

/** The bytes for the task, and its other arguments as JSON. */
type TaskInput = { bytes: Uint8Array } & TaskFields;

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
/** The time that a process gets to write what it has read, after it stopped reading. */
const keptGraceMs = 30_000;
/** Apps whose last document was read this recently share the processes of `workers`, at least one each. */
const shareMs = 2_000;
const startRetryMsMax = 5_000;
/** After this many consecutive failed starts, documents in the queue are refused. */
const failedStartsMax = 4;
/** Starting a process takes half a second of processor time. One whose memory has grown is replaced earlier. */
const tasksPerProcessMax = 10_000;
/** Splitting and indexing take time in proportion to the text: on a slow machine, a second for this many bytes. */
const preparedBytesPerSecond = 128 * 1024;

/**
 * Parses untrusted bytes in child processes without network or secrets, with a memory limit and a deadline.
 * The worst that a document can do is crash its own process, which is killed and replaced.
 */
export class ParserPool {
  readonly #options: PoolOptions;
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
  #ocrProblem: { found: OcrProblem | undefined } | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#lanes = new Lanes({
      slots: 2 * options.workers,
      waitingMax: options.queueMax ?? queueMaxDefault,
      recentMs: shareMs,
    });
    this.#longLanes = new Lanes({ slots: longDocumentsMax, waitingMax: options.queueMax ?? queueMaxDefault });
    const { memoryMb, workerFile, ocr } = options;
    this.#processOptions = { memoryMb, workerFile, directories: directoriesOf(ocr) };
  }

  /** The numbers of processes, of waiting documents, and of concurrent documents for one app. */
  get counts(): { busy: number; idle: number; starting: number; waiting: number; workers: number } {
    return {
      busy: this.#busy.size,
      idle: this.#idle.length,
      starting: this.#starting.size,
      waiting: this.#lanes.waiting + this.#longLanes.waiting,
      workers: this.#options.workers,
    };
  }

  /**
   * Starts one process, so that the first document does not wait for it. The other processes start with that
   * document.
   */
  warm(): void {
    this.#fill();
  }

  /** Runs one task in a process. Throws ParseError, AppError `unavailable`, or the signal's reason. */
  async run<T>(task: TaskName, input: TaskInput, options: RunOptions = {}): Promise<T> {
    const reply = await this.#execute(task, input, options);
    return reply.value as T;
  }

  /** Converts a document to Markdown. Throws ParseError with a message for the sender. */
  async parse(input: ParseInput, options: ParseOptions = {}): Promise<ParsedDocument> {
    const { patient = false } = options;
    const outside = await this.#readOutside(input, options);
    if (outside !== undefined) return outside;
    const problem = this.#findOcrProblem();
    const first = await this.#read(input, options, {
      ...(problem === undefined ? { ocr: 'later' } : { ocrProblem: problem }),
      whenOut: patient ? 'later' : 'refuse',
    });
    if (!('unfinished' in first)) return first;
    const again = await this.#read(input, patient ? { ...options, lanes: this.#longLanes } : options, {
      ...(problem === undefined ? { ocr: this.#ocr } : { ocrProblem: problem }),
      whenOut: patient ? 'keep' : 'refuse',
    });
    if ('unfinished' in again) throw new Error('The parser process did not finish a document on its second attempt.');
    return again;
  }

  async #read(
    input: ParseInput,
    options: ExecuteOptions,
    terms: ReadingTerms,
  ): Promise<ParsedDocument | { unfinished: unknown }> {
    const { deadlineMs: usualMs, jobDeadlineMs = usualMs, memoryMb } = this.#options;
    const isLong = options.lanes === this.#longLanes;
    const graceMs = isLong ? keptGraceMs : 0;
    const timeMs = (isLong ? jobDeadlineMs : usualMs) + graceMs;
    const read = await readInTurns(timeMs, ({ deadlineMs: killAfterMs, resume, watch }) => {
      const deadlineMs = Math.max(1, killAfterMs - graceMs);
      const fields = { ...input, resume, terms: { ...terms, deadlineMs, memoryMb } };
      return this.#execute('parse', fields, { ...options, deadlineMs: killAfterMs, watch: { ...watch, graceMs } });
    });
    if ('parts' in read) {
      const { parts, ...mail } = read;
      if (parts.length === 0) return mail;
      return options.parts === 'apart' ? read : joinParts(mail, parts);
    }
    const value = read.value as Omit<ParsedDocument, 'markdown'> | { unfinished: unknown };
    return 'unfinished' in value ? value : { ...value, markdown: text(read.blobs[0]) };
  }

  /**
   * Has the extractor read a document of its types, and reads its HTML like any other. Undefined if there is no extractor
   * for the document, or its response has no text.
   */
  async #readOutside(input: ParseInput, options: ParseOptions): Promise<ParsedDocument | undefined> {
    const { extractor, deadlineMs, jobDeadlineMs = deadlineMs, log } = this.#options;
    // What another server compressed is decompressed only in a parser process.
    if (extractor === undefined || (input.contentEncoding ?? '') !== '') return undefined;
    const { lane = '', signal, patient = false } = options;
    const kind = await this.run<string>('kind', input, options);
    if (!extractor.reads(kind)) return undefined;
    const timeMs = patient ? jobDeadlineMs : deadlineMs;
    const read = await extractor.read(kind, input.bytes, { lane, timeMs, signal });
    let problem = 'problem' in read ? read.problem : '';
    if ('html' in read)
      try {
        const bytes = Buffer.from(read.html);
        const html: ParseInput = { bytes, contentType: 'text/html; charset=utf-8', isWhole: true };
        const document = await this.#read(html, options, { whenOut: 'refuse' });
        if (!('unfinished' in document)) return describeOutside(document, kind, extractor.name);
      } catch (error) {
        if (!(error instanceof ParseError)) throw error;
        problem = error.message;
      }
    log.warn({ extractor: extractor.name, kind, problem }, 'The extractor did not read a document');
    return undefined;
  }

  get #ocr(): OcrSettings {
    return this.#options.ocr ?? { languages: ['eng'] };
  }

  /** Looked up once: packages are not installed while the server runs. */
  #findOcrProblem(): string | undefined {
    this.#ocrProblem ??= { found: findOcrProblem(this.#ocr) };
    const { found } = this.#ocrProblem;
    return found && `${found.reason}. ${found.fix} to read it`;
  }

  /** Returns the text's chunks, postings and vectors, for an index. */
  async prepare(
    { text, ...fields }: Omit<PrepareInput, 'text'> & { text: Buffer },
    options: RunOptions = {},
  ): Promise<PreparedText> {
    const deadlineMs = this.#options.deadlineMs + (text.length / preparedBytesPerSecond) * 1_000;
    const reply = await this.#execute('prepare', { bytes: text, ...fields }, { ...options, deadlineMs });
    type Value = Pick<PreparedText, 'lines' | 'language' | 'chunks'> & { hashes: string[]; bundleChunks: number[] };
    const { hashes, bundleChunks, ...value } = reply.value as Value;
    const blobs = reply.blobs.map((blob) => Buffer.from(blob.buffer, blob.byteOffset, blob.byteLength));
    if (blobs.length !== bundleChunks.length + hashes.length)
      throw new Error('The parser process returned a different number of parts than it names.');
    const vectors = blobs.slice(bundleChunks.length);
    return {
      ...value,
      bundles: bundleChunks.flatMap((chunkCount, i) => {
        const content = blobs[i];
        return content ? [{ chunkCount, content }] : [];
      }),
      vectors: hashes.flatMap((hash, i) => {
        const vector = vectors[i];
        return vector ? [[hash, vector] satisfies [string, Buffer]] : [];
      }),
    };
  }

  /**
   * Width and height in pixels, or undefined if the bytes are not a known image. The wait for its turn and the result
   * is limited once a process is ready: on a busy machine, the first process may take longer to start.
   */
  async imageSize(
    bytes: Uint8Array,
    timeoutMs: number,
    { lane }: { lane?: string } = {},
  ): Promise<ImageSize | undefined> {
    await this.#findReady();
    const options = { signal: AbortSignal.timeout(timeoutMs), ...defined({ lane }) };
    return (await this.run<ImageSize | null>('image-size', { bytes }, options)) ?? undefined;
  }

  /** Makes a small copy of a picture or of the first page of a PDF. Throws ParseError. */
  async picture(bytes: Uint8Array, request: PictureRequest, options: RunOptions = {}): Promise<SmallPicture> {
    const { value, blobs } = await this.#execute('picture', { bytes, ...request }, options);
    const { width, height } = value as Omit<SmallPicture, 'bytes'>;
    const [small] = blobs;
    if (!small) throw new Error('The parser process did not return a picture.');
    return { width, height, bytes: small };
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
  #findReady(): Promise<void> {
    if (this.#closed || this.#idle.length + this.#busy.size > 0) return Promise.resolve();
    this.#fill();
    return new Promise((resolve) => this.#waitingForStart.push(resolve));
  }

  #endStart(process: ParserProcess): void {
    this.#starting.delete(process);
    for (const resolve of this.#waitingForStart.splice(0)) resolve();
  }

  #execute(task: string, input: TaskInput, options: ExecuteOptions): Promise<TaskReply> {
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
    const {
      signal,
      onProgress,
      watch,
      lanes = this.#lanes,
      lane = '',
      deadlineMs = this.#options.deadlineMs,
    } = options;
    if (signal?.aborted) return Promise.reject(signal.reason);
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

function describeOutside({ title, ...document }: ParsedDocument, kind: string, reader: string): ParsedDocument {
  return { ...document, ...(title === undefined || title === documentName ? {} : { title }), kind, reader };
}

function text(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? '' : new TextDecoder().decode(bytes);
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

function directoriesOf({ dataDirectory, addOnDirectory }: Partial<OcrSettings> = {}): string[] {
  return [dataDirectory, addOnDirectory].filter((directory) => directory !== undefined);
}

function hasOwnNetwork(): boolean {
  return findConfinement(ownWorkerFile).network;
}

function notIsolated(): ParseError {
  const message =
    'This server reads no documents, because its parsers would have access to its network. Its operator can change this with QUARRY_PARSE_NETWORK.';
  return new ParseError('extraction_failed', message);
}
