import { child, childElements, descend, descendants, scanXml, textOf } from '../format/xml.ts';
import { ZipArchive } from '../format/zip.ts';
import { failed, type ParsedDocument } from '../types.ts';
import { type Block, escapeText, writeMarkdown } from '../write-markdown.ts';
import { chartBlocks } from './chart.ts';
import { diagramBlocks } from './diagram.ts';
import { type NumberFormat, numberFormat, numberText } from './number-format.ts';
import { coreProperties, mainPart, type Relationship, readPart, relationshipsOf } from './ooxml.ts';
import { SheetBudget, SheetGrid, sheetBlocks, workbookBlocks } from './sheet.ts';

const mergesMax = 20_000;

/** An Excel workbook (xlsx, xlsm, xltx): every visible sheet with a heading, its tables, its charts' data. Throws ParseError. */
export async function parseXlsx(bytes: Uint8Array): Promise<ParsedDocument> {
  const zip = await ZipArchive.open(bytes);
  const part = mainPart(zip) ?? zip.names.find((name) => /^xl\/workbook\d*\.xml$/i.test(name));
  const workbook = child(readPart(zip, part), 'workbook');
  if (part === undefined || !workbook) throw failed('The file is damaged: the workbook is missing.');
  const links = relationshipsOf(zip, part);
  const target = (type: string): string | undefined => [...links.values()].find((one) => one.type === type)?.target;
  const strings = readSharedStrings(zip.readText(target('sharedStrings') ?? '') ?? '');
  const formats = numberFormats(zip, target('styles'));
  const from1904 = /^(?:1|true)$/.test(child(workbook, 'workbookPr')?.attributes.date1904 ?? '');
  const sheets = childElements(child(workbook, 'sheets'), 'sheet').map(({ attributes }) => ({
    name: attributes.name ?? '',
    hidden: (attributes.state ?? 'visible') !== 'visible',
    relation: attributes['r:id'] ?? attributes.id ?? '',
  }));
  const budget = new SheetBudget();
  const { blocks, pages } = workbookBlocks(sheets, ({ relation }) => {
    const file = links.get(relation)?.target;
    const text = file === undefined ? undefined : zip.readText(file);
    if (file === undefined || text === undefined) return [];
    const grid = readSheet(text, { strings, formats, from1904 }, budget);
    return [...sheetBlocks(grid), ...sheetDrawings(zip, file)];
  });
  return { kind: 'xlsx', markdown: writeMarkdown(blocks), pages, ...coreProperties(zip) };
}

/** How each cell style shows a number. */
function numberFormats(zip: ZipArchive, part: string | undefined): NumberFormat[] {
  const sheet = child(readPart(zip, part), 'styleSheet');
  const codes = new Map(
    childElements(child(sheet, 'numFmts'), 'numFmt').map((one) => [
      Number(one.attributes.numFmtId),
      one.attributes.formatCode ?? '',
    ]),
  );
  return childElements(child(sheet, 'cellXfs'), 'xf').map((style) => {
    const id = Number(style.attributes.numFmtId ?? 0);
    return numberFormat(id, codes.get(id));
  });
}

/**
 * Sheets and strings are read as a stream of tags instead of a tree: a million cells as objects would not fit into a
 * parser process.
 */
function readSharedStrings(text: string): string[] {
  const strings: string[] = [];
  const item = new RichText();
  scanXml(text, {
    open(name) {
      if (name === 'si') item.clear();
      else item.open(name);
    },
    text: (piece) => item.add(piece),
    close(name) {
      if (name === 'si') strings.push(item.text);
      else item.close(name);
    },
  });
  return strings;
}

/** The text of a string item, read tag by tag, without its phonetic readings. */
class RichText {
  #text = '';
  #inText = false;
  #inPhonetics = false;

