import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startInBackground } from '../../../lib/background-process.ts';
import { programFile } from '../../../lib/program-file.ts';
import { FetchError, type FetchErrorCode } from '../../fetch/errors.ts';
import { parseLimits } from '../limits.ts';
import { isPartEvent, type PartEvent } from '../mail/attachments.ts';
import { ParseError, type ParseFailure } from '../types.ts';
import { findConfinement, processorSecondsMax } from './confinement.ts';
import { ownUseFile, readProcessorUse, startDeadline } from './deadline.ts';
import { encodeFrame, type Frame, FrameReader } from './frame.ts';
import type { OnProgress } from './worker-loop.ts';

export type ProcessOptions = {
  memoryMb: number;
  workerFile: string | undefined;
  /** Directories outside of the program that the process may read: the OCR engine and the data of its languages. */
  directories?: string[];
};
export type TaskReply = { value: unknown; blobs: Buffer[] };

type RunningOptions = {
  signal: AbortSignal | undefined;
  deadlineMs: number;
  onProgress?: OnProgress | undefined;
  watch?: PartWatch | undefined;
};
/**
 * Receives the parts of a mail as they are read. A part that exceeds its share of the time, plus the grace period,
 * ends the process.
 */
export type PartWatch = {
  onStart(): void;
  onPart(event: PartEvent, blobs: Uint8Array[]): void;
  graceMs?: number;
};
type Running = { resolve(reply: TaskReply): void; reject(error: unknown): void };

const startTimeoutMs = 20_000;
const memoryCheckMs = 40;
/** How many characters of V8's output are kept when V8 ends its process. */
const lastWordsMax = 16 * 1024;
/** Markdown has at most four bytes per character. The rest is room for vectors and metadata. */
const replyBytesMax = 4 * parseLimits.markdownCharactersMax + 256 * 1024 * 1024;
const sourceRoot = fileURLToPath(new URL('../../../', import.meta.url));
export const ownWorkerFile = programFile('./worker', import.meta.url);

/** One child process that parses one document at a time. */
export class ParserProcess {
  /** Settles when the process is ready or has failed to start. */
  readonly ready: Promise<void>;
  /** Settles when the process has ended. Never rejects. */
  readonly exited: Promise<void>;
  alive = true;
  tasksDone = 0;
  /** Whether the process should be replaced, because its memory has grown or errors left it in an unknown state. */
  spent = false;
  readonly #child: ChildProcess;
  readonly #options: ProcessOptions;
  readonly #reader = new FrameReader(replyBytesMax);
  #running: Running | undefined;
  #onProgress: OnProgress | undefined;
  #watch: PartWatch | undefined;
  #cancelPart = () => {};
  #partBytes = 0;
  #killedFor: ParseError | undefined;
  #ending = false;
  #residentBytes = 0;

