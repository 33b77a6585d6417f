import { decodeUtf16 } from '../format/utf16.ts';
import { formatNumber } from './list-numbers.ts';

export type ParagraphFormat = {
  heading: number | undefined;
  inTable: boolean;
  rowEnd: boolean;
  /** Index of the list, from 1, or undefined. */
  list: number | undefined;
  level: number;
};

type Style = { base: number; identifier: number; properties: Buffer; name: string };
type Level = { start: number; format: number; text: string };
type Range = { from: number; to: number; style: number; properties: Buffer };

const plain: ParagraphFormat = { heading: undefined, inTable: false, rowEnd: false, list: undefined, level: 0 };

/** Paragraph formats, styles and lists of an old Word document ([MS-DOC] 2.8, 2.9). */
export class DocFormats {
  readonly #ranges: Range[];
  readonly #styles: Style[];
  readonly #lists: Level[][];
  readonly #counters = new Map<number, number[]>();

  constructor(main: Buffer, table: Buffer) {
    this.#ranges = readOptional(() => readRanges(main, table)) ?? [];
    this.#styles = readOptional(() => readStyles(main, table)) ?? [];
    this.#lists = readOptional(() => readLists(main, table)) ?? [];
  }

  /** The format of the paragraph whose last character is at that offset of the main stream. */
  paragraphAt(offset: number): ParagraphFormat {
    let low = 0;
    let high = this.#ranges.length - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const range = this.#ranges[middle];
      if (!range) break;
      if (offset < range.from) high = middle - 1;
      else if (offset >= range.to) low = middle + 1;
      else return this.#resolve(range);
    }
    return plain;
  }

  /** Counts one item of a list and returns its label; `-` for a bullet. */
  label(list: number, level: number): string {
    const levels = this.#lists[list - 1];
    const own = levels?.[level];
    if (!levels || !own) return '-';
    if (own.format === 23 || own.format === 255) return '-';
    const counters = this.#counters.get(list) ?? [];
    counters[level] = (counters[level] ?? own.start - 1) + 1;
    counters.length = level + 1;
    this.#counters.set(list, counters);
    return (
      own.text
        // biome-ignore lint/suspicious/noControlCharactersInRegex: they are placeholders for the level numbers
        .replaceAll(/[\u0000-\u0008]/g, (digit) => {
          const at = digit.charCodeAt(0);
          return formatNumber(
            counters[at] ?? levels[at]?.start ?? 1,
            numberFormats[levels[at]?.format ?? 0] ?? 'decimal',
          );
        })
        .trim()
    );
  }

  #resolve(range: Range): ParagraphFormat {
    const format: ParagraphFormat = { ...plain };
    const chain: Style[] = [];
    for (let index = range.style; chain.length < 12; ) {
      const style = this.#styles[index];
      if (!style) break;
      chain.push(style);
      index = style.base;
    }
    for (const style of chain) {
      if (format.heading === undefined && style.identifier >= 1 && style.identifier <= 9)
        format.heading = style.identifier;
      if (format.heading === undefined && style.identifier === 62) format.heading = 1;
    }
    for (const style of chain.reverse()) applyProperties(format, style.properties);
    applyProperties(format, range.properties);
    return format;
  }
}

const numberFormats: Record<number, string> = {
  0: 'decimal',
  1: 'upperRoman',
  2: 'lowerRoman',
  3: 'upperLetter',
  4: 'lowerLetter',
  22: 'decimalZero',
};

/** Applies the single property modifiers that matter here; others are skipped by their operand size. */
function applyProperties(format: ParagraphFormat, properties: Buffer): void {
  let at = 0;
  while (at + 2 < properties.byteLength) {
    const code = properties.readUInt16LE(at);
    at += 2;
    const value = properties.readUInt8(at);
    if (code === 0x2416) format.inTable = value !== 0;
    else if (code === 0x2417) format.rowEnd = value !== 0;
    else if (code === 0x260a) format.level = Math.min(8, value);
    else if (code === 0x2640 && value < 9) format.heading = value + 1;
    else if (code === 0x460b && at + 2 <= properties.byteLength) {
      const list = properties.readUInt16LE(at);
      format.list = list === 0 || list > 2046 ? undefined : list;
    }
    at += operandBytes(code, properties, at);
  }
}

function operandBytes(code: number, properties: Buffer, at: number): number {
  const kind = code >>> 13;
  if (kind < 2) return 1;
  if (kind === 2 || kind === 4 || kind === 5) return 2;
  if (kind === 3) return 4;
  if (kind === 7) return 3;
  if (code === 0xd608 || code === 0xd606) return properties.readUInt16LE(at) + 1;
  return properties.readUInt8(at) + 1;
}

/** Formatted disk pages: paragraphs by file offset, each with its style and its own properties. */
function readRanges(main: Buffer, table: Buffer): Range[] {
  const start = main.readUInt32LE(0x102);
  const size = main.readUInt32LE(0x106);
  const count = Math.floor((size - 4) / 8);
  const ranges: Range[] = [];
  for (let index = 0; index < count; index++) {
    const page = (table.readUInt32LE(start + (count + 1) * 4 + index * 4) & 0x3fffff) * 512;
    if (page + 512 > main.byteLength) continue;
    const runs = main.readUInt8(page + 511);
    for (let run = 0; run < runs; run++) {
      const at = main.readUInt8(page + (runs + 1) * 4 + run * 13) * 2;
      let properties: Buffer = Buffer.alloc(0);
      if (at > 0) {
        const words = main.readUInt8(page + at);
        const from = words === 0 ? page + at + 2 : page + at + 1;
        const length = words === 0 ? main.readUInt8(page + at + 1) * 2 : words * 2 - 1;
        properties = main.subarray(from, from + length);
      }
      ranges.push({
        from: main.readUInt32LE(page + run * 4),
        to: main.readUInt32LE(page + (run + 1) * 4),
        style: properties.byteLength >= 2 ? properties.readUInt16LE(0) : 0,
        properties: properties.subarray(2),
      });
    }
  }
  return ranges.sort((a, b) => a.from - b.from);
}

