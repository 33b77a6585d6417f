import { child, childElements, descend, descendants, textOf, type XmlElement } from '../format/xml.ts';
import { ZipArchive } from '../format/zip.ts';
import { parseLimits } from '../limits.ts';
import type { Reading } from '../reading.ts';
import { failed, type ParsedDocument } from '../types.ts';
import { type Block, escapeText, joinBlocks, link, oneLine, writeInline, writeMarkdown } from '../write-markdown.ts';
import { chartBlocks } from './chart.ts';
import { diagramBlocks } from './diagram.ts';
import { DocxLists } from './docx-lists.ts';
import { inlineText, joinRuns, linkRuns, plainRun, type Run, symbol, unescapeText } from './docx-runs.ts';
import { DocxStyles, type ParagraphStyle, runFormat } from './docx-styles.ts';
import { mathToTex } from './omml.ts';
import { coreProperties, isOn, mainPart, picturesOf, type Relationship, readPart, relationshipsOf } from './ooxml.ts';
import { pageBlocks } from './page-pictures.ts';

const tableColumnsMax = 200;

/**
 * A Word document (docx, docm, dotx; transitional or strict). If it consists of pictures, they are recognised as its
 * pages. Throws ParseError or Unfinished.
 */
export async function parseDocx(bytes: Uint8Array, reading: Reading): Promise<ParsedDocument> {
  const zip = await ZipArchive.open(bytes);
  const part = mainPart(zip) ?? zip.names.find((name) => /^word\/document\d*\.xml$/i.test(name));
  const body = descend(readPart(zip, part), 'document', 'body');
  if (part === undefined || !body) throw failed('The file is damaged: the text of the Word document is missing.');
  const converter = new DocxConverter(zip, part, await readChunks(zip, part));
  const text = converter.blocks(body);
  const pictures = picturesOf(body, relationshipsOf(zip, part)).map((name, index) => ({ part: name, page: index + 1 }));
  text.push(...(await pageBlocks(text, { zip, pictures }, reading)));
  if (writeMarkdown(text).trim() === '') text.push(...converter.margins());
  const markdown = writeMarkdown([...text, ...converter.notes()]);
  const language = converter.language;
  return { kind: 'docx', markdown, ...(language ? { language } : {}), ...coreProperties(zip), ...reading.report() };
}

/** A field, and where its result begins among the runs of its paragraph. */
type Field = { instruction: string; shown: boolean; runs: Run[]; start: number };

/** Documents in another format (HTML, web archives, RTF, text) that Word inserts when it opens the file, by relationship. */
async function readChunks(zip: ZipArchive, part: string): Promise<Map<string, Block[]>> {
  const chunks = new Map<string, Block[]>();
  for (const [id, { type, target, external }] of relationshipsOf(zip, part)) {
    const bytes = type === 'aFChunk' && !external ? zip.read(target) : undefined;
    if (bytes !== undefined) chunks.set(id, await (await import('./docx-chunk.ts')).chunkBlocks(bytes));
  }
  return chunks;
}

class DocxConverter {
  readonly #styles: DocxStyles;
  readonly #lists: DocxLists;
  readonly #links: Map<string, Relationship>;
  readonly #zip: ZipArchive;
  readonly #chunks: Map<string, Block[]>;
  readonly #notes = new Map<string, XmlElement>();
  readonly #notesUsed: string[] = [];
  #fields: Field[] = [];
  /** Text that begins the next paragraph: a drop cap, or a paragraph whose end was deleted. */
  #carried: Run[] = [];

