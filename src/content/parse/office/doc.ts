import { failed, type ParsedDocument, unsupported } from '../types.ts';
import { type Block, escapeText, oneLine, writeInline, writeMarkdown } from '../write-markdown.ts';
import type { CompoundFile } from './cfb.ts';
import { DocFormats, type ParagraphFormat } from './doc-formats.ts';
import { noteMark, type Paragraph, readDocText } from './doc-text.ts';

/** An old Word document (Word 97 to 2003, [MS-DOC]): paragraphs, headings, lists, tables, notes, text boxes. Throws ParseError. */
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
  const formats = new DocFormats(main, table);
  const { body, boxes } = readDocText(main, table);
  const notes: Paragraph[][] = [];
  const blocks = [body, ...boxes].flatMap((paragraphs) => writeStory(paragraphs, formats, notes));
  notes.forEach((note, index) => {
    blocks.push({ type: 'note', label: String(index + 1), blocks: writeStory(note, formats, []) });
  });
  return blocks;
}

/** The blocks of these paragraphs. Adds the notes that they refer to, whose labels count on. */
function writeStory(paragraphs: Paragraph[], formats: DocFormats, notes: Paragraph[][]): Block[] {
  const builder = new BlockBuilder(formats);
  for (const { text, end, offset, notes: own, boxes } of paragraphs) {
    const labels = own.map((note) => `[^${notes.push(note)}]`);
    const inside = boxes.flatMap((box) => writeStory(box, formats, notes));
    builder.paragraph(text, end, formats.paragraphAt(offset), { labels, inside });
  }
  return builder.finish();
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

  /** Adds a paragraph with the labels of its notes, and the blocks of the text boxes that are anchored in it after it. */
  paragraph(
    raw: string,
    end: string,
    format: ParagraphFormat,
    { labels, inside }: { labels: string[]; inside: Block[] },
  ): void {
    const pending = [...labels];
    const text = escapeText(visibleText(raw))
      .trim()
      .replaceAll(noteMark, () => pending.shift() ?? '');
    const block = this.#block(text, format);
    const blocks = block ? [block, ...inside] : inside;
    if (format.inTable || end === '\u0007') {
      this.#cell.push(...blocks);
      if (end !== '\u0007') return;
      if (format.rowEnd) this.#endRow();
      else {
        this.#row.push(writeInline(this.#cell));
        this.#cell = [];
      }
      return;
    }
    this.#endTable();
    this.#blocks.push(...blocks);
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
      else if (character === noteMark) text += character;
      else if (code >= 0x20) text += character;
    }
  }
  return text;
}
