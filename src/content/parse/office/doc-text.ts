import { decodeUtf16 } from '../format/utf16.ts';
import { failed, requireTextSize } from '../types.ts';
import { readHidden } from './doc-formats.ts';

/** A paragraph with its marks, and what stands in its place elsewhere in the file. */
export type Paragraph = {
  text: string;
  /** The character that ends it. */
  end: string;
  /** Where that character is in the main stream. */
  offset: number;
  /** Its first character, counted over all stories. */
  start: number;
  /** The notes that it refers to, one for each `noteMark` in its text. */
  notes: Paragraph[][];
  /** The text boxes that are anchored in it. */
  boxes: Paragraph[][];
};

/** Text that is hidden or a tracked deletion is left out. */
type Source = { main: Buffer; pieces: Piece[]; hidden: Range[] };
type Range = { from: number; to: number };
type Piece = { from: number; to: number; offset: number; wide: boolean };
/** What belongs to a character of the body: the paragraphs of a note or of a text box. */
type Anchored = { kind: 'note' | 'box'; paragraphs: Paragraph[] };

/** Where the body refers to a note. */
export const noteMark = '\u0002';

/**
 * The text of an old Word document. Body, footnotes, comments, endnotes and text boxes are stories that follow each other in
 * one count of characters. Text boxes without a place in the body are returned beside it. Throws RangeError, ParseError.
 */
export function readDocText(main: Buffer, table: Buffer): { body: Paragraph[]; boxes: Paragraph[][] } {
  const source: Source = { main, pieces: readPieces(main, table), hidden: readHidden(main, table) };
  const lengths = [0x4c, 0x50, 0x54, 0x58, 0x5c, 0x60, 0x64].map((at) => main.readUInt32LE(at));
  const startOf = (story: number): number => lengths.slice(0, story).reduce((sum, one) => sum + one, 0);
  const read = (story: number, anchored = new Map<number, Anchored>()): Paragraph[] =>
    readParagraphs(source, { from: startOf(story), to: startOf(story) + (lengths[story] ?? 0) }, anchored);
  const anchored = new Map<number, Anchored>();
  const addNotes = (story: number, references: number, texts: number): void => {
    const starts = readPlaces(main, table, texts, 0).map(({ place }) => startOf(story) + place);
    const notes = divide(read(story), starts);
    readPlaces(main, table, references, 2).forEach(({ place }, index) => {
      const paragraphs = notes[index];
      if (paragraphs) anchored.set(place, { kind: 'note', paragraphs });
    });
  };
  addNotes(1, 0xaa, 0xb2);
  addNotes(5, 0x20a, 0x212);
  const places = readPlaces(main, table, 0x25a, 22);
  const shapes = new Map(readPlaces(main, table, 0x1da, 26).map(({ place, data }) => [data.readUInt32LE(0), place]));
  const boxes: Paragraph[][] = [];
  divide(
    read(6),
    places.map(({ place }) => startOf(6) + place),
  ).forEach((paragraphs, index) => {
    const place = shapes.get(places[index]?.data.readUInt32LE(14) ?? 0);
    if (place === undefined) boxes.push(paragraphs);
    else anchored.set(place, { kind: 'box', paragraphs });
  });
  return { body: read(0, anchored), boxes };
}

