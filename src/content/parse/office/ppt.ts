import { decodeUtf16 } from '../format/utf16.ts';
import { failed, type ParsedDocument, unsupported } from '../types.ts';
import { type Block, escapeText, oneLine, writeMarkdown } from '../write-markdown.ts';
import type { CompoundFile } from './cfb.ts';

type Atom = { type: number; instance: number; body: Buffer; isContainer: boolean };
type SlideText = { kind: number; text: string; rows?: string[][] };

const depthMax = 40;
const documentContainer = 1000;
const slideContainer = 1006;
const notesContainer = 1008;
const notesText = 2;

/** An old PowerPoint presentation ([MS-PPT]): titles, texts and notes of the slides in order. Throws ParseError. */
export function parsePpt(file: CompoundFile): ParsedDocument {
  const stream = file.read('PowerPoint Document');
  if (!stream) throw failed('The file is damaged: the presentation is missing.');
  const { objects, documentId } = persistedObjects(stream, file.read('Current User'));
  const newest = atomAt(stream, objects.get(documentId));
  const document =
    newest?.type === documentContainer ? newest : atoms(stream).find(({ type }) => type === documentContainer);
  const lists = document ? atoms(document.body).filter(({ type }) => type === 4080) : [];
  const outlineOf = (instance: number): Outline[] =>
    readOutline(lists.find((list) => list.instance === instance)?.body ?? Buffer.alloc(0));
  const slides = outlineOf(0);
  const unread = new UnreadObjects(stream, objects);
  const notes = readNotes(outlineOf(2).map(({ reference }) => unread.take(reference)));
  const blocks: Block[] = [];
  slides.forEach(({ reference, id, texts }, index) => {
    if (index > 0) blocks.push({ type: 'comment', text: `slide ${index + 1}` });
    const slide = unread.take(reference);
    const drawn = slide?.type === slideContainer ? drawnTexts(slide) : [];
    const known = new Set(texts.map(({ text }) => text));
    blocks.push(
      ...slideBlocks([...texts, ...drawn.filter((one) => !known.has(one.text))]),
      ...noteBlocks(notes.get(id) ?? []),
    );
  });
  return { kind: 'ppt', markdown: writeMarkdown(blocks), pages: slides.length };
}

/** The texts of the notes pages, by the slide that they belong to. */
function readNotes(pages: (Atom | undefined)[]): Map<number, SlideText[]> {
  const notes = new Map<number, SlideText[]>();
  for (const page of pages) {
    if (page?.type !== notesContainer) continue;
    const own = atoms(page.body).find(({ type }) => type === 1009)?.body;
    if (own && own.byteLength >= 4)
      notes.set(
        own.readUInt32LE(0),
        drawnTexts(page).filter(({ kind }) => kind === notesText),
      );
  }
  return notes;
}

function noteBlocks(texts: SlideText[]): Block[] {
  const blocks = slideBlocks(texts);
  return blocks.length === 0 ? [] : [{ type: 'quote', blocks: [{ type: 'paragraph', text: 'Notes:' }, ...blocks] }];
}

function slideBlocks(texts: SlideText[]): Block[] {
  const isTitle = (one: SlideText): boolean => one.kind === 0 || one.kind === 6;
  const sorted = [...texts.filter(isTitle), ...texts.filter((one) => !isTitle(one))];
  return sorted.flatMap((one): Block[] => {
    if (one.rows) return [{ type: 'table', rows: one.rows }];
    const paragraphs = one.text
      .split(/[\r\n]/)
      .map((line) => escapeText(line.replaceAll('\v', ' ').trim()))
      .filter((line) => line !== '' && line !== '\\*');
    if (isTitle(one)) return [{ type: 'heading', level: 1, text: oneLine(paragraphs.join(' ')) }];
    if (one.kind === 1 || one.kind === 7 || one.kind === 8)
      return paragraphs.map((text) => ({ type: 'item', depth: 0, marker: '-', text }));
    return paragraphs.map((text) => ({ type: 'paragraph', text }));
  });
}

