import { decodeUtf16 } from '../format/utf16.ts';
import { failed, type ParsedDocument, unsupported } from '../types.ts';
import { type Block, escapeText, oneLine, writeInline, writeMarkdown } from '../write-markdown.ts';
import type { CompoundFile } from './cfb.ts';
import { DocFormats, type ParagraphFormat } from './doc-formats.ts';

type Piece = { from: number; to: number; offset: number; wide: boolean };

/** An old Word document (Word 97 to 2003, [MS-DOC]): paragraphs, headings, lists, tables. Throws ParseError. */
export function parseDoc(file: CompoundFile): ParsedDocument {
  const main = file.read('WordDocument');
  if (!main || main.byteLength < 0x1aa) throw failed('The file is damaged: the text of the Word document is missing.');
  const flags = main.readUInt16LE(0x0a);
  if (flags & 0x0100) throw unsupported('The document is protected by a password.');
  if (main.readUInt16LE(2) < 0x00c1)
    throw unsupported('Word documents older than Word 97 cannot be read. Save the document as docx.');
  const table = file.read(flags & 0x0200 ? '1Table' : '0Table');
  if (!table) throw failed('The file is damaged: the structure of the Word document is missing.');
  try {
    return { kind: 'doc', markdown: writeMarkdown(readBlocks(main, table)) };
  } catch (error) {
    if (error instanceof RangeError) throw failed('The Word document is damaged or truncated.', error);
    throw error;
  }
}

function readBlocks(main: Buffer, table: Buffer): Block[] {
  const pieces = readPieces(main, table);
  const bodyCharacters = main.readUInt32LE(0x4c);
  const formats = new DocFormats(main, table);
  const builder = new BlockBuilder(formats);
  let text = '';
  let position = 0;
  for (const piece of pieces) {
    const length = Math.min(piece.to, bodyCharacters) - piece.from;
    if (length <= 0) break;
    const bytes = main.subarray(piece.offset, piece.offset + length * (piece.wide ? 2 : 1));
    const characters = piece.wide ? decodeUtf16(bytes) : new TextDecoder('windows-1252').decode(bytes);
    for (let index = 0; index < characters.length; index++) {
      const character = characters.charAt(index);
      position = piece.offset + index * (piece.wide ? 2 : 1);
      if (character === '\r' || character === '\u0007' || character === '\f') {
        builder.paragraph(text, character, formats.paragraphAt(position));
        text = '';
      } else text += character;
    }
  }
  builder.paragraph(text, '\r', formats.paragraphAt(position));
  return builder.finish();
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

class BlockBuilder {
  readonly #formats: DocFormats;
  readonly #blocks: Block[] = [];
  #cell: Block[] = [];
  #row: string[] = [];
  #rows: string[][] = [];

  constructor(formats: DocFormats) {
    this.#formats = formats;
  }

  paragraph(raw: string, end: string, format: ParagraphFormat): void {
    const text = escapeText(visibleText(raw)).trim();
    const block = this.#block(text, format);
    if (format.inTable || end === '\u0007') {
      if (block) this.#cell.push(block);
      if (end !== '\u0007') return;
      if (format.rowEnd) this.#endRow();
      else {
        this.#row.push(writeInline(this.#cell));
        this.#cell = [];
      }
      return;
    }
    this.#endTable();
    if (block) this.#blocks.push(block);
  }

  finish(): Block[] {
    this.#endTable();
    return this.#blocks;
  }

  #block(text: string, format: ParagraphFormat): Block | undefined {
    if (text === '') return undefined;
    if (format.heading !== undefined) return { type: 'heading', level: format.heading, text: oneLine(text) };
    if (format.list === undefined) return { type: 'paragraph', text: text.replaceAll('\v', '  \n') };
    const label = this.#formats.label(format.list, format.level);
    if (/^\d+[.)]$/.test(label)) return { type: 'item', depth: format.level, marker: label, text };
    return {
      type: 'item',
      depth: format.level,
      marker: '-',
      text: label === '' || label === '-' ? text : `${escapeText(label)} ${text}`,
    };
  }

  #endRow(): void {
    if (this.#row.length > 0) this.#rows.push(this.#row);
    this.#row = [];
    this.#cell = [];
  }

  #endTable(): void {
    this.#endRow();
    if (this.#rows.length > 0) this.#blocks.push({ type: 'table', rows: this.#rows });
    this.#rows = [];
  }
}

/** The visible text: field instructions between marks 19 and 20 and other marks are removed. */
function visibleText(raw: string): string {
  let text = '';
  let hidden = 0;
  const fields: boolean[] = [];
  for (const character of raw) {
    const code = character.charCodeAt(0);
    if (code === 0x13) {
      fields.push(true);
      hidden += 1;
    } else if (code === 0x14) {
      if (fields.at(-1)) hidden -= 1;
      fields[fields.length - 1] = false;
    } else if (code === 0x15) {
      if (fields.pop()) hidden -= 1;
    } else if (hidden <= 0) {
      if (code === 0x1e) text += '\u2011';
      else if (code === 9 || code === 0xa0) text += ' ';
      else if (code === 0x0b) text += '\v';
      else if (code >= 0x20) text += character;
    }
  }
  return text;
}
