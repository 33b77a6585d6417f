import { child, childElements, descend, descendants, textOf, type XmlElement } from '../format/xml.ts';
import { ZipArchive } from '../format/zip.ts';
import type { Reading } from '../reading.ts';
import { failed, type ParsedDocument } from '../types.ts';
import { type Block, escapeText, link, mark, oneLine, script, writeInline, writeMarkdown } from '../write-markdown.ts';
import { chartBlocks } from './chart.ts';
import { diagramBlocks } from './diagram.ts';
import { formatNumber } from './list-numbers.ts';
import { mathToTex } from './omml.ts';
import { coreProperties, isOn, mainPart, picturesOf, type Relationship, readPart, relationshipsOf } from './ooxml.ts';
import { type PagePicture, slideBlocks } from './page-pictures.ts';
import { bulletOf, type Placeholder, placeholderOf, SlideStyles } from './pptx-styles.ts';

const slidesMax = 5_000;

/**
 * A PowerPoint presentation: slides in order, each with its title, text, tables, chart data, notes and comments. If it
 * consists of pictures, they are recognised. Throws ParseError or Unfinished.
 */
export async function parsePptx(bytes: Uint8Array, reading: Reading): Promise<ParsedDocument> {
  const zip = await ZipArchive.open(bytes);
  const part = mainPart(zip) ?? zip.names.find((name) => /^ppt\/presentation\d*\.xml$/i.test(name));
  const presentation = child(readPart(zip, part), 'presentation');
  if (part === undefined || !presentation) throw failed('The file is damaged: the presentation is missing.');
  const links = relationshipsOf(zip, part);
  const slides = childElements(child(presentation, 'sldIdLst'), 'sldId')
    .map((one) => links.get(one.attributes['r:id'] ?? '')?.target)
    .filter((target) => target !== undefined)
    .slice(0, slidesMax);
  const authors = commentAuthors(zip, links);
  const pictures: PagePicture[] = [];
  const written = slides.map((slide, index) => {
    const converter = new SlideConverter(zip, slide);
    pictures.push(...converter.pictures().map((name) => ({ part: name, page: index + 1 })));
    return [...converter.convert(), ...slideComments(zip, slide, authors)];
  });
  const markdown = writeMarkdown(await slideBlocks(written, { zip, pictures }, reading));
  return { kind: 'pptx', markdown, pages: slides.length, ...coreProperties(zip), ...reading.report() };
}

class SlideConverter {
  readonly #zip: ZipArchive;
  readonly #slide: XmlElement | undefined;
  readonly #links: Map<string, Relationship>;
  readonly #styles: SlideStyles;

  constructor(zip: ZipArchive, part: string) {
    this.#zip = zip;
    this.#slide = child(readPart(zip, part), 'sld');
    this.#links = relationshipsOf(zip, part);
    this.#styles = new SlideStyles(zip, this.#target('slideLayout'));
  }