  constructor(zip: ZipArchive, part: string, chunks: Map<string, Block[]>) {
    this.#zip = zip;
    this.#chunks = chunks;
    this.#links = relationshipsOf(zip, part);
    const related = (type: string): XmlElement | undefined =>
      readPart(zip, [...this.#links.values()].find((one) => one.type === type)?.target);
    this.#styles = new DocxStyles(related('styles'));
    this.#lists = new DocxLists(related('numbering'));
    for (const kind of ['footnote', 'endnote'])
      for (const note of childElements(child(related(`${kind}s`), `${kind}s`), kind))
        if (note.attributes.type === undefined || note.attributes.type === 'normal')
          this.#notes.set(`${kind}${note.attributes.id}`, note);
  }

  get language(): string | undefined {
    return this.#styles.language;
  }

  blocks(container: XmlElement): Block[] {
    const blocks: Block[] = [];
    const outer = this.#carried;
    this.#carried = [];
    for (const one of childElements(container)) this.#block(one, blocks);
    this.#endCarried(blocks);
    this.#carried = outer;
    return joinBlocks(blocks);
  }

  /** The text of the headers and footers, which matter only in a document without any other text. */
  margins(): Block[] {
    const texts = [...this.#links.values()].flatMap(({ type, target, external }) =>
      (type === 'header' || type === 'footer') && !external ? [readPart(this.#zip, target)] : [],
    );
    return texts.flatMap((part) => childElements(part).flatMap((one) => this.blocks(one)));
  }

  #endCarried(blocks: Block[]): void {
    const text = joinRuns(this.#carried);
    this.#carried = [];
    if (text.trim() !== '') blocks.push({ type: 'paragraph', text });
  }

  /** Foot- and endnotes that the text refers to, in the order of their references. */
  notes(): Block[] {
    const blocks: Block[] = [];
    for (let index = 0; index < this.#notesUsed.length; index++) {
      const note = this.#notes.get(this.#notesUsed[index] ?? '');
      if (note) blocks.push({ type: 'note', label: String(index + 1), blocks: this.blocks(note) });
    }
    return blocks;
  }

  #block(element: XmlElement, blocks: Block[]): void {
    switch (element.name) {
      case 'p':
        this.#paragraph(element, blocks);
        return;
      case 'tbl':
        this.#endCarried(blocks);
        this.#table(element, blocks);
        return;
      case 'sdt':
        for (const one of childElements(child(element, 'sdtContent'))) this.#block(one, blocks);
        return;
      case 'AlternateContent':
        for (const one of childElements(child(element, 'Choice') ?? child(element, 'Fallback')))
          this.#block(one, blocks);
        return;
      case 'ins':
      case 'moveTo':
      case 'customXml':
      case 'smartTag':
        for (const one of childElements(element)) this.#block(one, blocks);
        return;
      case 'altChunk':
        blocks.push(...(this.#chunks.get(element.attributes['r:id'] ?? '') ?? []));
        return;
      case 'oMathPara':
      case 'oMath':
        this.#displayMath(element, blocks);
    }
  }

  #paragraph(element: XmlElement, blocks: Block[]): void {
    const properties = child(element, 'pPr');
    const styleId = child(properties, 'pStyle')?.attributes.val;
    const style = this.#styles.paragraph(styleId);
    const boxes: Block[] = [];
    const runs = this.#carried;
    this.#carried = [];
    this.#inline(element, style, runs, boxes);
    if (continuesInNext(properties)) {
      this.#carried = runs;
      blocks.push(...boxes);
      return;
    }
    const heading = this.#headingLevel(properties, style);
    const label = this.#label(
      properties,
      style,
      styleId,
      runs.some((run) => run.text.trim() !== '') || onlyMath(element),
    );
    if (style.code && heading === undefined) {
      const text = runs
        .map((run) => run.text)
        .join('')
        .replaceAll('  \n', '\n');
      blocks.push({ type: 'code', text: unescapeText(text) });
    } else if (onlyMath(element)) {
      for (const math of [...descendants(element, 'oMath')]) this.#displayMath(math, blocks);
    } else {
      const text = joinRuns(heading === undefined && !style.title ? runs : runs.map(plainRun));
      if (text.trim() !== '') {
        const indent = label?.label === '' && heading === undefined ? indentOf(blocks.at(-1), label.depth) : undefined;
        blocks.push(
          indent === undefined ? paragraphBlock(text, style, heading, label) : { type: 'paragraph', text, indent },
        );
      }
    }
    blocks.push(...boxes);
  }

  #headingLevel(properties: XmlElement | undefined, style: ParagraphStyle): number | undefined {
    if (style.title) return 1;
    const outline = child(properties, 'outlineLvl')?.attributes.val;
    if (outline !== undefined) return Number(outline) < 9 ? Math.min(6, Number(outline) + 1) : undefined;
    return style.heading;
  }

  /** The number or bullet of the paragraph, counted only when the paragraph is visible. */
  #label(
    properties: XmlElement | undefined,
    style: ParagraphStyle,
    styleId: string | undefined,
    shows: boolean,
  ): { depth: number; label: string } | undefined {
    const own = child(properties, 'numPr');
    const numberId = child(own, 'numId')?.attributes.val ?? style.numberId;
    if (numberId === undefined || numberId === '0' || !shows) return undefined;
    const stated = child(own, 'ilvl')?.attributes.val ?? style.numberLevel;
    const level = stated === undefined ? (this.#lists.levelOfStyle(numberId, styleId ?? '') ?? 0) : Number(stated);
    const label = this.#lists.next(numberId, level);
    return label === undefined ? undefined : { depth: level, label: label.trim() };
  }

  #displayMath(element: XmlElement, blocks: Block[]): void {
    const formulas = element.name === 'oMathPara' ? childElements(element, 'oMath') : [element];
    for (const formula of formulas) {
      const tex = mathToTex(formula);
      if (tex !== '') blocks.push({ type: 'raw', text: `$$${tex}$$` });
    }
  }

  #inline(element: XmlElement, style: ParagraphStyle, runs: Run[], boxes: Block[]): void {
    for (const one of childElements(element)) {
      switch (one.name) {
        case 'r':
          this.#run(one, style, runs, boxes);
          break;
        case 'hyperlink': {
          const inner: Run[] = [];
          this.#inline(one, style, inner, boxes);
          const target = this.#links.get(one.attributes['r:id'] ?? one.attributes.id ?? '');
          const text = joinRuns(inner.map((run) => ({ ...run, code: false })));
          runs.push(inlineText(target?.external ? link(text, target.target) : text));
          break;
        }
        case 'oMath':
          runs.push(inlineText(`$${mathToTex(one)}$`));
          break;
        case 'oMathPara':
          for (const formula of childElements(one, 'oMath')) runs.push(inlineText(` $${mathToTex(formula)}$ `));
          break;
        case 'sdt':
          this.#inline(child(one, 'sdtContent') ?? one, style, runs, boxes);
          break;
        case 'AlternateContent':
          this.#inline(child(one, 'Choice') ?? child(one, 'Fallback') ?? one, style, runs, boxes);
          break;
        case 'fldSimple': {
          const start = runs.length;
          this.#inline(one, style, runs, boxes);
          linkRuns(runs, start, one.attributes.instr ?? '');
          break;
        }
        case 'ins':
        case 'moveTo':
        case 'smartTag':
        case 'customXml':
        case 'dir':
        case 'bdo':
          this.#inline(one, style, runs, boxes);
      }
    }
  }