  constructor(options: ProcessOptions) {
    this.#options = options;
    this.#child = startChild(options);
    this.#child.stdin?.on('error', () => {}); // the exit is reported instead of EPIPE
    this.#child.stdout?.on('data', (chunk: Buffer) => this.#receive(chunk));
    let lastWords = '';
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      lastWords = (lastWords + chunk.toString('latin1')).slice(-lastWordsMax);
    });
    this.exited = new Promise((resolve) => {
      const end = (why: string): void => {
        this.alive = false;
        const ranOut = this.#isLarge || /out of memory/i.test(lastWords);
        this.#running?.reject(this.#killedFor ?? (ranOut ? memoryError(options.memoryMb) : crashError(why)));
        this.#running = undefined;
        resolve();
      };
      this.#child.once('error', (error) => end(String(error)));
      // Not at `exit`: the last messages may still be in transit.
      this.#child.once('close', (code, signal) => end(`exit ${code ?? signal}`));
    });
    this.ready = this.#await(startTimeoutMs).then(() => {
      if (!this.#ending) (this.#child as { unref(): void }).unref();
    });
  }

  /** Runs one task. Throws ParseError for the task's own errors, a crash, the deadline and the memory limit. */
  async run(
    task: string,
    bytes: Uint8Array,
    fields: Record<string, unknown>,
    { signal, deadlineMs, onProgress, watch }: RunningOptions,
  ): Promise<TaskReply> {
    const abort = (): void => void this.kill();
    signal?.addEventListener('abort', abort, { once: true });
    this.#onProgress = onProgress;
    this.#watch = watch;
    this.#partBytes = 0;
    const memoryTimer = setInterval(() => this.#checkMemory(), memoryCheckMs);
    try {
      const reply = this.#await(deadlineMs);
      for (const part of encodeFrame({ task, fields }, [bytes])) this.#child.stdin?.write(part);
      return taskReply(await reply, this.#options.memoryMb);
    } catch (error) {
      // An unexpected error may have left the parser (or its WebAssembly module) in an undefined state.
      if (error instanceof UnexpectedError || error instanceof MemoryError) this.spent = true;
      throw signal?.aborted ? signal.reason : error;
    } finally {
      clearInterval(memoryTimer);
      signal?.removeEventListener('abort', abort);
      this.tasksDone += 1;
      this.#onProgress = undefined;
      this.#watch = undefined;
      this.#cancelPart();
    }
  }

  async kill(reason?: ParseError): Promise<void> {
    this.#killedFor ??= reason;
    if (this.alive) this.#child.kill('SIGKILL');
    // Keeps this process alive until the exit of the child is reported.
    this.#ending = true;
    (this.#child as { ref(): void }).ref();
    await this.exited;
  }

  #await(timeoutMs: number): Promise<TaskReply> {
    return new Promise((resolve, reject) => {
      if (!this.alive) return reject(crashError('already gone'));
      const cancel = this.#endAfter(timeoutMs);
      const settle = (then: () => void): void => {
        cancel();
        this.#running = undefined;
        then();
      };
      this.#running = {
        resolve: (reply) => settle(() => resolve(reply)),
        reject: (error) => settle(() => reject(error)),
      };
    });
  }

  /** Ends the process when it has had this time. Returns a function that cancels that. */
  #endAfter(timeMs: number, named = timeMs): () => void {
    const readUse = () => readProcessorUse(this.#child.pid);
    return startDeadline(timeMs, readUse, () => void this.kill(timeoutError(named)));
  }

  #receive(chunk: Buffer): void {
    // What was in transit when the process was killed is not a result.
    if (this.#ending) return;
    let frames: Frame[];
    try {
      frames = this.#reader.push(chunk);
      for (const frame of frames) this.#receivePart(frame);
    } catch (cause) {
      const isTooLarge = cause instanceof RangeError;
      const tooLarge = new ParseError('extraction_failed', 'The document contains more text than the limit.', {
        cause,
      });
      void this.kill(isTooLarge ? tooLarge : crashError(String(cause)));
      return;
    }
    for (const { header, blobs } of frames) {
      if (header.part !== undefined) continue;
      if (header.progress !== undefined) {
        const { done, total } = header.progress as { done?: unknown; total?: unknown };
        if (Number.isSafeInteger(done) && Number.isSafeInteger(total)) this.#onProgress?.(Number(done), Number(total));
        continue;
      }
      const rssBytes = header.rssBytes;
      this.#residentBytes = typeof rssBytes === 'number' ? rssBytes : 0;
      const isTired = header.isWorn === true || Number(header.processorSeconds) > processorSecondsMax / 6;
      this.spent = this.#isLarge || isTired;
      this.#running?.resolve({ value: header.value, blobs });
    }
  }

  /** Throws if the message is not a part as parsers report it. */
  #receivePart({ header, blobs }: Frame): void {
    if (header.part === undefined) return;
    this.#cancelPart();
    this.#partBytes += blobs.reduce((sum, blob) => sum + blob.byteLength, 0);
    if (this.#partBytes > replyBytesMax) throw new RangeError('more bytes than the limit');
    const event = header.part;
    if (!isPartEvent(event)) throw new TypeError('no part of a mail');
    this.#watch?.onPart(event, blobs);
    if (event.what !== 'begun' || typeof event.forMs !== 'number') return;
    const { forMs } = event;
    this.#cancelPart = this.#endAfter(forMs + (this.#watch?.graceMs ?? 0), forMs);
  }

  /** A process of this size that crashes has reached its heap limit. */
  get #isLarge(): boolean {
    return this.#residentBytes > 0.6 * this.#options.memoryMb * 1024 * 1024;
  }

  /**
   * The heap limit does not cover buffers and WebAssembly memory; the resident set does. It is read only on Linux: on
   * other systems, only the heap limit applies.
   */
  #checkMemory(): void {
    if (process.platform !== 'linux' || this.#child.pid === undefined) return;
    let pages: number;
    try {
      pages = Number(readFileSync(`/proc/${this.#child.pid}/statm`, 'utf8').split(' ')[1]);
    } catch {
      return; // it has ended; the exit is reported separately
    }
    this.#residentBytes = pages * 4096;
    if (this.#residentBytes > this.#options.memoryMb * 1024 * 1024) void this.kill(memoryError(this.#options.memoryMb));
  }
}