/**
 * The parts of the main stream, in ascending order, whose characters are hidden or deletions that are tracked. Empty if
 * the formats of characters cannot be read.
 */
export function readHidden(main: Buffer, table: Buffer): { from: number; to: number }[] {
  return readOptional(() => characterRuns(main, table).filter(({ properties }) => hides(properties))) ?? [];
}

function hides(properties: Buffer): boolean {
  let hidden = false;
  for (let at = 0; at + 2 < properties.byteLength; ) {
    const code = properties.readUInt16LE(at);
    at += 2;
    if (code === 0x0800 || code === 0x083c) hidden ||= properties.readUInt8(at) === 1;
    at += operandBytes(code, properties, at);
  }
  return hidden;
}

/** Formatted disk pages of characters: runs by file offset, each with its own properties. */
function characterRuns(main: Buffer, table: Buffer): { from: number; to: number; properties: Buffer }[] {
  const start = main.readUInt32LE(0xfa);
  const count = Math.floor((main.readUInt32LE(0xfe) - 4) / 8);
  const runs: { from: number; to: number; properties: Buffer }[] = [];
  for (let index = 0; index < count; index++) {
    const page = (table.readUInt32LE(start + (count + 1) * 4 + index * 4) & 0x3fffff) * 512;
    if (page + 512 > main.byteLength) continue;
    const inPage = main.readUInt8(page + 511);
    for (let run = 0; run < inPage; run++) {
      const at = page + main.readUInt8(page + (inPage + 1) * 4 + run) * 2;
      const properties = at === page ? Buffer.alloc(0) : main.subarray(at + 1, at + 1 + main.readUInt8(at));
      const [from, to] = [main.readUInt32LE(page + run * 4), main.readUInt32LE(page + (run + 1) * 4)];
      if (from < to) runs.push({ from, to, properties });
    }
  }
  return runs.sort((a, b) => a.from - b.from);
}

function readStyles(main: Buffer, table: Buffer): Style[] {
  const start = main.readUInt32LE(0xa2);
  const end = start + main.readUInt32LE(0xa6);
  const headerBytes = table.readUInt16LE(start);
  const baseBytes = table.readUInt16LE(start + 4);
  const styles: Style[] = [];
  let at = start + 2 + headerBytes;
  while (at + 2 <= end) {
    const length = table.readUInt16LE(at);
    at += 2;
    styles.push(readStyle(table.subarray(at, at + length), baseBytes));
    at += length;
  }
  return styles;
}

function readStyle(bytes: Buffer, baseBytes: number): Style {
  const none: Style = { base: 0xfff, identifier: 0xfff, properties: Buffer.alloc(0), name: '' };
  if (bytes.byteLength < baseBytes + 2) return none;
  const kind = bytes.readUInt16LE(2) & 15;
  const nameLength = bytes.readUInt16LE(baseBytes);
  const name = decodeUtf16(bytes, baseBytes + 2, baseBytes + 2 + nameLength * 2);
  let at = baseBytes + 2 + nameLength * 2 + 2;
  at += at & 1;
  let properties: Buffer = Buffer.alloc(0);
  if (kind === 1 && at + 2 <= bytes.byteLength) properties = bytes.subarray(at + 4, at + 2 + bytes.readUInt16LE(at));
  return { base: bytes.readUInt16LE(2) >>> 4, identifier: bytes.readUInt16LE(0) & 0xfff, properties, name };
}

/** The levels of each list that paragraphs use (through the list overrides). */
function readLists(main: Buffer, table: Buffer): Level[][] {
  const start = main.readUInt32LE(0x2e2);
  const count = table.readUInt16LE(start);
  const definitions: { id: number; simple: boolean }[] = [];
  for (let index = 0; index < count; index++) {
    const at = start + 2 + index * 28;
    definitions.push({ id: table.readUInt32LE(at), simple: (table.readUInt8(at + 26) & 1) === 1 });
  }
  const byId = new Map<number, Level[]>();
  let at = start + 2 + count * 28;
  for (const { id, simple } of definitions) {
    const levels: Level[] = [];
    for (let index = 0; index < (simple ? 1 : 9); index++) {
      const startAt = table.readInt32LE(at);
      const format = table.readUInt8(at + 4);
      const skipped = table.readUInt8(at + 24) + table.readUInt8(at + 25);
      at += 28 + skipped;
      const length = table.readUInt16LE(at);
      levels.push({ start: startAt, format, text: decodeUtf16(table, at + 2, at + 2 + length * 2) });
      at += 2 + length * 2;
    }
    byId.set(id, levels);
  }
  const overrides = main.readUInt32LE(0x2ea);
  const overrideCount = table.readUInt32LE(overrides);
  return Array.from(
    { length: Math.min(overrideCount, 2046) },
    (_, index) => byId.get(table.readUInt32LE(overrides + 4 + index * 16)) ?? [],
  );
}

/** Returns undefined for a structure that cannot be read: the text is readable without it. */
function readOptional<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
