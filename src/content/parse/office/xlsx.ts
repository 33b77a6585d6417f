import { child, childElements, decodeEntities, descend, descendants, textOf } from '../format/xml.ts';
import { ZipArchive } from '../format/zip.ts';
import { type Block, escapeText, writeMarkdown } from '../markdown.ts';
import { failed, type ParsedDocument } from '../types.ts';
import { chartBlocks } from './chart.ts';
import { coreProperties, mainPart, type Relationship, readPart, relationshipsOf } from './ooxml.ts';
import { isDateFormat, numberText, SheetGrid, serialDate, sheetBlocks } from './sheet.ts';

/** An Excel workbook (xlsx, xlsm, xltx): every visible sheet with a heading, its tables, its charts' data. Throws ParseError. */
export function parseXlsx(bytes: Uint8Array): ParsedDocument {
  const zip = new ZipArchive(bytes);
  const part = mainPart(zip) ?? zip.names.find((name) => /^xl\/workbook\d*\.xml$/i.test(name));
  const workbook = child(readPart(zip, part), 'workbook');
  if (part === undefined || !workbook) throw failed('The file is damaged: the workbook is missing.');
  const links = relationshipsOf(zip, part);
  const target = (type: string): string | undefined => [...links.values()].find((one) => one.type === type)?.target;
  const strings = readSharedStrings(zip.readText(target('sharedStrings') ?? '') ?? '');
  const dates = dateStyles(zip, target('styles'));
  const from1904 = /^(?:1|true)$/.test(child(workbook, 'workbookPr')?.attributes.date1904 ?? '');
  const sheets = childElements(child(workbook, 'sheets'), 'sheet');
  const visible = sheets.filter((sheet) => (sheet.attributes.state ?? 'visible') === 'visible');
  const shown = visible.length > 0 ? visible : sheets;
  const blocks: Block[] = [];
  for (const sheet of shown) {
    const file = links.get(sheet.attributes['r:id'] ?? sheet.attributes.id ?? '')?.target;
    const text = file === undefined ? undefined : zip.readText(file);
    if (file === undefined || text === undefined) continue;
    const grid = readSheet(text, strings, dates, from1904);
    const contents = [...sheetBlocks(grid), ...sheetDrawings(zip, file)];
    if (contents.length > 0)
      blocks.push({ type: 'heading', level: 2, text: escapeText(sheet.attributes.name ?? '') }, ...contents);
  }
  return { kind: 'xlsx', markdown: writeMarkdown(blocks), pages: shown.length, ...coreProperties(zip) };
}

/** Which cell styles show a date. */
function dateStyles(zip: ZipArchive, part: string | undefined): boolean[] {
  const sheet = child(readPart(zip, part), 'styleSheet');
  const codes = new Map(
    childElements(child(sheet, 'numFmts'), 'numFmt').map((one) => [
      Number(one.attributes.numFmtId),
      one.attributes.formatCode ?? '',
    ]),
  );
  return childElements(child(sheet, 'cellXfs'), 'xf').map((style) => {
    const id = Number(style.attributes.numFmtId ?? 0);
    return isDateFormat(id, codes.get(id));
  });
}

function readSharedStrings(text: string): string[] {
  return elements(text, 'si').map(({ inner }) => richText(inner));
}

/** Text of a string item without its phonetic readings. */
function richText(inner: string): string {
  const spoken = inner.includes('rPh')
    ? elements(inner, 'rPh').reduce((rest, one) => rest.replace(one.outer, ''), inner)
    : inner;
  return elements(spoken, 't')
    .map((one) => decodeEntities(one.inner))
    .join('')
    .replaceAll(/_x([0-9A-Fa-f]{4})_/g, (_all, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function readSheet(text: string, strings: string[], dates: boolean[], from1904: boolean): SheetGrid {
  const grid = new SheetGrid();
  let row = -1;
  for (const line of elements(text, 'row')) {
    const stated = Number(attribute(line.tag, 'r'));
    row = Number.isInteger(stated) && stated > 0 ? stated - 1 : row + 1;
    let column = -1;
    for (const cell of elements(line.inner, 'c')) {
      const reference = /^([A-Z]{1,3})\d+$/.exec(attribute(cell.tag, 'r') ?? '')?.[1];
      column = reference === undefined ? column + 1 : columnNumber(reference);
      grid.set(row, column, cellText(cell, strings, dates, from1904));
    }
  }
  for (const merge of elements(text, 'mergeCell')) {
    const match = /^([A-Z]{1,3})(\d+):([A-Z]{1,3})(\d+)$/.exec(attribute(merge.tag, 'ref') ?? '');
    if (match && grid.merges.length < 20_000)
      grid.merges.push({
        left: columnNumber(match[1] ?? ''),
        top: Number(match[2]) - 1,
        right: columnNumber(match[3] ?? ''),
        bottom: Number(match[4]) - 1,
      });
  }
  return grid;
}

function cellText(cell: Element, strings: string[], dates: boolean[], from1904: boolean): string {
  const type = attribute(cell.tag, 't');
  if (type === 'inlineStr') return escapeText(richText(cell.inner));
  const value = elements(cell.inner, 'v')[0]?.inner;
  if (value === undefined) return '';
  if (type === 's') return escapeText(strings[Number(value)] ?? '');
  if (type === 'str' || type === 'e') return escapeText(decodeEntities(value));
  if (type === 'b') return value === '1' ? 'TRUE' : 'FALSE';
  if (type === 'd') return escapeText(value.replace('T', ' '));
  const number = Number(value);
  if (value.trim() === '' || !Number.isFinite(number)) return escapeText(decodeEntities(value));
  return dates[Number(attribute(cell.tag, 's') ?? 0)] === true ? serialDate(number, from1904) : numberText(number);
}

function sheetDrawings(zip: ZipArchive, sheetPart: string): Block[] {
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
  }
  return blocks;
}

type Element = { tag: string; inner: string; outer: string };

/**
 * All elements of one name that are not inside another of it, whatever their prefix. Sheets are read so, by position
 * and not as a tree: a million cells as objects would not fit into a parser process.
 */
function elements(text: string, name: string): Element[] {
  const found: Element[] = [];
  const open = new RegExp(`<(?:[A-Za-z_][\\w.-]*:)?${name}(?=[\\s/>])`, 'g');
  for (let match = open.exec(text); match; match = open.exec(text)) {
    const tagEnd = text.indexOf('>', match.index);
    if (tagEnd < 0) break;
    const tag = text.slice(match.index, tagEnd + 1);
    if (tag.endsWith('/>')) {
      found.push({ tag, inner: '', outer: tag });
      open.lastIndex = tagEnd + 1;
      continue;
    }
    const close = `</${match[0].slice(1)}>`;
    const end = text.indexOf(close, tagEnd);
    if (end < 0) break;
    found.push({ tag, inner: text.slice(tagEnd + 1, end), outer: text.slice(match.index, end + close.length) });
    open.lastIndex = end + close.length;
  }
  return found;
}

function attribute(tag: string, name: string): string | undefined {
  const at = tag.indexOf(` ${name}="`);
  if (at < 0) return undefined;
  const from = at + name.length + 3;
  return tag.slice(from, tag.indexOf('"', from));
}

function columnNumber(letters: string): number {
  let number = 0;
  for (const letter of letters) number = number * 26 + letter.charCodeAt(0) - 64;
  return number - 1;
}