type Outline = { reference: number; id: number; texts: SlideText[] };

/** The document's list of slides, each with the texts of its title and body placeholders. */
function readOutline(list: Buffer): Outline[] {
  const slides: Outline[] = [];
  let kind = 4;
  for (const atom of atoms(list)) {
    if (atom.type === 1011) slides.push({ reference: numberAt(atom.body, 0), id: numberAt(atom.body, 12), texts: [] });
    else if (atom.type === 3999) kind = atom.body.byteLength >= 4 ? atom.body.readUInt32LE(0) : 4;
    else if (atom.type === 4000 || atom.type === 4008) slides.at(-1)?.texts.push({ kind, text: atomText(atom) });
  }
  return slides;
}

function numberAt(body: Buffer, at: number): number {
  return body.byteLength >= at + 4 ? body.readUInt32LE(at) : 0;
}

/** Texts in the shapes of a slide, in drawing order. */
function drawnTexts(slide: Atom): SlideText[] {
  const texts: SlideText[] = [];
  let kind = 4;
  const visit = (atom: Atom, depth: number): void => {
    if (atom.type === 3999 && atom.body.byteLength >= 4) kind = atom.body.readUInt32LE(0);
    else if (atom.type === 4000 || atom.type === 4008) texts.push({ kind, text: atomText(atom) });
    else if (isTable(atom)) texts.push({ kind: 4, text: '', rows: tableRows(atom) });
    else if ((atom.isContainer || atom.type === 0xf00d) && depth < depthMax)
      for (const inner of atoms(atom.body)) visit(inner, depth + 1);
  };
  visit(slide, 0);
  return texts;
}

const groupContainer = 0xf003;
const shapeContainer = 0xf004;
const childAnchor = 0xf00f;
const tertiaryProperties = 0xf122;
const tableProperty = 0x039f;
const tableColumnsMax = 100;
const tableCellsMax = 1_000;
/** The places that merged cells may fill in one table. Further places stay empty. */
const repeatedPlacesMax = 50_000;

/** Whether a group of shapes is a table, which the properties of its first shape, the group's own, state. */
function isTable(atom: Atom): boolean {
  if (atom.type !== groupContainer) return false;
  const own = atoms(atom.body).find(({ type }) => type === shapeContainer);
  return (own ? atoms(own.body) : []).some(({ type, instance, body }) => {
    if (type !== tertiaryProperties) return false;
    for (let at = 0; at < instance * 6 && at + 6 <= body.byteLength; at += 6)
      if ((body.readUInt16LE(at) & 0x3fff) === tableProperty) return (body.readUInt32LE(at + 2) & 1) === 1;
    return false;
  });
}

type TableCell = { left: number; top: number; right: number; bottom: number; text: string };

/** The cells by their places; a merged cell repeats its text. Lines of the table are shapes without text. */
function tableRows(table: Atom): string[][] {
  const cells = atoms(table.body).flatMap(readCell).slice(0, tableCellsMax);
  const lefts = [...new Set(cells.map(({ left }) => left))].sort((a, b) => a - b).slice(0, tableColumnsMax);
  const tops = [...new Set(cells.map(({ top }) => top))].sort((a, b) => a - b);
  const rows = tops.map(() => lefts.map(() => ''));
  let repeated = 0;
  for (const cell of cells) {
    const text = escapeText(oneLine(cell.text));
    const first = lefts.indexOf(cell.left);
    if (text === '' || first < 0) continue;
    for (let y = tops.indexOf(cell.top), top = cell.top; top < cell.bottom; top = tops[++y] ?? cell.bottom)
      for (let x = first, left = cell.left; left < cell.right; left = lefts[++x] ?? cell.right) {
        const row = rows[y];
        const isOwn = top === cell.top && x === first;
        // Cells that lie on each other would be written a hundred thousand times.
        if (!isOwn && repeated++ >= repeatedPlacesMax) break;
        if (row?.[x] === '') row[x] = text;
      }
  }
  return rows;
}

