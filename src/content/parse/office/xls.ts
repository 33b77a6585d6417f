import { decodeUtf16 } from '../format/utf16.ts';
import { failed, type ParsedDocument, unsupported } from '../types.ts';
import { escapeText, writeMarkdown } from '../write-markdown.ts';
import { type Book, compactNumber, errorText, narrow, type Record, type Sheet, wideString } from './biff.ts';
import type { CompoundFile } from './cfb.ts';
import { numberFormat, numberText } from './number-format.ts';
import { SheetBudget, SheetGrid, sheetBlocks, workbookBlocks } from './sheet.ts';
import { XlsDrawings } from './xls-drawings.ts';

/** An old Excel workbook (BIFF5 and BIFF8, [MS-XLS]). Throws ParseError. */
export function parseXls(file: CompoundFile): ParsedDocument {
  const stream = file.read('Workbook') ?? file.read('Book');
  if (!stream) throw failed('The file is damaged: the workbook is missing.');
  const book = readGlobals(stream);
  const budget = new SheetBudget();
  const { blocks, pages } = workbookBlocks(book.sheets, ({ offset }) => {
    const drawn = new XlsDrawings(book);
    return [...sheetBlocks(readSheet(stream, offset, { book, budget, drawn })), ...drawn.blocks(budget)];
  });
  return { kind: 'xls', markdown: writeMarkdown(blocks), pages };
}

function readGlobals(stream: Buffer): Book {
  const book: Book = { sheets: [], strings: [], formats: [], from1904: false, wide: true };
  const formats = new Map<number, string>();
  const styles: number[] = [];
  for (const record of records(stream, 0)) {
    const { type, body } = record;
    if (type === 0x0809) book.wide = body.readUInt16LE(0) >= 0x0600;
    else if (type === 0x002f) throw unsupported('The workbook is protected by a password.');
    else if (type === 0x0085) book.sheets.push(readSheetEntry(body, book.wide));
    else if (type === 0x0022) book.from1904 = body.readUInt16LE(0) === 1;
    else if (type === 0x00e0) styles.push(body.readUInt16LE(2));
    else if (type === 0x041e)
      formats.set(body.readUInt16LE(0), book.wide ? wideString(body, 2, 2) : narrow(body.subarray(3)));
    else if (type === 0x00fc) book.strings = readStrings(stream, record);
    else if (type === 0x000a) break;
  }
  book.formats = styles.map((id) => numberFormat(id, formats.get(id)));
  return book;
}

function readSheetEntry(body: Buffer, wide: boolean): Sheet {
  const offset = body.readUInt32LE(0);
  const isWorksheet = body.readUInt8(5) === 0;
  const name = wide ? wideString(body, 6, 1) : narrow(body.subarray(7, 7 + body.readUInt8(6)));
  return { name, offset, hidden: body.readUInt8(4) !== 0 || !isWorksheet };
}

function readSheet(
  stream: Buffer,
  offset: number,
  { book, budget, drawn }: { book: Book; budget: SheetBudget; drawn: XlsDrawings },
): SheetGrid {
  const grid = new SheetGrid(budget);
  let formulaCell: { row: number; column: number } | undefined;
  const number = (row: number, column: number, style: number, value: number): void =>
    grid.set(row, column, escapeText((book.formats[style] ?? numberText)(value, book.from1904)));
  for (const { type, body } of recordsOfSheet(stream, offset, drawn)) {
    if (body.byteLength < 6 && type !== 0x0207) continue;
    const row = body.byteLength >= 2 ? body.readUInt16LE(0) : 0;
    const column = body.byteLength >= 4 ? body.readUInt16LE(2) : 0;
    const style = body.byteLength >= 6 ? body.readUInt16LE(4) : 0;
    switch (type) {
      case 0x00fd:
        grid.set(row, column, escapeText(book.strings[body.readUInt32LE(6)] ?? ''));
        break;
      case 0x0204:
      case 0x00d6:
        grid.set(
          row,
          column,
          escapeText(book.wide ? wideString(body, 6, 2) : narrow(body.subarray(8, 8 + body.readUInt16LE(6)))),
        );
        break;
      case 0x0203:
        number(row, column, style, body.readDoubleLE(6));
        break;
      case 0x027e:
        number(row, column, style, compactNumber(body.readInt32LE(6)));
        break;
      case 0x00bd:
        for (let at = 4, x = column; at + 6 <= body.byteLength - 2; at += 6, x++)
          number(row, x, body.readUInt16LE(at), compactNumber(body.readInt32LE(at + 2)));
        break;
      case 0x0205:
        grid.set(
          row,
          column,
          body.readUInt8(7) === 1 ? errorText(body.readUInt8(6)) : body.readUInt8(6) === 1 ? 'TRUE' : 'FALSE',
        );
        break;
      case 0x0006:
        formulaCell = undefined;
        if (body.readUInt16LE(12) !== 0xffff) number(row, column, style, body.readDoubleLE(6));
        else if (body.readUInt8(6) === 0) formulaCell = { row, column };
        else if (body.readUInt8(6) === 1) grid.set(row, column, body.readUInt8(8) === 1 ? 'TRUE' : 'FALSE');
        else if (body.readUInt8(6) === 2) grid.set(row, column, errorText(body.readUInt8(8)));
        break;
      case 0x0207:
        if (formulaCell)
          grid.set(
            formulaCell.row,
            formulaCell.column,
            escapeText(book.wide ? wideString(body, 0, 2) : narrow(body.subarray(2))),
          );
        formulaCell = undefined;
        break;
      case 0x00e5:
        for (let at = 2; at + 8 <= body.byteLength; at += 8)
          grid.merges.push({
            top: body.readUInt16LE(at),
            bottom: body.readUInt16LE(at + 2),
            left: body.readUInt16LE(at + 4),
            right: body.readUInt16LE(at + 6),
          });
    }
  }
  return grid;
}

