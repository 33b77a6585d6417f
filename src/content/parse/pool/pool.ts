import { defined } from '../../../lib/defined.ts';
import type { PictureRequest, SmallPicture } from '../../picture/picture.ts';
import type { PreparedText, PrepareInput, PrepareTerms } from '../../prepare.ts';
import { documentName, type Extractor } from '../external/extractor.ts';
import { readInTurns } from '../mail/read-in-turns.ts';
import type { ReadingTerms } from '../reading.ts';
import { type ImageSize, type ParsedDocument, ParseError, type ParseInput } from '../types.ts';
import { joinParts } from './join-parts.ts';
import { findOcrProblem, type OcrProblem, type OcrSettings } from './ocr-data.ts';
import { type SentText, unpackPrepared } from './prepared.ts';
import {
  type ExecuteOptions,
  ParserProcesses,
  type ProcessCounts,
  type ProcessesOptions,
  type RunOptions,
  type TaskInput,
} from './processes.ts';
import type { OnProgress } from './worker-loop.ts';

export type { RunOptions } from './processes.ts';

/** The tasks of worker.ts. */
type TaskName =
  | 'parse'
  | 'kind'
  | 'page'
  | 'robots'
  | 'sitemap'
  | 'menu'
  | 'feed'
  | 'body'
  | 'prepare'
  | 'picture'
  | 'image-size'
  | 'locate'
  | 'compare';

type PoolOptions = Omit<ProcessesOptions, 'directories'> & {
  /** The time limit for a document that a background job reads. */
  jobDeadlineMs?: number;
  ocr?: OcrSettings;
  /** Reads documents of chosen types instead of the processes, which read what it cannot. */
  extractor?: Extractor | undefined;
};

type ParseOptions = RunOptions & {
  /** For background jobs: the document may take longer, and what was read of it is kept if time or memory runs out. */
  patient?: boolean;
  /** `apart`: attachments of a mail are returned in `parts`. Otherwise, their text follows that of the mail. */
  parts?: 'apart';
  /** Called a few times a second with the pages read so far. */
  onProgress?: OnProgress;
  /** Also prepares the text, if it is short, was read quickly, and is not that of an extractor or of a mail's parts. */
  prepare?: PrepareTerms;
};

/** A document, and its text prepared for an index if that was asked for and done. */
export type ReadAndPrepared = ParsedDocument & { prepared?: PreparedText };

type ReadOptions = ParseOptions & Pick<ExecuteOptions, 'isLong'>;

/** The time that a process gets to write what it has read, after it stopped reading. */
const keptGraceMs = 30_000;
/** Splitting and indexing take time in proportion to the text: on a slow machine, a second for this many bytes. */
const preparedBytesPerSecond = 128 * 1024;

/**
 * Parses untrusted bytes in child processes without network or secrets, with a memory limit and a deadline.
 * The worst that a document can do is crash its own process, which is killed and replaced.
 */
export class ParserPool {
  readonly #options: PoolOptions;
  readonly #processes: ParserProcesses;
  #ocrProblem: { found: OcrProblem | undefined } | undefined;

  constructor(options: PoolOptions) {
    const { ocr, ...ofProcesses } = options;
    this.#options = options;
    this.#processes = new ParserProcesses({ ...ofProcesses, directories: directoriesOf(ocr) });
  }

  get counts(): ProcessCounts {
    return this.#processes.counts;
  }

  /**
   * Starts one process, so that the first document does not wait for it. The other processes start with that
   * document.
   */
  warm(): void {
    this.#processes.warm();
  }

  /** Runs one task in a process. Throws ParseError, AppError `unavailable`, or the signal's reason. */
  async run<T>(task: TaskName, input: TaskInput, options: RunOptions = {}): Promise<T> {
    const reply = await this.#processes.execute(task, input, options);
    return reply.value as T;
  }