function readCell(shape: Atom): TableCell[] {
  if (shape.type !== shapeContainer) return [];
  const place = atoms(shape.body).find(({ type }) => type === childAnchor)?.body;
  if (!place || place.byteLength < 16) return [];
  const texts = drawnTexts(shape);
  const [left = 0, top = 0, right = 0, bottom = 0] = [0, 4, 8, 12].map((at) => place.readInt32LE(at));
  if (right <= left || bottom <= top) return [];
  return [{ left, top, right, bottom, text: texts.map(({ text }) => text).join(' ') }];
}

function atomText(atom: Atom): string {
  return atom.type === 4000 ? decodeUtf16(atom.body) : atom.body.toString('latin1');
}

/**
 * The objects of the slides and notes, each once: many slides may name one object, or objects within each other, which would
 * be read again for each slide. Objects that do not overlap are together no longer than the stream.
 */
class UnreadObjects {
  readonly #stream: Buffer;
  readonly #objects: Map<number, number>;
  readonly #taken = new Set<number>();
  #bytesLeft: number;

  constructor(stream: Buffer, objects: Map<number, number>) {
    this.#stream = stream;
    this.#objects = objects;
    this.#bytesLeft = stream.byteLength;
  }

  /** Undefined for an object that is missing or was taken before. */
  take(reference: number): Atom | undefined {
    const offset = this.#objects.get(reference);
    const atom = atomAt(this.#stream, offset);
    if (offset === undefined || atom === undefined || this.#taken.has(offset)) return undefined;
    this.#taken.add(offset);
    this.#bytesLeft -= atom.body.byteLength;
    return this.#bytesLeft < 0 ? undefined : atom;
  }
}

/** The offset of each numbered object in the newest edit that contains it, and the number of the document. */
function persistedObjects(
  stream: Buffer,
  currentUser: Buffer | undefined,
): { objects: Map<number, number>; documentId: number } {
  const objects = new Map<number, number>();
  let documentId = 0;
  if (!currentUser || currentUser.byteLength < 20) return { objects, documentId };
  if (currentUser.readUInt32LE(12) === 0xf3d1c4df) throw unsupported('The presentation is protected by a password.');
  let edit = currentUser.readUInt32LE(16);
  for (let guard = 0; guard < 1000 && edit > 0 && edit + 28 <= stream.byteLength; guard++) {
    documentId ||= stream.readUInt32LE(edit + 24);
    const atom = atomAt(stream, stream.readUInt32LE(edit + 20));
    if (atom?.type === 6002) readDirectory(atom.body, objects);
    const previous = stream.readUInt32LE(edit + 16);
    if (previous >= edit) break;
    edit = previous;
  }
  return { objects, documentId };
}

function readDirectory(body: Buffer, objects: Map<number, number>): void {
  let at = 0;
  while (at + 4 <= body.byteLength) {
    const entry = body.readUInt32LE(at);
    at += 4;
    for (let index = 0; index < entry >>> 20 && at + 4 <= body.byteLength; index++, at += 4) {
      const id = (entry & 0xfffff) + index;
      if (!objects.has(id)) objects.set(id, body.readUInt32LE(at));
    }
  }
}

/** The records of one level. */
function atoms(bytes: Buffer): Atom[] {
  const found: Atom[] = [];
  let at = 0;
  for (let atom = atomAt(bytes, 0); atom; atom = atomAt(bytes, at)) {
    found.push(atom);
    at += 8 + bytes.readUInt32LE(at + 4);
  }
  return found;
}

/** The record that begins there. One that extends past the end is cut. */
function atomAt(bytes: Buffer, at: number | undefined): Atom | undefined {
  if (at === undefined || at + 8 > bytes.byteLength) return undefined;
  const head = bytes.readUInt16LE(at);
  const body = bytes.subarray(at + 8, at + 8 + bytes.readUInt32LE(at + 4));
  return { type: bytes.readUInt16LE(at + 2), instance: head >>> 4, isContainer: (head & 15) === 15, body };
}
