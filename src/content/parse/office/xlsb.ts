import { decodeUtf16 } from '../format/utf16.ts';
import { ZipArchive } from '../format/zip.ts';
import { failed, type ParsedDocument } from '../types.ts';
import { escapeText, writeMarkdown } from '../write-markdown.ts';
import { compactNumber, errorText } from './biff.ts';
import { type NumberFormat, numberFormat, numberText } from './number-format.ts';
import { coreProperties, mainPart, relationshipsOf } from './ooxml.ts';
import { SheetBudget, SheetGrid, sheetBlocks, workbookBlocks } from './sheet.ts';
import { sheetDrawings } from './xlsx.ts';

const mergesMax = 20_000;
const stringsMax = 1_000_000;
const columnsMax = 16_384;

type Sheet = { name: string; relation: string; hidden: boolean };
type Book = { sheets: Sheet[]; strings: string[]; formats: NumberFormat[]; from1904: boolean };

/** A binary Excel workbook (BIFF12 records in a ZIP archive, [MS-XLSB]), read as its XML relative is. Throws ParseError. */
export async function parseXlsb(bytes: Uint8Array): Promise<ParsedDocument> {
  const zip = await ZipArchive.open(bytes);
  const part = mainPart(zip) ?? zip.names.find((name) => /^xl\/workbook\d*\.bin$/i.test(name));
  const workbook = part === undefined ? undefined : zip.read(part);
  if (part === undefined || !workbook) throw failed('The file is damaged: the workbook is missing.');
  const links = relationshipsOf(zip, part);
  const related = (type: string): Uint8Array | undefined => {
    const target = [...links.values()].find((one) => one.type === type)?.target;
    return target === undefined ? undefined : zip.read(target);
  };
  const book: Book = {
    ...readWorkbook(workbook),
    strings: readStrings(related('sharedStrings')),
    formats: readNumberFormats(related('styles')),
  };
  const budget = new SheetBudget();
  const { blocks, pages } = workbookBlocks(book.sheets, ({ relation }) => {
    const file = links.get(relation)?.target;
    const contents = file === undefined ? undefined : zip.read(file);
    if (file === undefined || !contents) return [];
    return [...sheetBlocks(readSheet(contents, book, budget)), ...sheetDrawings(zip, file)];
  });
  return { kind: 'xlsb', markdown: writeMarkdown(blocks), pages, ...coreProperties(zip) };
}

function readWorkbook(bytes: Uint8Array): Pick<Book, 'sheets' | 'from1904'> {
  const sheets: Sheet[] = [];
  let from1904 = false;
  for (const { type, fields } of records(bytes)) {
    if (type === 153) from1904 = (fields.number(4) & 1) === 1;
    if (type !== 156) continue;
    const hidden = fields.number(4) !== 0;
    fields.number(4);
    sheets.push({ hidden, relation: fields.text(), name: fields.text() });
  }
  return { sheets, from1904 };
}

function readStrings(bytes: Uint8Array | undefined): string[] {
  const strings: string[] = [];
  for (const { type, fields } of records(bytes)) {
    if (type !== 19) continue;
    if (strings.length >= stringsMax) throw failed('The workbook has more texts than can be read.');
    fields.number(1);
    strings.push(fields.text());
  }
  return strings;
}

/** How each cell style shows a number. */
function readNumberFormats(bytes: Uint8Array | undefined): NumberFormat[] {
  const codes = new Map<number, string>();
  const formats: NumberFormat[] = [];
  let isCellStyle = false;
  for (const { type, fields } of records(bytes)) {
    if (type === 44) codes.set(fields.number(2), fields.text());
    else if (type === 617 || type === 618) isCellStyle = type === 617;
    else if (type === 47 && isCellStyle) {
      fields.number(2);
      const format = fields.number(2);
      formats.push(numberFormat(format, codes.get(format)));
    }
  }
  return formats;
}

const rowRecord = 0;
const mergeRecord = 176;
/** Records of cells without a column: each follows the cell before. */
const firstShortCell = 12;
const lastShortCell = 18;
const richTextCell = 62;

function readSheet(bytes: Uint8Array, book: Book, budget: SheetBudget): SheetGrid {
  const grid = new SheetGrid(budget);
  let row = 0;
  let column = -1;
  for (const { type, fields } of records(bytes)) {
    if (type === rowRecord) {
      row = fields.number(4);
      column = -1;
    } else if (type === mergeRecord && grid.merges.length < mergesMax) {
      const [top, bottom, left, right] = [fields.number(4), fields.number(4), fields.number(4), fields.number(4)];
      grid.merges.push({ top, bottom, left, right });
    } else if (type <= lastShortCell || type === richTextCell) {
      const isShort = type >= firstShortCell && type <= lastShortCell;
      column = isShort ? column + 1 : fields.number(4);
      const style = fields.number(3);
      fields.number(1);
      if (column < columnsMax) grid.set(row, column, cellText(isShort ? type - 11 : type, style, fields, book));
    }
  }
  return grid;
}

function cellText(type: number, style: number, fields: Fields, book: Book): string {
  const shown = (value: number): string => {
    if (!Number.isFinite(value)) return '';
    return escapeText((book.formats[style] ?? numberText)(value, book.from1904));
  };
  switch (type) {
    case 2:
      return shown(compactNumber(fields.number(4) | 0));
    case 3:
    case 11:
      return errorText(fields.number(1));
    case 4:
    case 10:
      return fields.number(1) === 1 ? 'TRUE' : 'FALSE';
    case 5:
    case 9:
      return shown(fields.double());
    case 6:
    case 8:
      return escapeText(fields.text());
    case 7:
      return escapeText(book.strings[fields.number(4)] ?? '');
    case richTextCell:
      fields.number(1);
      return escapeText(fields.text());
    default:
      return '';
  }
}

/** The records of a part: a type of one or two bytes, a length of one to four, seven bits in each. */
function* records(bytes: Uint8Array | undefined): Generator<{ type: number; fields: Fields }> {
  if (!bytes) return;
  const stream = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const varied = (bytesMax: number): number => {
    let value = 0;
    for (let index = 0; index < bytesMax; index++) {
      const byte = stream[at] ?? 0;
      at += 1;
      value += (byte & 0x7f) * 2 ** (7 * index);
      if ((byte & 0x80) === 0) break;
    }
    return value;
  };
  while (at < stream.byteLength) {
    const type = varied(2);
    const length = varied(4);
    if (at + length > stream.byteLength) throw failed('The file is damaged: part of the workbook is truncated.');
    yield { type, fields: new Fields(stream.subarray(at, at + length)) };
    at += length;
  }
}

/** The fields of a record in order; what lies past its end reads as zero or nothing. */
class Fields {
  readonly #body: Buffer;
  #at = 0;

  constructor(body: Buffer) {
    this.#body = body;
  }

  number(bytes: 1 | 2 | 3 | 4): number {
    const start = this.#at;
    this.#at += bytes;
    return this.#at <= this.#body.byteLength ? this.#body.readUIntLE(start, bytes) : 0;
  }

  double(): number {
    const start = this.#at;
    this.#at += 8;
    return this.#at <= this.#body.byteLength ? this.#body.readDoubleLE(start) : Number.NaN;
  }

  /** A string with its length in characters; none at all has the length 0xffffffff. */
  text(): string {
    const length = this.number(4);
    if (length === 0xffffffff) return '';
    const start = this.#at;
    this.#at = Math.min(this.#body.byteLength, start + length * 2);
    return decodeUtf16(this.#body, start, this.#at);
  }
}
