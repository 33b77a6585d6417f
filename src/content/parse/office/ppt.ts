import { decodeUtf16 } from '../format/utf16.ts';
import { failed, type ParsedDocument, unsupported } from '../types.ts';
import { type Block, escapeText, oneLine, writeMarkdown } from '../write-markdown.ts';
import type { CompoundFile } from './cfb.ts';

type Atom = { type: number; instance: number; body: Buffer; isContainer: boolean };
type SlideText = { kind: number; text: string; rows?: string[][] };

const depthMax = 40;
const slideContainer = 1006;

/** An old PowerPoint presentation ([MS-PPT]): titles and texts of the slides in order. Throws ParseError. */
export function parsePpt(file: CompoundFile): ParsedDocument {
  const stream = file.read('PowerPoint Document');
  if (!stream) throw failed('The file is damaged: the presentation is missing.');
  const objects = persistedObjects(stream, file.read('Current User'));
  const document = atoms(stream).find((atom) => atom.type === 1000);
  const list = document ? atoms(document.body).find((atom) => atom.type === 4080 && atom.instance === 0) : undefined;
  const outline = list ? readOutline(list.body) : [];
  const blocks: Block[] = [];
  outline.forEach(({ reference, texts }, index) => {
    if (index > 0) blocks.push({ type: 'comment', text: `slide ${index + 1}` });
    const offset = objects.get(reference);
    const drawn = offset === undefined ? [] : drawnTexts(atoms(stream.subarray(offset))[0]);
    blocks.push(
      ...slideBlocks(
        texts.length > 0
          ? [...texts, ...drawn.filter((one) => !texts.some((known) => known.text === one.text))]
          : drawn,
      ),
    );
  });
  return { kind: 'ppt', markdown: writeMarkdown(blocks), pages: outline.length };
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

type Outline = { reference: number; texts: SlideText[] };

/** The document's list of slides, each with the texts of its title and body placeholders. */
function readOutline(list: Buffer): Outline[] {
  const slides: Outline[] = [];
  let kind = 4;
  for (const atom of atoms(list)) {
    if (atom.type === 1011)
      slides.push({ reference: atom.body.byteLength >= 4 ? atom.body.readUInt32LE(0) : 0, texts: [] });
    else if (atom.type === 3999) kind = atom.body.byteLength >= 4 ? atom.body.readUInt32LE(0) : 4;
    else if (atom.type === 4000 || atom.type === 4008) slides.at(-1)?.texts.push({ kind, text: atomText(atom) });
  }
  return slides;
}

/** Texts in the shapes of a slide, in drawing order. */
function drawnTexts(slide: Atom | undefined): SlideText[] {
  const texts: SlideText[] = [];
  let kind = 4;
  const visit = (atom: Atom, depth: number): void => {
    if (atom.type === 3999 && atom.body.byteLength >= 4) kind = atom.body.readUInt32LE(0);
    else if (atom.type === 4000 || atom.type === 4008) texts.push({ kind, text: atomText(atom) });
    else if (isTable(atom)) texts.push({ kind: 4, text: '', rows: tableRows(atom) });
    else if ((atom.isContainer || atom.type === 0xf00d) && depth < depthMax)
      for (const inner of atoms(atom.body)) visit(inner, depth + 1);
  };
  if (slide?.type === slideContainer) visit(slide, 0);
  return texts;
}

const groupContainer = 0xf003;
const shapeContainer = 0xf004;
const childAnchor = 0xf00f;
const tertiaryProperties = 0xf122;
const tableProperty = 0x039f;
const tableColumnsMax = 100;
const tableCellsMax = 1_000;

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
  return tops.map((top) =>
    lefts.map((left) => {
      const cell = cells.find(
        (one) => one.left <= left && left < one.right && one.top <= top && top < one.bottom && one.text !== '',
      );
      return escapeText(oneLine(cell?.text ?? ''));
    }),
  );
}

function readCell(shape: Atom): TableCell[] {
  if (shape.type !== shapeContainer) return [];
  const place = atoms(shape.body).find(({ type }) => type === childAnchor)?.body;
  if (!place || place.byteLength < 16) return [];
  const texts = drawnTexts({ ...shape, type: slideContainer, isContainer: true });
  const [left = 0, top = 0, right = 0, bottom = 0] = [0, 4, 8, 12].map((at) => place.readInt32LE(at));
  if (right <= left || bottom <= top) return [];
  return [{ left, top, right, bottom, text: texts.map(({ text }) => text).join(' ') }];
}

function atomText(atom: Atom): string {
  return atom.type === 4000 ? decodeUtf16(atom.body) : atom.body.toString('latin1');
}

/** The offset of each numbered object in the newest edit that contains it. */
function persistedObjects(stream: Buffer, currentUser: Buffer | undefined): Map<number, number> {
  const objects = new Map<number, number>();
  if (!currentUser || currentUser.byteLength < 20) return objects;
  if (currentUser.readUInt32LE(12) === 0xf3d1c4df) throw unsupported('The presentation is protected by a password.');
  let edit = currentUser.readUInt32LE(16);
  for (let guard = 0; guard < 1000 && edit > 0 && edit + 28 <= stream.byteLength; guard++) {
    const directory = stream.readUInt32LE(edit + 20);
    const atom = atoms(stream.subarray(directory))[0];
    if (atom?.type === 6002) readDirectory(atom.body, objects);
    const previous = stream.readUInt32LE(edit + 16);
    if (previous >= edit) break;
    edit = previous;
  }
  return objects;
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

/** The records of one level. A record that extends past the end is the last. */
function atoms(bytes: Buffer): Atom[] {
  const found: Atom[] = [];
  let at = 0;
  while (at + 8 <= bytes.byteLength) {
    const head = bytes.readUInt16LE(at);
    const length = bytes.readUInt32LE(at + 4);
    const body = bytes.subarray(at + 8, at + 8 + length);
    found.push({ type: bytes.readUInt16LE(at + 2), instance: head >>> 4, isContainer: (head & 15) === 15, body });
    if (found.length === 1 && at === 0 && bytes.byteLength > at + 8 + length && found[0]?.type === 1006) break;
    at += 8 + length;
  }
  return found;
}