  /** Converts a document to Markdown. Throws ParseError with a message for the sender. */
  async parse(input: ParseInput, options: ParseOptions = {}): Promise<ReadAndPrepared> {
    const { patient = false, prepare: _prepared, ...others } = options;
    const outside = await this.#readOutside(input, { patient, ...others });
    if (outside !== undefined) return outside;
    const problem = this.#findOcrProblem();
    const first = await this.#read(input, options, {
      ...(problem === undefined ? { ocr: 'later' } : { ocrProblem: problem }),
      whenOut: patient ? 'later' : 'refuse',
    });
    if (!('unfinished' in first)) return first;
    const again = await this.#read(
      input,
      { ...options, isLong: patient },
      {
        ...(problem === undefined ? { ocr: this.#ocr } : { ocrProblem: problem }),
        whenOut: patient ? 'keep' : 'refuse',
      },
    );
    if ('unfinished' in again) throw new Error('The parser process did not finish a document on its second attempt.');
    return again;
  }

  async #read(
    input: ParseInput,
    options: ReadOptions,
    terms: ReadingTerms,
  ): Promise<ReadAndPrepared | { unfinished: unknown }> {
    const { deadlineMs: usualMs, jobDeadlineMs = usualMs, memoryMb } = this.#options;
    const { isLong = false } = options;
    const graceMs = isLong ? keptGraceMs : 0;
    const timeMs = (isLong ? jobDeadlineMs : usualMs) + graceMs;
    const read = await readInTurns(timeMs, ({ deadlineMs: killAfterMs, resume, watch }) => {
      const deadlineMs = Math.max(1, killAfterMs - graceMs);
      const fields = { ...input, resume, prepare: options.prepare, terms: { ...terms, deadlineMs, memoryMb } };
      return this.#processes.execute('parse', fields, {
        ...options,
        deadlineMs: killAfterMs,
        watch: { ...watch, graceMs },
      });
    });
    if ('parts' in read) {
      const { parts, ...mail } = read;
      if (parts.length === 0) return mail;
      return options.parts === 'apart' ? read : joinParts(mail, parts);
    }
    type Value = Omit<ParsedDocument, 'markdown'> & { prepared?: SentText['value'] };
    const reply = read.value as Value | { unfinished: unknown };
    if ('unfinished' in reply) return reply;
    const { prepared, ...value } = reply;
    const [markdown, ...blobs] = read.blobs;
    return {
      ...value,
      markdown: text(markdown),
      ...(prepared && { prepared: unpackPrepared({ value: prepared, blobs }) }),
    };
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
    const reply = await this.#processes.execute('prepare', { bytes: text, ...fields }, { ...options, deadlineMs });
    return unpackPrepared(reply as SentText);
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
    await this.#processes.findReady();
    const options = { signal: AbortSignal.timeout(timeoutMs), ...defined({ lane }) };
    return (await this.run<ImageSize | null>('image-size', { bytes }, options)) ?? undefined;
  }

  /** Makes a small copy of a picture or of the first page of a PDF. Throws ParseError. */
  async picture(bytes: Uint8Array, request: PictureRequest, options: RunOptions = {}): Promise<SmallPicture> {
    const { value, blobs } = await this.#processes.execute('picture', { bytes, ...request }, options);
    const { width, height } = value as Omit<SmallPicture, 'bytes'>;
    const [small] = blobs;
    if (!small) throw new Error('The parser process did not return a picture.');
    return { width, height, bytes: small };
  }

  /** Ends every process. Waiting and running documents are refused with `unavailable`. */
  close(): Promise<void> {
    return this.#processes.close();
  }
}

function describeOutside({ title, ...document }: ParsedDocument, kind: string, reader: string): ParsedDocument {
  return { ...document, ...(title === undefined || title === documentName ? {} : { title }), kind, reader };
}

function text(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? '' : new TextDecoder().decode(bytes);
}

function directoriesOf({ dataDirectory, addOnDirectory }: Partial<OcrSettings> = {}): string[] {
  return [dataDirectory, addOnDirectory].filter((directory) => directory !== undefined);
}