  get text(): string {
    return this.#text.replaceAll(/_x([0-9A-Fa-f]{4})_/g, (_all, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  }

  clear(): void {
    this.#text = '';
  }

  open(name: string): void {
    if (name === 't') this.#inText = true;
    if (name === 'rPh') this.#inPhonetics = true;
  }

  add(piece: string): void {
    if (this.#inText && !this.#inPhonetics) this.#text += piece;
  }

  close(name: string): void {
    if (name === 't') this.#inText = false;
    if (name === 'rPh') this.#inPhonetics = false;
  }
}

type Cell = { column: number; type: string | undefined; style: number; value: string | undefined };

type Book = { strings: string[]; formats: NumberFormat[]; from1904: boolean };

function readSheet(text: string, book: Book, budget: SheetBudget): SheetGrid {
  const grid = new SheetGrid(budget);
  const inline = new RichText();
  let row = -1;
  let column = -1;
  let cell: Cell | undefined;
  let inValue = false;
  scanXml(text, {
    open(name, attributes) {
      inline.open(name);
      if (name === 'row') {
        const stated = Number(attributes.r);
        row = Number.isInteger(stated) && stated > 0 ? stated - 1 : row + 1;
        column = -1;
      } else if (name === 'c') {
        const reference = /^([A-Z]{1,3})\d+$/.exec(attributes.r ?? '')?.[1];
        column = reference === undefined ? column + 1 : columnNumber(reference);
        cell = { column, type: attributes.t, style: Number(attributes.s ?? 0), value: undefined };
        inline.clear();
      } else if (name === 'v') {
        inValue = true;
        if (cell) cell.value ??= '';
      } else if (name === 'mergeCell') addMerge(grid, attributes.ref ?? '');
    },
    text(piece) {
      if (inValue && cell) cell.value += piece;
      inline.add(piece);
    },
    close(name) {
      inline.close(name);
      if (name === 'v') inValue = false;
      if (name !== 'c' || !cell) return;
      const { type } = cell;
      grid.set(row, cell.column, type === 'inlineStr' ? escapeText(inline.text) : cellText(cell, book));
      cell = undefined;
    },
  });
  return grid;
}

function addMerge(grid: SheetGrid, reference: string): void {
  const match = /^([A-Z]{1,3})(\d+):([A-Z]{1,3})(\d+)$/.exec(reference);
  if (!match || grid.merges.length >= mergesMax) return;
  grid.merges.push({
    left: columnNumber(match[1] ?? ''),
    top: Number(match[2]) - 1,
    right: columnNumber(match[3] ?? ''),
    bottom: Number(match[4]) - 1,
  });
}

function cellText(cell: Cell, { strings, formats, from1904 }: Book): string {
  const { type, value, style } = cell;
  if (value === undefined) return '';
  if (type === 's') return escapeText(strings[Number(value)] ?? '');
  if (type === 'str' || type === 'e') return escapeText(value);
  if (type === 'b') return value === '1' ? 'TRUE' : 'FALSE';
  if (type === 'd') return escapeText(value.replace('T', ' '));
  const number = Number(value);
  if (value.trim() === '' || !Number.isFinite(number)) return escapeText(value);
  return escapeText((formats[style] ?? numberText)(number, from1904));
}

/** The texts and charts that are drawn over a sheet. */
export function sheetDrawings(zip: ZipArchive, sheetPart: string): Block[] {
  const blocks: Block[] = [];
  for (const link of relationshipsOf(zip, sheetPart).values()) {
    if (link.type !== 'drawing' || link.external) continue;
    const drawing = readPart(zip, link.target);
    const links: Map<string, Relationship> = relationshipsOf(zip, link.target);
    for (const box of descendants(drawing, 'txBody')) {
      const text = childElements(box, 'p')
        .map((one) => descendants(one, 't').map(textOf).join(''))
        .filter((one) => one.trim() !== '');
      if (text.length > 0) blocks.push(...text.map((one): Block => ({ type: 'paragraph', text: escapeText(one) })));
    }
    for (const chart of descendants(drawing, 'chart')) {
      const file = links.get(chart.attributes['r:id'] ?? chart.attributes.id ?? '')?.target;
      blocks.push(...chartBlocks(descend(readPart(zip, file), 'chartSpace')));
    }
    for (const diagram of descendants(drawing, 'relIds'))
      blocks.push(...diagramBlocks(readPart(zip, links.get(diagram.attributes['r:dm'] ?? '')?.target)));
  }
  return blocks;
}

function columnNumber(letters: string): number {
  let number = 0;
  for (const letter of letters) number = number * 26 + letter.charCodeAt(0) - 64;
  return number - 1;
}