/** The records of a sheet. Charts within it begin and end like sheets; their records are given to `drawn`. */
function* recordsOfSheet(stream: Buffer, offset: number, drawn: XlsDrawings): Generator<Record> {
  let depth = 0;
  for (const record of records(stream, offset)) {
    if (record.type === 0x0809) {
      depth += 1;
      if (depth === 2) drawn.startChart();
    } else if (record.type === 0x000a) {
      depth -= 1;
      if (depth <= 0) return;
    } else if (depth <= 1) {
      drawn.readBox(record);
      yield record;
    } else if (depth === 2) drawn.readChart(record);
  }
}

function* records(stream: Buffer, from: number): Generator<Record> {
  let at = from;
  while (at + 4 <= stream.byteLength) {
    const type = stream.readUInt16LE(at);
    const length = stream.readUInt16LE(at + 2);
    const body = stream.subarray(at + 4, at + 4 + length);
    if (body.byteLength < length) return;
    yield { type, body, at };
    at += 4 + length;
  }
}

/** The shared strings; a string that continues in a CONTINUE record starts there with a new width flag. */
function readStrings(stream: Buffer, table: Record): string[] {
  const parts: Buffer[] = [table.body.subarray(8)];
  for (const record of records(stream, table.at + 4 + table.body.byteLength)) {
    if (record.type !== 0x003c) break;
    parts.push(record.body);
  }
  const count = table.body.readUInt32LE(4);
  const reader = new ContinuedReader(parts);
  const strings: string[] = [];
  while (strings.length < count && !reader.done) strings.push(reader.string());
  return strings;
}

class ContinuedReader {
  readonly #parts: Buffer[];
  #part = 0;
  #at = 0;

  constructor(parts: Buffer[]) {
    this.#parts = parts;
  }

  get done(): boolean {
    this.#advance();
    return this.#part >= this.#parts.length;
  }

  string(): string {
    const length = this.#number(2);
    let flags = this.#number(1);
    const runs = flags & 8 ? this.#number(2) : 0;
    const extra = flags & 4 ? this.#number(4) : 0;
    let text = '';
    let left = length;
    while (left > 0 && !this.done) {
      const part = this.#parts[this.#part] ?? Buffer.alloc(0);
      const width = flags & 1 ? 2 : 1;
      const taken = Math.min(left, Math.floor((part.byteLength - this.#at) / width));
      const end = this.#at + taken * width;
      text += width === 2 ? decodeUtf16(part, this.#at, end) : part.toString('latin1', this.#at, end);
      this.#at += taken * width;
      left -= taken;
      if (left > 0) {
        this.#part += 1;
        this.#at = 0;
        if (this.#part < this.#parts.length) flags = this.#number(1);
      }
    }
    this.#skip(runs * 4 + extra);
    return text;
  }

  #number(bytes: number): number {
    let value = 0;
    for (let index = 0; index < bytes; index++) {
      this.#advance();
      value += (this.#parts[this.#part]?.[this.#at] ?? 0) * 2 ** (8 * index);
      this.#at += 1;
    }
    return value;
  }

  #skip(bytes: number): void {
    let left = bytes;
    while (left > 0 && !this.done) {
      const room = (this.#parts[this.#part]?.byteLength ?? 0) - this.#at;
      const step = Math.min(room, left);
      this.#at += step;
      left -= step;
    }
  }

  #advance(): void {
    while (this.#part < this.#parts.length && this.#at >= (this.#parts[this.#part]?.byteLength ?? 0)) {
      this.#part += 1;
      this.#at = 0;
    }
  }
}