  #run(element: XmlElement, style: ParagraphStyle, runs: Run[], boxes: Block[]): void {
    const properties = child(element, 'rPr');
    const characterStyle = child(properties, 'rStyle')?.attributes.val;
    const position = child(properties, 'vertAlign')?.attributes.val;
    const run: Run = {
      text: '',
      format: { ...style.run, ...this.#styles.character(characterStyle), ...runFormat(properties) },
      code: this.#styles.isCode(characterStyle),
      script: position === 'superscript' ? 'sup' : position === 'subscript' ? 'sub' : '',
    };
    if (run.format.hidden) return;
    this.#runContents(element, run, runs, boxes, style);
    if (run.text !== '') runs.push(run);
  }

  #runContents(element: XmlElement, run: Run, runs: Run[], boxes: Block[], style: ParagraphStyle): void {
    for (const one of childElements(element)) {
      const hiddenByField = this.#fields.some((field) => !field.shown);
      switch (one.name) {
        case 't':
          if (!hiddenByField) run.text += escapeText(textOf(one));
          break;
        case 'tab':
        case 'ptab':
          run.text += ' ';
          break;
        case 'br':
        case 'cr':
          if (one.attributes.type !== 'page' && one.attributes.type !== 'column') run.text += '  \n';
          break;
        case 'noBreakHyphen':
          run.text += '\u2011';
          break;
        case 'sym':
          run.text += symbol(one.attributes.char, one.attributes.font);
          break;
        case 'fldChar':
          this.#fieldMark(one.attributes.fldCharType, runs);
          break;
        case 'instrText': {
          const field = this.#fields.at(-1);
          if (field) field.instruction += textOf(one);
          break;
        }
        case 'footnoteReference':
        case 'endnoteReference':
          run.text += this.#noteReference(`${one.name.slice(0, -9)}${one.attributes.id}`);
          break;
        case 'drawing':
        case 'pict':
        case 'object':
          this.#drawing(one, run, boxes);
          break;
        case 'AlternateContent':
          this.#runContents(child(one, 'Choice') ?? child(one, 'Fallback') ?? one, run, runs, boxes, style);
          break;
        case 'ruby':
          for (const inner of childElements(child(one, 'rubyBase'), 'r'))
            this.#runContents(inner, run, runs, boxes, style);
      }
    }
  }

  #fieldMark(type: string | undefined, runs: Run[]): void {
    if (type === 'begin' && this.#fields.length < 50)
      this.#fields.push({ instruction: '', shown: false, runs, start: runs.length });
    else if (type === 'separate') {
      const field = this.#fields.at(-1);
      if (field) Object.assign(field, { shown: true, runs, start: runs.length });
    } else if (type === 'end') {
      const field = this.#fields.pop();
      if (field?.shown && field.runs === runs) linkRuns(runs, field.start, field.instruction);
    }
  }

  #noteReference(key: string): string {
    if (!this.#notes.has(key)) return '';
    if (!this.#notesUsed.includes(key)) this.#notesUsed.push(key);
    return `[^${this.#notesUsed.indexOf(key) + 1}]`;
  }

  /** Writes a picture as its description. Text boxes and charts become blocks after this paragraph. */
  #drawing(element: XmlElement, run: Run, boxes: Block[]): void {
    const seen = new Set<string>();
    for (const box of descendants(element, 'txbxContent')) {
      const blocks = this.blocks(box);
      const text = writeMarkdown(blocks);
      if (seen.has(text)) continue;
      seen.add(text);
      boxes.push(...blocks);
    }
    for (const chart of descendants(element, 'chart')) {
      const target = this.#links.get(chart.attributes['r:id'] ?? chart.attributes.id ?? '')?.target;
      boxes.push(...chartBlocks(child(readPart(this.#zip, target), 'chartSpace')));
    }
    for (const diagram of descendants(element, 'relIds'))
      boxes.push(...diagramBlocks(readPart(this.#zip, this.#links.get(diagram.attributes['r:dm'] ?? '')?.target)));
    if (seen.size > 0) return;
    const name = descendants(element, 'docPr')[0] ?? descendants(element, 'shape')[0];
    const alternative = oneLine(name?.attributes.descr ?? name?.attributes.alt ?? '');
    if (alternative !== '' && alternative.length < 1000)
      run.text += `![${escapeText(alternative).replaceAll(/[[\]]/g, '\\$&')}](image)`;
  }

  #table(element: XmlElement, blocks: Block[]): void {
    const rows: string[][] = [];
    const carried = new Map<number, string>();
    let cells = 0;
    for (const row of tableRows(element)) {
      const texts: string[] = [];
      const before = Number(descend(row, 'trPr', 'gridBefore')?.attributes.val ?? 0);
      for (let skip = 0; skip < Math.min(before, tableColumnsMax); skip++) texts.push('');
      for (const cell of tableCells(row)) {
        const properties = child(cell, 'tcPr');
        const merge = child(properties, 'vMerge');
        const width = Math.min(
          tableColumnsMax,
          Math.max(1, Number(child(properties, 'gridSpan')?.attributes.val ?? 1) || 1),
        );
        const continued = merge !== undefined && merge.attributes.val !== 'restart';
        const text = continued ? (carried.get(texts.length) ?? '') : writeInline(this.blocks(cell));
        if (merge && !continued) carried.set(texts.length, text);
        else if (!merge) carried.delete(texts.length);
        for (let column = 0; column < width && texts.length < tableColumnsMax; column++) texts.push(text);
        cells += 1;
        if (cells > parseLimits.sheetCellsMax) throw failed('A table of the document has more cells than can be read.');
      }
      rows.push(texts);
    }
    if (rows.length === 1 && rows[0]?.length === 1) {
      for (const row of tableRows(element)) for (const cell of tableCells(row)) blocks.push(...this.blocks(cell));
    } else blocks.push({ type: 'table', rows });
  }
}

function tableRows(table: XmlElement): XmlElement[] {
  return childElements(table).flatMap((one) => {
    if (one.name === 'tr') return isOn(descend(one, 'trPr', 'del')) ? [] : [one];
    if (one.name === 'sdt') return tableRows(child(one, 'sdtContent') ?? one);
    return one.name === 'customXml' || one.name === 'ins' ? tableRows(one) : [];
  });
}

function tableCells(row: XmlElement): XmlElement[] {
  return childElements(row).flatMap((one) => {
    if (one.name === 'tc') return [one];
    if (one.name === 'sdt') return tableCells(child(one, 'sdtContent') ?? one);
    return one.name === 'customXml' ? tableCells(one) : [];
  });
}

/** The indent of a paragraph without a label, if it continues an item of that depth. */
function indentOf(previous: Block | undefined, depth: number): number | undefined {
  if (previous?.type === 'item' && previous.depth === depth) return 4 * depth + previous.marker.length + 1;
  return previous?.type === 'paragraph' ? previous.indent : undefined;
}

function paragraphBlock(
  text: string,
  style: ParagraphStyle,
  heading: number | undefined,
  label: { depth: number; label: string } | undefined,
): Block {
  if (heading !== undefined) {
    const numbered = label && label.label !== '-' && label.label !== '' ? `${label.label} ${text}` : text;
    return { type: 'heading', level: heading, text: oneLine(numbered) };
  }
  if (label) {
    if (/^\d+[.)]$/.test(label.label)) return { type: 'item', depth: label.depth, marker: label.label, text };
    const shown = label.label === '-' || label.label === '' ? text : `${escapeText(label.label)} ${text}`;
    return { type: 'item', depth: label.depth, marker: '-', text: shown };
  }
  if (style.quote) return { type: 'quote', blocks: [{ type: 'paragraph', text }] };
  return { type: 'paragraph', text };
}

/** Whether the next paragraph continues this one: it is a drop cap, or its end is a tracked deletion. */
function continuesInNext(properties: XmlElement | undefined): boolean {
  const dropCap = child(properties, 'framePr')?.attributes.dropCap ?? 'none';
  const end = child(properties, 'rPr');
  return dropCap !== 'none' || child(end, 'del') !== undefined || child(end, 'moveFrom') !== undefined;
}

function onlyMath(paragraph: XmlElement): boolean {
  if (descendants(paragraph, 'oMath').length === 0) return false;
  return !descendants(paragraph, 't').some((text) => textOf(text).trim() !== '' && !isInsideMath(paragraph, text));
}

function isInsideMath(paragraph: XmlElement, text: XmlElement): boolean {
  return descendants(paragraph, 'oMath').some((math) => descendants(math, 't').includes(text));
}
