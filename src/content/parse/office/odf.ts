import { defined } from '../../../lib/defined.ts';
import { child, childElements, descend, descendants, parseXml, textOf, type XmlElement } from '../format/xml.ts';
import { ZipArchive } from '../format/zip.ts';
import type { Reading } from '../reading.ts';
import { isoDate } from '../text/text.ts';
import { failed, type ParsedDocument, unsupported } from '../types.ts';
import {
  type Block,
  codeSpan,
  escapeText,
  joinBlocks,
  link,
  mark,
  oneLine,
  script,
  writeInline,
  writeMarkdown,
} from '../write-markdown.ts';
import { formatNumber } from './list-numbers.ts';
import { columnStyles, OdfNumbers } from './odf-numbers.ts';
import { OdfObjects, picturesOf } from './odf-objects.ts';
import { pageBlocks, slideBlocks } from './page-pictures.ts';
import { SheetBudget, SheetGrid, sheetBlocks, workbookBlocks } from './sheet.ts';

const repeatMax = 1_000;
/** Character styles of code, as LibreOffice and pandoc name them. */
const codeCharacters = /^(?:source text|teletype|verbatim char|html code|code)$/;

/** An OpenDocument text, spreadsheet or presentation. Pages that are pictures are recognised. Throws ParseError or Unfinished. */
export async function parseOdf(
  bytes: Uint8Array,
  kind: 'odt' | 'ods' | 'odp',
  reading: Reading,
): Promise<ParsedDocument> {
  const zip = await ZipArchive.open(bytes);
  const manifest = zip.readText('META-INF/manifest.xml') ?? '';
  if (manifest.includes('encryption-data')) throw unsupported('The file is protected by a password.');
  const text = zip.readText('content.xml');
  if (text === undefined) throw failed('The file is damaged: the text of the document is missing.');
  const content = child(parseXml(text), 'document-content');
  const stylesText = zip.readText('styles.xml');
  const styles = stylesText === undefined ? undefined : child(parseXml(stylesText), 'document-styles');
  const objects = new OdfObjects(zip);
  const converter = new OdfConverter(content, styles, kind === 'ods' ? undefined : objects);
  const body = child(content, 'body');
  const blocks: Block[] = [];
  let pages: number | undefined;
  const sheets = childElements(child(body, 'spreadsheet'), 'table');
  const slides = childElements(child(body, 'presentation') ?? child(body, 'drawing'), 'page');
  if (sheets.length > 0) {
    const named = sheets.map((table) => ({
      table,
      name: table.attributes.name ?? '',
      hidden: converter.isHidden(table),
    }));
    const workbook = workbookBlocks(named, ({ table }) => {
      const drawn = descendants(table, 'object').flatMap((object) => objects.read(object).blocks);
      return [...sheetBlocks(converter.sheet(table)), ...drawn];
    });
    pages = workbook.pages;
    blocks.push(...workbook.blocks);
  } else if (slides.length > 0) {
    pages = slides.length;
    const pictures = slides.flatMap((slide, index) => picturesOf(slide).map((part) => ({ part, page: index + 1 })));
    const written = slides.map((slide) => converter.slide(slide));
    blocks.push(...(await slideBlocks(written, { zip, pictures }, reading)));
  } else {
    blocks.push(...converter.blocks(child(body, 'text')));
    const pictures = picturesOf(child(body, 'text')).map((part, index) => ({ part, page: index + 1 }));
    blocks.push(...(await pageBlocks(blocks, { zip, pictures }, reading)));
    if (writeMarkdown(blocks).trim() === '')
      for (const page of childElements(child(styles, 'master-styles'), 'master-page'))
        blocks.push(
          ...childElements(page, 'header').flatMap((one) => converter.blocks(one)),
          ...childElements(page, 'footer').flatMap((one) => converter.blocks(one)),
        );
    blocks.push(...converter.notes());
  }
  return { kind, markdown: writeMarkdown(blocks), ...defined({ pages }), ...metadata(zip), ...reading.report() };
}

type Format = { bold: boolean; italic: boolean; strike: boolean; script: '' | 'sub' | 'sup' };

class OdfConverter {
  readonly #formats = new Map<string, Format>();
  readonly #parents = new Map<string, string>();
  readonly #outlines = new Map<string, number>();
  readonly #hidden = new Set<string>();
  readonly #lists = new Map<string, XmlElement>();
  readonly #counters = new Map<string, number[]>();
  readonly #notes: XmlElement[] = [];
  readonly #budget = new SheetBudget();
  readonly #numbers: OdfNumbers;
  /** Absent for workbooks, whose charts follow the cells. */
  readonly #objects: OdfObjects | undefined;

