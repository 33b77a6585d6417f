import { defined } from '../../../lib/defined.ts';
import { parseLimits } from '../limits.ts';
import type { Reading } from '../reading.ts';
import {
  type Attached,
  failed,
  type ParsedDocument,
  type ParsedPart,
  ParseError,
  type ReadDocument,
} from '../types.ts';

/** The remaining limits for all attachments of one mail and of the mails attached to it. */
type RemainingLimits = { files: number; bytes: number; characters: number };

/** Where reading resumes after an attachment ended the parser process: after that attachment, with the remaining limits. */
export type ResumePoint = { after: number[]; left: RemainingLimits };

/**
 * An event in reading a mail, in order. A path contains the index of the attachment in each mail around it; the path of
 * the mail itself is empty.
 */
export type PartEvent = { path: number[]; name: string } & (
  | { what: 'begun'; left: RemainingLimits; forMs?: number }
  | { what: 'read'; document: ParsedDocument; attached: string[] }
  | { what: 'failed'; error: { code: string; message: string } }
);

/** Whether a message of a parser process is a valid event. A compromised process may send anything. */
export function isPartEvent(event: unknown): event is PartEvent {
  const { what, path, name, document, attached, error } = (event ?? {}) as Record<string, unknown>;
  if (!Array.isArray(path) || !path.every(Number.isSafeInteger) || typeof name !== 'string') return false;
  if (what === 'read')
    return isObject(document) && Array.isArray(attached) && attached.every((one) => typeof one === 'string');
  return what === 'begun' || (what === 'failed' && isObject(error));
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

/** The share of the remaining time that an attachment may use while others follow it. */
const timeShare = 0.5;

/** Reads the attachments of a mail, and of the mails in it, and reports each as soon as it is read. */
export class AttachmentReader {
  readonly #report: (event: PartEvent) => void;
  readonly #after: number[];
  readonly #left: RemainingLimits;
  #isUsed = false;

  constructor(report: (event: PartEvent) => void, resume?: ResumePoint) {
    const { attachmentsMax: files, attachmentBytesMax: bytes, markdownCharactersMax: characters } = parseLimits;
    this.#report = report;
    this.#after = resume?.after ?? [];
    this.#left = { ...(resume?.left ?? { files, bytes, characters }) };
  }

  /** Whether anything was reported. */
  get isUsed(): boolean {
    return this.#isUsed;
  }

  /** Reads the attachments of a document. Reports a ParseError as a failed attachment, and throws any other error. */
  async read(
    { attached = [], ...document }: ReadDocument,
    reading: Reading,
    parse: (one: Attached, reading: Reading) => Promise<ReadDocument>,
    place = { path: [] as number[], name: '' },
  ): Promise<void> {
    if (attached.length === 0 && place.path.length === 0) return;
    this.#isUsed = true;
    if (place.path.length === 0 ? this.#after.length === 0 : !this.#isBefore(place.path)) {
      if (document.markdown.length > this.#left.characters) throw failed('The mail contains more text than the limit.');
      this.#left.characters -= document.markdown.length;
      this.#report({ what: 'read', ...place, document, attached: attached.map(({ name }) => name) });
    }
    for (const [at, one] of attached.entries()) {
      const path = [...place.path, at];
      const name = place.name === '' ? one.name : `${place.name}/${one.name}`;
      const isAround = this.#after.length > path.length && path.every((step, depth) => step === this.#after[depth]);
      if (this.#isBefore(path) && !isAround) continue;
      if (!isAround) {
        if (this.#left.files === 0 || one.byteLength > this.#left.bytes) continue;
        this.#left.files -= 1;
        this.#left.bytes -= one.byteLength;
      }
      const own = reading.part(at === attached.length - 1 ? 1 : timeShare);
      const { deadlineMs: forMs } = own.terms;
      if (!isAround) this.#report({ what: 'begun', path, name, left: { ...this.#left }, ...defined({ forMs }) });
      try {
        if (path.length > parseLimits.attachmentDepthMax) throw failed('The attachment is nested too deeply.');
        await this.read(await parse(one, own), own, parse, { path, name });
      } catch (error) {
        if (!(error instanceof ParseError)) throw error;
        if (!isAround)
          this.#report({ what: 'failed', path, name, error: { code: error.code, message: error.message } });
      }
    }
  }

  /** Whether the attachment was reported before reading resumed, or contains the last one that was. */
  #isBefore(path: number[]): boolean {
    for (const [depth, step] of path.entries()) {
      const last = this.#after[depth];
      if (last === undefined) return false;
      if (step !== last) return step < last;
    }
    return true;
  }
}

/** Collects the parts of a mail as they are reported. */
export class CollectedParts {
  readonly #parts = new Map<string, { path: number[]; part: ParsedPart; attached: string[] }>();
  #open: Extract<PartEvent, { what: 'begun' }> | undefined;

  add(event: PartEvent): void {
    if (event.what === 'begun') {
      this.#open = event;
      return;
    }
    this.#open = undefined;
    const { path, name } = event;
    if (this.#parts.size > parseLimits.attachmentsMax) throw new RangeError('more attachments than are read');
    const part = event.what === 'read' ? { name, document: event.document } : { name, error: event.error };
    this.#parts.set(path.join(), { path, part, attached: event.what === 'read' ? event.attached : [] });
  }

  /** Whether the mail itself was read. */
  get hasMail(): boolean {
    return this.#parts.has('');
  }

  /** Records that the attachment being read ended its process. Returns where to resume; undefined if none was being read. */
  fail({ code, message }: ParseError): ResumePoint | undefined {
    const open = this.#open;
    if (open === undefined) return undefined;
    this.add({ what: 'failed', path: open.path, name: open.name, error: { code, message } });
    return { after: open.path, left: open.left };
  }

  /** Records the attachments that were not reached as failed. */
  failOthers(error: { code: string; message: string }): void {
    for (const { path, part, attached } of [...this.#parts.values()])
      for (const [at, name] of attached.slice(0, parseLimits.attachmentsMax).entries()) {
        const inner = [...path, at];
        const whole = path.length === 0 ? name : `${part.name}/${name}`;
        if (!this.#parts.has(inner.join())) this.add({ what: 'failed', path: inner, name: whole, error });
      }
  }

  /** The mail with its parts in order. `truncated` says how many attachments the limits left out. */
  finish(): ParsedDocument & { parts: ParsedPart[] } {
    const reported = [...this.#parts.values()].sort((a, b) => compare(a.path, b.path));
    const parts = reported.map(({ path, part, attached }) => {
      const missing = attached.filter((_name, at) => !this.#parts.has([...path, at].join())).length;
      if (part.document === undefined || missing === 0) return part;
      const truncated = [
        ...(part.document.truncated ?? []),
        `${missing} attachments: there are too many, or they are too large`,
      ];
      return { ...part, document: { ...part.document, truncated } };
    });
    const [mail, ...others] = parts;
    if (mail?.document === undefined) throw new Error('The parser process returned the parts of no mail.');
    return { ...mail.document, parts: others };
  }
}

function compare(a: number[], b: number[]): number {
  for (const [depth, step] of a.entries()) {
    const other = b[depth];
    if (other === undefined) return 1;
    if (step !== other) return step - other;
  }
  return a.length - b.length;
}