/** A failure that no parser anticipated. */
class UnexpectedError extends ParseError {}
class MemoryError extends ParseError {}
/** The process was killed from outside, by the kernel or an operator, which says nothing about the document. */
export class KilledError extends ParseError {}

function taskReply(reply: TaskReply, memoryMb: number): TaskReply {
  const value = reply.value;
  if (typeof value !== 'object' || value === null || !('error' in value)) return reply;
  const { reason, code, message, cause, fetchCode } = value.error as Record<'reason' | 'code' | 'message', string> & {
    cause?: string;
    fetchCode?: FetchErrorCode;
  };
  if (fetchCode !== undefined) throw new FetchError(fetchCode, message);
  if (isFailure(reason))
    throw new ParseError(reason, message, { cause, ...(code === 'needs_browser' ? { code } : {}) });
  if (reason === 'memory') throw memoryError(memoryMb);
  throw new UnexpectedError('extraction_failed', 'The document is damaged or not what it claims to be.', {
    cause: message,
  });
}

function isFailure(reason: string): reason is ParseFailure {
  return reason === 'unsupported_content' || reason === 'extraction_failed' || reason === 'timeout';
}

/**
 * Starts a child process with an empty environment that may only read the program's code: no other file, no process,
 * no thread, no add-on. The system's own confinement (confinement.ts) applies in addition. The kernel limits private
 * memory even between two checks of the resident set; the margin is what V8 and its threads map without using.
 */
function startChild(options: ProcessOptions): ChildProcess {
  const workerFile = options.workerFile ?? ownWorkerFile;
  const readable = [
    ...[sourceRoot, dirname(workerFile) + sep, modulesDirectory(), ownUseFile],
    ...['package.json', `node_modules${sep}`].map((path) => join(sourceRoot, '..', path)),
  ];
  for (const directory of options.directories ?? []) readable.push(directory + sep);
  const nodeArguments = [
    '--permission',
    ...[...new Set(readable)].map((path) => `--allow-fs-read=${path}`),
    `--max-old-space-size=${Math.max(48, Math.floor(options.memoryMb * 0.75))}`,
    '--max-semi-space-size=16',
    '--expose-gc', // to tell garbage from memory in use
    '--no-warnings',
    '--disallow-code-generation-from-strings',
    '--disable-proto=delete',
    workerFile,
  ];
  const settings = { env: {}, windowsHide: true };
  const { prefix, limits } = findConfinement(workerFile, options.directories);
  if (!limits)
    return startInBackground((own) => spawn(process.execPath, nodeArguments, { ...own, ...settings, cwd: sourceRoot }));
  const dataKb = (options.memoryMb + 512) * 1024;
  const bounds = `ulimit -d ${dataKb}; ulimit -t ${processorSecondsMax}; ulimit -f 0; ulimit -c 0`;
  const script = `unset PWD OLDPWD; ${bounds}; exec "$0" "$@"`;
  const [command = '', ...rest] = [...prefix, '/bin/sh', '-c', script, process.execPath, ...nodeArguments];
  return startInBackground((own) => spawn(command, rest, { ...own, ...settings, cwd: '/' }));
}

function modulesDirectory(): string {
  const resolved = fileURLToPath(import.meta.resolve('@hyzyla/pdfium'));
  const marker = `${sep}node_modules${sep}`;
  return resolved.slice(0, resolved.lastIndexOf(marker) + marker.length);
}

function crashError(cause: string): ParseError {
  const Kind = cause === 'exit SIGKILL' ? KilledError : ParseError;
  return new Kind('extraction_failed', 'The document made its parser crash: it is damaged or hostile.', { cause });
}

function timeoutError(timeoutMs: number): ParseError {
  return new ParseError('timeout', `The document was not read within ${Math.ceil(timeoutMs / 1000)} seconds.`);
}

function memoryError(memoryMb: number): MemoryError {
  return new MemoryError('extraction_failed', `The document needs more than ${memoryMb} MB of memory to read.`);
}