  constructor(content: XmlElement | undefined, styles: XmlElement | undefined, objects: OdfObjects | undefined) {
    this.#objects = objects;
    const sources = [child(styles, 'styles'), child(styles, 'automatic-styles'), child(content, 'automatic-styles')];
    this.#numbers = new OdfNumbers(sources);
    for (const source of sources) {
      for (const style of childElements(source, 'style')) this.#readStyle(style);
      for (const list of childElements(source, 'list-style')) this.#lists.set(list.attributes.name ?? '', list);
    }
  }

  isHidden(table: XmlElement): boolean {
    return this.#hidden.has(table.attributes['style-name'] ?? '');
  }

  #readStyle(style: XmlElement): void {
    const name = style.attributes.name ?? '';
    const text = child(style, 'text-properties')?.attributes ?? {};
    const parent = style.attributes['parent-style-name'];
    if (parent !== undefined) this.#parents.set(name, parent);
    const inherited = this.#formats.get(parent ?? '');
    const position = text['text-position'] ?? '';
    this.#formats.set(name, {
      bold: text['font-weight'] === undefined ? (inherited?.bold ?? false) : /bold|[6-9]00/.test(text['font-weight']),
      italic:
        text['font-style'] === undefined ? (inherited?.italic ?? false) : /italic|oblique/.test(text['font-style']),
      strike:
        text['text-line-through-style'] === undefined
          ? (inherited?.strike ?? false)
          : text['text-line-through-style'] !== 'none',
      script: /^(?:super|[1-9]\d*%)/.test(position) ? 'sup' : /^(?:sub|-)/.test(position) ? 'sub' : '',
    });
    const outline = style.attributes['default-outline-level'];
    if (outline !== undefined && outline !== '') this.#outlines.set(name, Number(outline));
    if (child(style, 'table-properties')?.attributes.display === 'false') this.#hidden.add(name);
  }

  /** A paragraph style's ancestors, itself first, with unescaped names. */
  #styleNames(name: string | undefined): string[] {
    const names: string[] = [];
    for (let current = name; current !== undefined && names.length < 20; current = this.#parents.get(current))
      names.push(current.replaceAll('_20_', ' ').toLowerCase());
    return names;
  }

  blocks(container: XmlElement | undefined): Block[] {
    const blocks: Block[] = [];
    for (const one of childElements(container)) this.#block(one, blocks);
    return joinBlocks(blocks);
  }

  notes(): Block[] {
    const blocks: Block[] = [];
    for (let index = 0; index < this.#notes.length; index++)
      blocks.push({
        type: 'note',
        label: String(index + 1),
        blocks: this.blocks(child(this.#notes[index], 'note-body')),
      });
    return blocks;
  }

  #block(element: XmlElement, blocks: Block[]): void {
    switch (element.name) {
      case 'h': {
        const level = Number(element.attributes['outline-level'] ?? 1) || 1;
        this.#textBlock(element, blocks, (text) => ({
          type: 'heading',
          level,
          text: oneLine(text.replaceAll('**', '')),
        }));
        return;
      }
      case 'p':
        this.#paragraph(element, blocks);
        return;
      case 'list':
        this.#list(element, blocks, 0, undefined);
        return;
      case 'table':
        blocks.push({ type: 'table', rows: this.#tableRows(element) });
        return;
      case 'section':
      case 'index-body':
      case 'text-box':
      case 'index-title':
        for (const one of childElements(element)) this.#block(one, blocks);
        return;
      case 'table-of-content':
      case 'alphabetical-index':
      case 'bibliography':
        for (const one of childElements(child(element, 'index-body'))) this.#block(one, blocks);
        return;
      case 'frame':
      case 'g':
      case 'custom-shape':
        this.#frame(element, blocks);
    }
  }

  #paragraph(element: XmlElement, blocks: Block[]): void {
    const names = this.#styleNames(element.attributes['style-name']);
    const outline = names.map((name) => this.#outlines.get(name)).find((level) => level !== undefined);
    const isTitle = names.includes('title');
    if (isCode(names)) {
      const text = verbatim(element);
      const last = blocks.at(-1);
      if (last?.type === 'code') last.text += `\n${text}`;
      else blocks.push({ type: 'code', text });
      return;
    }
    this.#textBlock(element, blocks, (text) => {
      if (isTitle) return { type: 'heading', level: 1, text: oneLine(text) };
      if (outline !== undefined && outline > 0) return { type: 'heading', level: outline, text: oneLine(text) };
      if (names.some((name) => /^(?:quotations|quote|intense quote|block text)$/.test(name)))
        return { type: 'quote', blocks: [{ type: 'paragraph', text }] };
      return { type: 'paragraph', text };
    });
  }

  #textBlock(element: XmlElement, blocks: Block[], make: (text: string) => Block): void {
    const boxes: Block[] = [];
    const text = this.#inline(element, boxes, this.#formats.get(element.attributes['style-name'] ?? ''));
    const formula = descendants(element, 'object').length === 1 ? /^\$([^$]+)\$$/.exec(text.trim())?.[1] : undefined;
    if (formula !== undefined) blocks.push({ type: 'raw', text: `$$${formula}$$` });
    else if (text.trim() !== '') blocks.push(make(text.trim()));
    blocks.push(...boxes);
  }

  #inline(element: XmlElement, boxes: Block[], around?: Format): string {
    let text = '';
    for (const one of element.children) {
      if (typeof one === 'string') text += escapeText(one.replaceAll(/\s+/g, ' '));
      else text += this.#inlineElement(one, boxes, around);
    }
    return text;
  }

  #inlineElement(element: XmlElement, boxes: Block[], around: Format | undefined): string {
    switch (element.name) {
      case 'span': {
        const format = this.#formats.get(element.attributes['style-name'] ?? '');
        if (this.#styleNames(element.attributes['style-name']).some((name) => codeCharacters.test(name)))
          return codeSpan(oneLine(verbatim(element)));
        return marked(this.#inline(element, boxes, format), format, around);
      }
      case 'a':
        return link(this.#inline(element, boxes, around), element.attributes.href ?? '');
      case 's':
        return ' '.repeat(Math.min(100, Number(element.attributes.c ?? 1) || 1));
      case 'tab':
        return ' ';
      case 'line-break':
        return '  \n';
      case 'note':
        this.#notes.push(element);
        return `[^${this.#notes.length}]`;
      case 'annotation':
      case 'annotation-end':
      case 'tracked-changes':
      case 'ruby-text':
        return '';
      case 'frame':
      case 'g':
      case 'custom-shape':
        return this.#frame(element, boxes);
      default:
        return this.#inline(element, boxes, around);
    }
  }

  /** A text box becomes blocks after its paragraph, a picture its description in place. */
  #frame(element: XmlElement, boxes: Block[]): string {
    if (element.name === 'g')
      return childElements(element)
        .map((one) => this.#frame(one, boxes))
        .join('');
    const box = child(element, 'text-box') ?? (element.name === 'custom-shape' ? element : undefined);
    if (box) {
      boxes.push(...this.blocks(box));
      return '';
    }
    const table = child(element, 'table');
    if (table) boxes.push({ type: 'table', rows: this.#tableRows(table) });
    const embedded = this.#objects?.read(child(element, 'object'));
    if (embedded && embedded.formula !== '') return `$${embedded.formula}$`;
    boxes.push(...(embedded?.blocks ?? []));
    if ((embedded?.blocks.length ?? 0) > 0 || !child(element, 'image')) return '';
    const alternative = oneLine(textOf(child(element, 'desc') ?? child(element, 'title')));
    return alternative === '' ? '' : `![${escapeText(alternative).replaceAll(/[[\]]/g, '\\$&')}](image)`;
  }

  #list(element: XmlElement, blocks: Block[], depth: number, inheritedStyle: string | undefined): void {
    const styleName = element.attributes['style-name'] ?? inheritedStyle;
    const style = this.#lists.get(styleName ?? '');
    const level = childElements(style).find((one) => Number(one.attributes.level) === depth + 1);
    const numbered = level?.name === 'list-level-style-number' && (level.attributes['num-format'] ?? '') !== '';
    const counters = this.#countersOf(element, styleName, depth);
    for (const item of childElements(element)) {
      if (item.name !== 'list-item' && item.name !== 'list-header') continue;
      const start = item.attributes['start-value'];
      if (item.name === 'list-item')
        counters[depth] =
          start === undefined
            ? (counters[depth] ?? Number(level?.attributes['start-value'] ?? 1) - 1) + 1
            : Number(start);
      counters.length = depth + 1;
      let first = item.name === 'list-item';
      for (const one of childElements(item)) {
        if (one.name === 'list') this.#list(one, blocks, Math.min(depth + 1, 9), styleName);
        else if (
          first &&
          (one.name === 'h' || (one.name === 'p' && !isCode(this.#styleNames(one.attributes['style-name']))))
        ) {
          const label = numbered ? this.#label(style, level, depth, counters) : '-';
          this.#item(one, blocks, depth, label);
          first = false;
        } else this.#block(one, blocks);
      }
    }
  }

  #item(element: XmlElement, blocks: Block[], depth: number, label: string): void {
    if (element.name === 'h') {
      const level = Number(element.attributes['outline-level'] ?? 1) || 1;
      this.#textBlock(element, blocks, (text) => ({
        type: 'heading',
        level,
        text: oneLine(label === '-' ? text : `${label} ${text}`),
      }));
      return;
    }
    this.#textBlock(element, blocks, (text) => {
      if (label === '-' || /^\d+[.)]$/.test(label)) return { type: 'item', depth, marker: label, text };
      return { type: 'item', depth, marker: '-', text: `${escapeText(label)} ${text}` };
    });
  }

  /** A list continues the count of the one it names; others start at their first number. */
  #countersOf(element: XmlElement, styleName: string | undefined, depth: number): number[] {
    const key = styleName ?? '';
    const continues =
      element.attributes['continue-numbering'] === 'true' ||
      element.attributes['continue-list'] !== undefined ||
      depth > 0;
    const known = this.#counters.get(key);
    if (known && continues) return known;
    const fresh: number[] = [];
    this.#counters.set(key, fresh);
    return fresh;
  }

  #label(style: XmlElement | undefined, level: XmlElement, depth: number, counters: number[]): string {
    const shown = Math.min(depth + 1, Number(level.attributes['display-levels'] ?? 1) || 1);
    const numbers: string[] = [];
    for (let at = depth + 1 - shown; at <= depth; at++) {
      const format =
        childElements(style).find((one) => Number(one.attributes.level) === at + 1)?.attributes['num-format'] ?? '1';
      numbers.push(formatNumber(counters[at] ?? 1, format));
    }
    return (
      `${level.attributes['num-prefix'] ?? ''}${numbers.join('.')}${level.attributes['num-suffix'] ?? ''}`.trim() || '-'
    );
  }

  #tableRows(table: XmlElement): string[][] {
    const rows: string[][] = [];
    /** By column: the text of a merged cell and the row after its last. */
    const spans: Span[] = [];
    let y = 0;
    for (const row of rowsOf(table)) {
      const texts: string[] = [];
      for (const cell of childElements(row)) {
        if (cell.name !== 'table-cell' && cell.name !== 'covered-table-cell') continue;
        const repeat = Math.min(repeatMax, Number(cell.attributes['number-columns-repeated'] ?? 1) || 1);
        const text = cell.name === 'table-cell' ? writeInline(this.blocks(cell)) : undefined;
        if (text !== undefined) markSpan(spans, texts.length, text, { cell, y });
        for (let times = 0; times < repeat && texts.length < repeatMax; times++)
          texts.push(text ?? coveredText(spans, texts, y));
      }
      const repeat = Math.min(repeatMax, Number(row.attributes['number-rows-repeated'] ?? 1) || 1);
      const times = texts.some(Boolean) ? repeat : 1;
      this.#budget.addPlaces(times * texts.length);
      for (let time = 0; time < times; time++) rows.push(texts);
      y += repeat;
    }
    return rows;
  }

  /** A worksheet; runs of repeated empty cells and rows only move the position. */
  sheet(table: XmlElement): SheetGrid {
    const grid = new SheetGrid(this.#budget);
    const columnStyle = columnStyles(table);
    let y = 0;
    for (const row of rowsOf(table)) {
      const repeatedRows = Number(row.attributes['number-rows-repeated'] ?? 1) || 1;
      let x = 0;
      for (const cell of childElements(row)) {
        if (cell.name !== 'table-cell' && cell.name !== 'covered-table-cell') continue;
        const repeat = Number(cell.attributes['number-columns-repeated'] ?? 1) || 1;
        const text = cell.name === 'table-cell' ? this.#cellText(cell, columnStyle(x)) : '';
        if (text !== '')
          for (let down = 0; down < Math.min(repeatedRows, repeatMax); down++)
            for (let right = 0; right < Math.min(repeat, repeatMax); right++) grid.set(y + down, x + right, text);
        const width = Number(cell.attributes['number-columns-spanned'] ?? 1) || 1;
        const height = Number(cell.attributes['number-rows-spanned'] ?? 1) || 1;
        if ((width > 1 || height > 1) && text !== '')
          grid.merges.push({ top: y, left: x, bottom: y + height - 1, right: x + width - 1 });
        x += repeat;
      }
      y += repeatedRows;
    }
    return grid;
  }

  #cellText(cell: XmlElement, columnStyle: string | undefined): string {
    const number = this.#numbers.text(cell, columnStyle);
    return number === undefined ? writeInline(this.blocks(cell)) : escapeText(number);
  }

  slide(page: XmlElement): Block[] {
    const blocks: Block[] = [];
    for (const frame of childElements(page)) {
      if (frame.attributes['presentation:class'] === 'title') {
        const text = writeInline(this.blocks(child(frame, 'text-box'))).replaceAll('<br>', ' ');
        blocks.unshift({ type: 'heading', level: 1, text: oneLine(text.replaceAll('**', '')) });
      } else if (frame.name === 'notes') {
        const notes = childElements(frame, 'frame').flatMap((one) => this.blocks(child(one, 'text-box')));
        if (writeInline(notes).trim() !== '')
          blocks.push({ type: 'quote', blocks: [{ type: 'paragraph', text: 'Notes:' }, ...notes] });
      } else if (!/^(?:footer|date-time|page-number|header)$/.test(frame.attributes['presentation:class'] ?? '')) {
        const alternative = this.#frame(frame, blocks);
        if (alternative !== '') blocks.push({ type: 'paragraph', text: alternative });
      }
    }
    return blocks;
  }
}

