import { createHash, randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { AppError, invalidField } from '../../lib/errors.ts';
import { limits } from '../../lib/limits.ts';
import { freeBytes } from '../../lib/single-use-bytes.ts';
import { turns } from '../limits/turns.ts';
import { parseJson, parseScanned, type Scanned, scanInSteps } from './json.ts';
import { TextMemory } from './text-memory.ts';

/**
 * Long strings of a JSON body, kept in their encoded form. Parsing a body of 40 MB in one step would hold up every
 * other request for hundreds of milliseconds, so these strings are decoded in pieces when they are used.
 */
export type LongText = { decode(): Generator<string> };

class StoredText implements LongText {
  readonly #memory: TextMemory;
  readonly #start: number;
  readonly #end: number;

  /** The text is in the bytes from `start` to `end`, between the quotes. */
  constructor(memory: TextMemory, start: number, end: number) {
    this.#memory = memory;
    this.#start = start;
    this.#end = end;
  }

  /** Yields the text piece by piece, without splitting a surrogate pair. Throws 400 if it is not JSON in UTF-8. */
  *decode(): Generator<string> {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    let escaped = '';
    let surrogate = '';
    let at = this.#start;
    for (const piece of this.#memory.read(this.#start, this.#end)) {
      at += piece.length;
      const isLast = at === this.#end;
      const raw = escaped + decodeUtf8(decoder, piece, !isLast);
      const end = isLast ? raw.length : startOfLastEscape(raw);
      escaped = raw.slice(end);
      const text = surrogate + parseText(raw.slice(0, end));
      surrogate = !isLast && endsWithHighSurrogate(text) ? text.slice(-1) : '';
      yield surrogate === '' ? text : text.slice(0, -1);
    }
  }
}

/** A string of at most this many bytes is short, however many chunks it arrives in. */
const shortBytesMax = 64 * 1024;
const textsOfHolder = new WeakMap<object, Map<string, LongText>>();
const leftOutOf = new WeakMap<object, FoundText[]>();
/** Shared texts by their placeholder. */
const sharedTexts = new Map<string, LongText>();
/** A body of this size is parsed in turns of its own. */
const turnBytesMin = 256 * 1024;
/** Marks the place of a long string in the JSON that is parsed. It is random, so no client can forge it. */
const marker = `long-text-${randomBytes(16).toString('hex')}-`;

/** Takes the long strings out of a JSON body as it arrives. */
export class LongTextReader {
  readonly #kept: Uint8Array[] = [];
  #keptBytes = 0;
  readonly #texts: StoredText[] = [];
  readonly memory = new TextMemory();
  /** The part of the current string from earlier chunks, while the string is short. */
  #string: Uint8Array[] | undefined;
  #stringBytes = 0;
  /** Where the current string begins in memory if it is long. */
  #longFrom: number | undefined;
  #isEscaped = false;

  /** Copies what it needs: the chunk may be freed afterwards. */
  push(chunk: Uint8Array): void {
    let from = 0;
    for (let at = 0; at < chunk.length; ) {
      if (this.#string === undefined) {
        const start = chunk.indexOf(quote, at);
        if (start < 0) break;
        at = start + 1;
        const end = this.#endOfString(chunk, at);
        if (end >= 0 && end - at <= shortBytesMax) {
          at = end + 1;
          continue;
        }
        this.#keep(Buffer.from(chunk.subarray(from, at)));
        this.#string = [];
        this.#stringBytes = 0;
        from = this.#pushString(chunk, at, end);
      } else from = this.#pushString(chunk, at, this.#endOfString(chunk, at));
      at = from + 1;
    }
    if (this.#string === undefined) this.#keep(Buffer.from(chunk.subarray(from)));
  }

  /**
   * Returns the value of the body. Long strings at paths that match `left` stay out of it, for `findLongText`; all
   * others are put back.
   */
  async end(valuesMax: number, left: RegExp | undefined, app: string): Promise<unknown> {
    if (this.#string !== undefined) throw notJson();
    const bytes = Buffer.concat(this.#kept);
    for (const piece of this.#kept) freeBytes(piece);
    if (bytes.length === 0) return undefined;
    const value = await parseInTurns(bytes, valuesMax, app);
    const isWhole = this.#texts.length === 0 && !bytes.includes(marker);
    freeBytes(bytes);
    if (isWhole) return value;
    const holder = { value };
    const found: FoundText[] = [];
    this.#find(holder, [], found);
    const leftOut = found.filter(({ path }) => left?.test(path) === true);
    for (const { holder, name, text } of leftOut) {
      (holder as Record<string, unknown>)[name] = '';
      const texts = textsOfHolder.get(holder) ?? new Map<string, LongText>();
      textsOfHolder.set(holder, texts.set(name, text));
    }
    for (const { holder, name, text } of found)
      if (textsOfHolder.get(holder)?.get(name) !== text)
        (holder as Record<string, unknown>)[name] = await joinLongText(text, app);
    if (leftOut.length > 0) leftOutOf.set(holder.value as object, leftOut);
    return holder.value;
  }

  /** Keeps bytes that no chunk shares. */
  #keep(bytes: Uint8Array): void {
    this.#keptBytes += bytes.length;
    if (this.#keptBytes > limits.jsonShortBytesMax)
      throw new AppError(
        'payload_too_large',
        `The request body has more than ${limits.jsonShortBytesMax} bytes apart from strings of over ${shortBytesMax} bytes.`,
      );
    this.#kept.push(bytes);
  }

  /** The index of the closing quote, or -1 if it is not in this chunk. */
  #endOfString(chunk: Uint8Array, from: number): number {
    for (let at = from; ; ) {
      if (this.#isEscaped) {
        if (at >= chunk.length) return -1;
        this.#isEscaped = false;
        at += 1;
      }
      const end = chunk.indexOf(quote, at);
      const last = end < 0 ? chunk.length : end;
      let first = last;
      while (first > at && chunk[first - 1] === backslash) first -= 1;
      this.#isEscaped = (last - first) % 2 === 1;
      if (end < 0) return -1;
      if (!this.#isEscaped) return end;
      at = end;
    }
  }

  #extendString(piece: Uint8Array): void {
    this.#stringBytes += piece.length;
    if (this.#stringBytes <= shortBytesMax) {
      this.#string?.push(Buffer.from(piece));
      return;
    }
    this.#longFrom ??= this.memory.bytes;
    for (const each of [...(this.#string ?? []), piece]) this.memory.append(each);
    this.#string = [];
  }

  #endString(): void {
    if (this.#longFrom === undefined) for (const piece of this.#string ?? []) this.#keep(piece);
    else {
      this.#keep(Buffer.from(`${marker}${this.#texts.length}`));
      this.#texts.push(new StoredText(this.memory, this.#longFrom, this.memory.bytes));
    }
    this.#string = undefined;
    this.#longFrom = undefined;
  }

  /** Takes the part of the current string in this chunk. Returns the index of its end. */
  #pushString(chunk: Uint8Array, from: number, end: number): number {
    this.#extendString(chunk.subarray(from, end < 0 ? chunk.length : end));
    if (end >= 0) this.#endString();
    return end < 0 ? chunk.length : end;
  }

  #find(value: object, keys: string[], found: FoundText[]): void {
    // The body check refuses deeper nesting.
    if (keys.length > limits.jsonDepthMax) return;
    for (const [name, member] of Object.entries(value)) {
      if (name.startsWith(marker)) throw invalidField('body', `has a name of more than ${shortBytesMax} bytes`);
      keys.push(name);
      if (typeof member === 'object' && member !== null) this.#find(member, keys, found);
      else if (typeof member === 'string' && member.startsWith(marker)) {
        const text = this.#texts[Number(member.slice(marker.length))] ?? sharedTexts.get(member);
        // The request that shared the text has ended.
        if (text === undefined) throw notJson();
        // The first key is the one of the holder.
        found.push({ holder: value, name, path: keys.slice(1).join('.'), text });
      }
      keys.pop();
    }
  }
}

type FoundText = { holder: object; name: string; path: string; text: LongText };

const quote = 0x22;
const backslash = 0x5c;

/** The long string that was left out of this member, if any. */
export function findLongText(holder: object, name: string): LongText | undefined {
  return textsOfHolder.get(holder)?.get(name);
}

/** Paths and SHA-256 digests of the long strings that were left out of a body, ordered by path. */
export async function digestLongTexts(body: unknown, app: string): Promise<[string, string][]> {
  const digests: [string, string][] = [];
  for (const { path, text } of leftOutOf.get(Object(body) as object) ?? []) {
    const hash = createHash('sha256');
    for await (const piece of inTurns(app, text, (each) => Buffer.from(each))) hash.update(piece);
    digests.push([path, hash.digest('hex')]);
  }
  return digests.sort(([a], [b]) => (a < b ? -1 : 1));
}

/**
 * Returns a placeholder for the text, for use in bodies of requests within this process, and a function that frees
 * it. No response may contain the placeholder.
 */
export function shareLongText(text: LongText): { standIn: string; end: () => void } {
  const standIn = `${marker}${randomBytes(16).toString('hex')}`;
  sharedTexts.set(standIn, text);
  return { standIn, end: () => sharedTexts.delete(standIn) };
}

/** Whether this string is the placeholder of a shared text. */
export function isStandIn(text: string): boolean {
  return sharedTexts.has(text);
}

/** Returns the whole text as one string. */
export async function joinLongText(text: LongText, app: string): Promise<string> {
  const pieces: string[] = [];
  for await (const piece of inTurns(app, text, (each) => each)) pieces.push(piece);
  return pieces.join('');
}

/** Yields the text as UTF-8 in pieces, each in a turn of the app. 422 on the field for text that cannot be stored. */
export async function* encodeLongText(field: string, text: LongText, app: string): AsyncGenerator<Buffer> {
  yield* inTurns(app, text, (piece) => {
    if (!piece.isWellFormed()) throw invalidField(field, 'must not contain a lone surrogate');
    return Buffer.from(piece);
  });
}

/**
 * Decodes base64 (strict, RFC 4648 section 4) in pieces, each in a turn of the app. 422 on the field if it is
 * invalid.
 */
export async function* decodeLongBase64(field: string, text: LongText, app: string): AsyncGenerator<Buffer> {
  let left = '';
  let isOver = false;
  yield* inTurns(app, text, (piece) => {
    const all = left + piece;
    const whole = all.slice(0, all.length - (all.length % 4));
    left = all.slice(whole.length);
    if ((isOver && whole !== '') || !isBase64(whole)) throw notBase64(field);
    isOver ||= whole.endsWith('=');
    return Buffer.from(whole, 'base64');
  });
  if (left !== '') throw notBase64(field);
}

async function* inTurns<T extends { length: number }>(
  app: string,
  text: LongText,
  convert: (piece: string) => T,
): AsyncGenerator<T> {
  const texts = text.decode();
  const convertNext = () => {
    const converted: T[] = [];
    for (let length = 0; length < turnBytes; ) {
      const { done, value } = texts.next();
      if (done) break;
      const next = convert(value);
      converted.push(next);
      length += next.length;
    }
    return converted;
  };
  for (;;) {
    const converted = await turns.run(app, convertNext, (pieces) =>
      pieces.reduce((sum, { length }) => sum + length, 0),
    );
    if (converted.length === 0) return;
    yield* converted;
  }
}

/** The minimum number of decoded bytes in one turn. */
const turnBytes = 192 * 1024;

/** Whether the text consists of complete base64 groups of four with no spare bits set. Does not copy it. */
function isBase64(text: string): boolean {
  const last = text.slice(-4);
  return /^[A-Za-z0-9+/]*={0,2}$/.test(text) && Buffer.from(last, 'base64').toString('base64') === last;
}

export function notBase64(field: string): AppError {
  return invalidField(field, 'is not valid base64 (RFC 4648: letters A–Z a–z 0–9 + /, padded with =, no white space)');
}

function decodeUtf8(decoder: InstanceType<typeof TextDecoder>, bytes: Uint8Array, stream: boolean): string {
  try {
    return decoder.decode(bytes, { stream });
  } catch {
    throw notJson();
  }
}

function parseText(raw: string): string {
  // Most long strings are base64, and parsing would copy them twice.
  if (!/["\\\p{Cc}]/u.test(raw)) return raw;
  try {
    return JSON.parse(`"${raw}"`) as string;
  } catch {
    // The parser's message quotes the body, which may contain secrets: it must not reach the log.
    throw notJson();
  }
}

/** Parses a large body in two turns. What follows, its check first of all, is another one. */
async function parseInTurns(bytes: Uint8Array, valuesMax: number, app: string): Promise<unknown> {
  if (bytes.length < turnBytesMin) return parseJson(bytes, valuesMax);
  const steps = scanInSteps(bytes, valuesMax);
  let scanned: Scanned | undefined;
  for (let from = 0, done = false; !done; ) {
    const step = await turns.run(
      app,
      () => steps.next(),
      ({ value }) => (value?.at ?? from) - from,
    );
    done = step.done === true;
    if (!step.done) scanned = step.value;
    from = scanned?.at ?? from;
  }
  const value = await turns.run(
    app,
    () => parseScanned(bytes, scanned as Scanned),
    () => bytes.length,
  );
  await nextTurn();
  return value;
}

function notJson(): AppError {
  return new AppError('invalid_json', 'The request body is not valid JSON in UTF-8.');
}

/** `\uXXXX` is the longest escape. */
const escapeLength = 6;

/** Where an escape begins that may continue in the next piece, or the end if there is none. */
function startOfLastEscape(raw: string): number {
  const last = raw.lastIndexOf('\\');
  if (last < 0 || last < raw.length - escapeLength) return raw.length;
  let first = last;
  while (first > 0 && raw.charCodeAt(first - 1) === backslash) first -= 1;
  // An even number of backslashes is complete.
  return (last - first) % 2 === 0 ? last : raw.length;
}

function endsWithHighSurrogate(text: string): boolean {
  const code = text.charCodeAt(text.length - 1);
  return code >= 0xd800 && code <= 0xdbff;
}