function readParagraphs(
  { main, pieces, hidden }: Source,
  { from, to }: { from: number; to: number },
  anchored: Map<number, Anchored>,
): Paragraph[] {
  const paragraphs: Paragraph[] = [];
  let current: Paragraph = { text: '', end: '\r', offset: 0, start: from, notes: [], boxes: [] };
  let characters = 0;
  for (const piece of pieces) {
    const width = piece.wide ? 2 : 1;
    const skipped = Math.max(0, from - piece.from);
    const length = Math.min(piece.to, to) - piece.from - skipped;
    if (length <= 0) continue;
    const begin = piece.offset + skipped * width;
    const bytes = main.subarray(begin, begin + length * width);
    const text = piece.wide ? decodeUtf16(bytes) : new TextDecoder('windows-1252').decode(bytes);
    characters += text.length;
    requireTextSize(characters);
    let next = firstEndingAfter(hidden, begin);
    for (let index = 0; index < text.length; index++) {
      const character = text.charAt(index);
      const at = piece.from + skipped + index;
      current.offset = begin + index * width;
      while ((hidden[next]?.to ?? Number.POSITIVE_INFINITY) <= current.offset) next += 1;
      const isHidden = (hidden[next]?.from ?? Number.POSITIVE_INFINITY) <= current.offset;
      const own = isHidden ? undefined : anchored.get(at);
      if (own) current[own.kind === 'note' ? 'notes' : 'boxes'].push(own.paragraphs);
      if (character === '\r' || character === '\u0007' || character === '\f') {
        paragraphs.push({ ...current, end: character });
        current = { ...current, text: '', start: at + 1, notes: [], boxes: [] };
      } else {
        if (character !== noteMark && (!isHidden || isFieldMark(character))) current.text += character;
        if (own?.kind === 'note') current.text += noteMark;
      }
    }
  }
  return [...paragraphs, current];
}

/** The begin, separator and end of a field keep their order, whatever of the field is hidden. */
function isFieldMark(character: string): boolean {
  return character >= '\u0013' && character <= '\u0015';
}

/** Binary search; the ranges are in ascending order. */
function firstEndingAfter(ranges: Range[], offset: number): number {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ranges[middle]?.to ?? 0) <= offset) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Divides paragraphs in ascending order into groups that begin at these characters. */
function divide(paragraphs: Paragraph[], starts: number[]): Paragraph[][] {
  const groups: Paragraph[][] = starts.map(() => []);
  let group = 0;
  for (const paragraph of paragraphs) {
    while (group + 1 < starts.length && paragraph.start >= (starts[group + 1] ?? 0)) group += 1;
    groups[group]?.push(paragraph);
  }
  return groups;
}

type Place = { place: number; data: Buffer };

/** A table of characters, each with data of that many bytes, whose place the main stream has at `at`; empty if damaged. */
function readPlaces(main: Buffer, table: Buffer, at: number, dataBytes: number): Place[] {
  if (at + 8 > main.byteLength) return [];
  const start = main.readUInt32LE(at);
  const bytes = table.subarray(start, start + main.readUInt32LE(at + 4));
  const count = Math.floor((bytes.byteLength - 4) / (4 + dataBytes));
  return Array.from({ length: Math.max(0, count) }, (_, index) => {
    const from = (count + 1) * 4 + index * dataBytes;
    return { place: bytes.readUInt32LE(index * 4), data: bytes.subarray(from, from + dataBytes) };
  });
}

/** The piece table: where in the file each run of characters is, and how wide its characters are. */
function readPieces(main: Buffer, table: Buffer): Piece[] {
  const start = main.readUInt32LE(0x1a2);
  const end = start + main.readUInt32LE(0x1a6);
  let at = start;
  while (at < end && table.readUInt8(at) === 1) at += 3 + table.readUInt16LE(at + 1);
  if (at >= end || table.readUInt8(at) !== 2)
    throw failed('The Word document is damaged: its text cannot be assembled.');
  const size = table.readUInt32LE(at + 1);
  const count = Math.floor((size - 4) / 12);
  at += 5;
  return Array.from({ length: count }, (_, index) => {
    const packed = table.readUInt32LE(at + (count + 1) * 4 + index * 8 + 2);
    const wide = (packed & 0x40000000) === 0;
    const offset = packed & 0x3fffffff;
    return {
      from: table.readUInt32LE(at + index * 4),
      to: table.readUInt32LE(at + (index + 1) * 4),
      offset: wide ? offset : offset >>> 1,
      wide,
    };
  });
}