function isCode(styleNames: string[]): boolean {
  return styleNames.some((name) => /^(?:preformatted text|source code)$/.test(name));
}

/** The text of code, with its spaces, tabs and line breaks. */
function verbatim(element: XmlElement): string {
  return element.children
    .map((one) => {
      if (typeof one === 'string') return one.replaceAll(/\s+/g, ' ');
      if (one.name === 's') return ' '.repeat(Math.min(1000, Number(one.attributes.c ?? 1) || 1));
      if (one.name === 'tab') return '\t';
      return one.name === 'line-break' ? '\n' : verbatim(one);
    })
    .join('');
}

function rowsOf(table: XmlElement): XmlElement[] {
  return childElements(table).flatMap((one) => {
    if (one.name === 'table-row') return [one];
    return /^table-(?:header-rows|rows|row-group)$/.test(one.name) ? rowsOf(one) : [];
  });
}

type Span = { text: string; end: number };

/** Notes the columns that a merged cell covers, in its own row and those below. */
function markSpan(spans: Span[], x: number, text: string, { cell, y }: { cell: XmlElement; y: number }): void {
  const width = Math.min(repeatMax, Number(cell.attributes['number-columns-spanned'] ?? 1) || 1);
  const height = Number(cell.attributes['number-rows-spanned'] ?? 1) || 1;
  for (let column = x; column < x + width; column++) spans[column] = { text, end: y + height };
}