  convert(): Block[] {
    if (!this.#slide) return [];
    const blocks: Block[] = [];
    for (const shape of readingOrder(childElements(descend(this.#slide, 'cSld', 'spTree')))) this.#shape(shape, blocks);
    return [...blocks, ...this.#notes()];
  }

  pictures(): string[] {
    return this.#slide ? picturesOf(this.#slide, this.#links) : [];
  }

  #target(type: string): string | undefined {
    return [...this.#links.values()].find((one) => one.type === type)?.target;
  }

  #shape(shape: XmlElement, blocks: Block[]): void {
    switch (shape.name) {
      case 'sp':
      case 'cxnSp':
        this.#textShape(shape, blocks);
        return;
      case 'grpSp':
        for (const inner of childElements(shape)) this.#shape(inner, blocks);
        return;
      case 'graphicFrame':
        this.#graphic(shape, blocks);
        return;
      case 'pic': {
        const alternative = oneLine(descendants(shape, 'cNvPr')[0]?.attributes.descr ?? '');
        if (alternative !== '')
          blocks.push({ type: 'paragraph', text: `![${escapeText(alternative).replaceAll(/[[\]]/g, '\\$&')}](image)` });
        return;
      }
      case 'AlternateContent':
        for (const inner of childElements(child(shape, 'Choice') ?? child(shape, 'Fallback')))
          this.#shape(inner, blocks);
    }
  }

  #textShape(shape: XmlElement, blocks: Block[]): void {
    const body = child(shape, 'txBody');
    if (!body) return;
    const placeholder = placeholderOf(shape);
    if (placeholder && /^(?:dt|ftr|sldNum|hdr)$/.test(placeholder.type)) return;
    if (placeholder && /^(?:title|ctrTitle)$/.test(placeholder.type)) {
      const text = childElements(body, 'p')
        .map((one) => this.#paragraphText(one, true))
        .join(' ');
      blocks.push({ type: 'heading', level: 1, text: oneLine(text) });
    } else this.#paragraphs(body, placeholder, blocks);
  }

  #paragraphs(body: XmlElement, placeholder: Placeholder | undefined, blocks: Block[]): void {
    const counters = new Map<number, number>();
    for (const paragraph of childElements(body, 'p')) {
      const text = this.#paragraphText(paragraph, false);
      const depth = Number(child(paragraph, 'pPr')?.attributes.lvl ?? 0);
      if (text.trim() === '') continue;
      const bullet = bulletOf(child(paragraph, 'pPr')) ?? this.#styles.bullet(body, placeholder, depth);
      for (const deeper of counters.keys()) if (deeper > depth) counters.delete(deeper);
      if (bullet === undefined || bullet.kind === 'none') {
        counters.delete(depth);
        blocks.push({ type: 'paragraph', text: text.trim() });
      } else if (bullet.kind === 'character') blocks.push({ type: 'item', depth, marker: '-', text });
      else {
        const number = (counters.get(depth) ?? bullet.start - 1) + 1;
        counters.set(depth, number);
        const label = numberLabel(bullet.scheme, number);
        blocks.push(
          /^\d+[.)]$/.test(label)
            ? { type: 'item', depth, marker: label, text }
            : { type: 'item', depth, marker: '-', text: `${label} ${text}` },
        );
      }
    }
  }

  #paragraphText(paragraph: XmlElement, plain: boolean): string {
    let text = '';
    for (const one of childElements(paragraph)) {
      if (one.name === 'r' || one.name === 'fld') text += this.#runText(one, plain);
      else if (one.name === 'br') text += plain ? ' ' : '  \n';
      else if (one.name === 'm' || one.name === 'AlternateContent')
        for (const math of descendants(child(one, 'Choice') ?? one, 'oMath')) text += ` $${mathToTex(math)}$ `;
    }
    return joinMarks(text).replaceAll('\v', plain ? ' ' : '  \n');
  }

  #runText(run: XmlElement, plain: boolean): string {
    const raw = escapeText(textOf(child(run, 't')));
    const properties = child(run, 'rPr');
    if (plain || raw.trim() === '' || !properties) return raw;
    const { b, i, strike, baseline = '0' } = properties.attributes;
    const on = (value: string | undefined): boolean => value === '1' || value === 'true';
    let text = Number(baseline) === 0 ? raw : script(raw, Number(baseline) > 0 ? 'sup' : 'sub');
    if (strike !== undefined && strike !== 'noStrike') text = mark(text, '~~');
    const delimiter = `${on(b) ? '**' : ''}${on(i) ? '*' : ''}`;
    if (delimiter !== '') text = mark(text, delimiter);
    const target = this.#links.get(child(properties, 'hlinkClick')?.attributes['r:id'] ?? '');
    return target?.external ? link(text, target.target) : text;
  }

  #graphic(frame: XmlElement, blocks: Block[]): void {
    const data = descend(frame, 'graphic', 'graphicData');
    const table = child(data, 'tbl');
    if (table) blocks.push({ type: 'table', rows: this.#tableRows(table) });
    const chart = this.#links.get(child(data, 'chart')?.attributes['r:id'] ?? '')?.target;
    if (chart !== undefined) blocks.push(...chartBlocks(child(readPart(this.#zip, chart), 'chartSpace')));
    const diagram = this.#links.get(child(data, 'relIds')?.attributes['r:dm'] ?? '')?.target;
    if (diagram !== undefined) blocks.push(...diagramBlocks(readPart(this.#zip, diagram)));
  }

  #tableRows(table: XmlElement): string[][] {
    const above = new Map<number, string>();
    return childElements(table, 'tr').map((row) => {
      let left = '';
      return childElements(row, 'tc').map((cell, column) => {
        if (isOn({ ...cell, attributes: { val: cell.attributes.hMerge ?? '0' } })) return left;
        if (isOn({ ...cell, attributes: { val: cell.attributes.vMerge ?? '0' } })) {
          left = above.get(column) ?? '';
          return left;
        }
        const inner: Block[] = [];
        const body = child(cell, 'txBody');
        if (body) this.#paragraphs(body, undefined, inner);
        left = writeInline(inner);
        above.set(column, left);
        return left;
      });
    });
  }

  #notes(): Block[] {
    const notes = child(readPart(this.#zip, this.#target('notesSlide')), 'notes');
    const blocks: Block[] = [];
    for (const shape of childElements(descend(notes, 'cSld', 'spTree'), 'sp')) {
      const body = child(shape, 'txBody');
      if (body && placeholderOf(shape)?.type === 'body')
        this.#paragraphs(body, { type: 'notes', index: undefined }, blocks);
    }
    return blocks.length === 0 ? [] : [{ type: 'quote', blocks: [{ type: 'paragraph', text: 'Notes:' }, ...blocks] }];
  }
}

/** Titles first, then in file order; when all shapes have positions and none overlap, top to bottom. */
function readingOrder(shapes: XmlElement[]): XmlElement[] {
  const isTitle = (shape: XmlElement): boolean => /^(?:title|ctrTitle)$/.test(placeholderOf(shape)?.type ?? '');
  return [...shapes.filter(isTitle), ...shapes.filter((shape) => !isTitle(shape))];
}

/** Joins neighbouring runs of the same format: `**a****b**` becomes `**ab**`. */
function joinMarks(text: string): string {
  return text.replaceAll(/(?<=\S)\*\*(\s*)\*\*(?=\S)/g, '$1');
}

function numberLabel(scheme: string, number: number): string {
  const format = scheme.startsWith('alphaLc')
    ? 'lowerLetter'
    : scheme.startsWith('alphaUc')
      ? 'upperLetter'
      : scheme.startsWith('romanLc')
        ? 'lowerRoman'
        : scheme.startsWith('romanUc')
          ? 'upperRoman'
          : 'decimal';
  const shown = formatNumber(number, format);
  if (scheme.endsWith('ParenBoth')) return `(${shown})`;
  return scheme.endsWith('ParenR') ? `${shown})` : `${shown}.`;
}

type Authors = Map<string, string>;

function commentAuthors(zip: ZipArchive, links: Map<string, Relationship>): Authors {
  const authors: Authors = new Map();
  for (const link of links.values()) {
    if (link.type !== 'commentAuthors' && link.type !== 'authors') continue;
    const root = readPart(zip, link.target);
    for (const one of [...descendants(root, 'cmAuthor'), ...descendants(root, 'author')]) {
      const initials = one.attributes.initials;
      authors.set(one.attributes.id ?? '', `${one.attributes.name ?? ''}${initials ? ` (${initials})` : ''}`);
    }
  }
  return authors;
}

/** Old and threaded comments of a slide: who, when, what. */
function slideComments(zip: ZipArchive, slide: string, authors: Authors): Block[] {
  const blocks: Block[] = [];
  for (const link of relationshipsOf(zip, slide).values()) {
    if (link.type !== 'comments' || link.external) continue;
    const root = readPart(zip, link.target);
    for (const one of [...descendants(root, 'cm'), ...descendants(root, 'reply')]) {
      const text =
        one.name === 'cm' && child(one, 'text')
          ? textOf(child(one, 'text'))
          : descendants(child(one, 'txBody'), 't').map(textOf).join('');
      const author = authors.get(one.attributes.authorId ?? '') ?? 'unknown';
      const time = one.attributes.dt ?? one.attributes.created ?? '';
      if (text.trim() !== '')
        blocks.push({
          type: 'paragraph',
          text: `[author: ${escapeText(author)}, time: ${time}]: ${escapeText(oneLine(text))}`,
        });
    }
  }
  return blocks;
}