/** The text of the cell that is merged over this one; of the cell to the left if the file names none. */
function coveredText(spans: Span[], left: string[], y: number): string {
  const span = spans[left.length];
  return span !== undefined && y < span.end ? span.text : (left.at(-1) ?? span?.text ?? '');
}

function marked(text: string, format: Format | undefined, around: Format | undefined): string {
  if (!format || text.trim() === '') return text;
  let result = format.script === '' ? text : script(text, format.script);
  if (format.strike && !around?.strike) result = mark(result, '~~');
  const delimiter = `${format.bold && !around?.bold ? '**' : ''}${format.italic && !around?.italic ? '*' : ''}`;
  return delimiter === '' ? result : mark(result, delimiter);
}

function metadata(zip: ZipArchive): Omit<ParsedDocument, 'kind' | 'markdown'> {
  const text = zip.readText('meta.xml');
  const meta = text === undefined ? undefined : descend(parseXml(text), 'document-meta', 'meta');
  const field = (name: string): string => textOf(descendants(meta, name)[0]).trim();
  const author = field('initial-creator') || field('creator');
  const created = isoDate(field('creation-date'));
  const modified = isoDate(field('date'));
  return {
    ...(field('title') ? { title: field('title') } : {}),
    ...(field('language') ? { language: field('language') } : {}),
    ...(author ? { author } : {}),
    ...(created ? { created } : {}),
    ...(modified ? { modified } : {}),
  };
}
