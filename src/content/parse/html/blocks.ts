import { type Block, codeSpan, escapeText, link, mark, oneLine, writeInline } from '../markdown.ts';
import { findElement, type HtmlElement, htmlText } from './block-tree.ts';

const skipped = new Set([
  'head',
  'title',
  'meta',
  'link',
  'input',
  'select',
  'datalist',
  'map',
  'area',
  'param',
  'source',
  'track',
]);
const transparent = new Set(['html', 'body', '']);
const blockNames = new Set(
  'address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol p pre search section summary table tbody td tfoot th thead tr ul caption'.split(
    ' ',
  ),
);
const spanMax = 100;
const tableColumnsMax = 500;

export type HtmlOptions = {
  /** Base for relative links; without it they stay as written. */
  baseUrl?: string | undefined;
};

/** The blocks of an element's contents, in order. */
export function htmlBlocks(element: HtmlElement, options: HtmlOptions = {}): Block[] {
  const writer = new BlockWriter(options);
  writer.contents(element, { listDepth: -1, marks: '' });
  writer.flush();
  return writer.blocks;
}

type Context = { listDepth: number; marks: string };

class BlockWriter {
  readonly blocks: Block[] = [];
  readonly #options: HtmlOptions;
  #inline = '';
  #item: { depth: number; marker: string } | undefined;

  constructor(options: HtmlOptions) {
    this.#options = options;
  }

  contents(element: HtmlElement, context: Context): void {
    for (const node of element.children) {
      if (typeof node === 'string') this.#inline += escapeText(node.replaceAll(/\s+/g, ' '));
      else if (!isHidden(node) && !skipped.has(node.name)) this.#element(node, context);
    }
  }

  /** Ends the paragraph (or the first paragraph of a list item) that is being collected. */
  flush(): void {
    const text = this.#inline
      .replaceAll(/[ \t\r\n\f]+/g, ' ')
      .replaceAll(/ ?\u2028 ?/g, '\u2028')
      .replaceAll(/^[\s\u2028]+|[\s\u2028]+$/g, '')
      .replaceAll('\u2028', '  \n');
    this.#inline = '';
    const item = this.#item;
    if (text === '') return;
    if (item) {
      this.blocks.push({ type: 'item', ...item, text });
      this.#item = undefined;
    } else this.blocks.push({ type: 'paragraph', text });
  }

  #element(element: HtmlElement, context: Context): void {
    const { name } = element;
    if (/^h[1-6]$/.test(name)) this.#heading(element, Number(name[1]));
    else if (name === 'ul' || name === 'ol' || name === 'menu' || name === 'dir') this.#list(element, context);
    else if (name === 'dl') this.#definitions(element, context);
    else if (name === 'table') this.#table(element, context);
    else if (name === 'pre') this.#preformatted(element);
    else if (name === 'blockquote') this.#quote(element);
    else if (name === 'hr') this.#push({ type: 'rule' });
    else if (name === 'br') this.#inline += '\u2028';
    else if (name === 'img') this.#inline += this.#image(element);
    else if (name === 'math') this.#inline += mathText(element);
    else if (transparent.has(name) || blockNames.has(name)) {
      this.flush();
      this.contents(element, context);
      this.flush();
    } else this.#inlineElement(element, context);
  }

  #push(block: Block): void {
    this.flush();
    this.blocks.push(block);
  }

  /** Inline elements that hold blocks (a link round a card) are let go of: their blocks matter more than the mark. */
  #inlineElement(element: HtmlElement, context: Context): void {
    if (hasBlockInside(element)) {
      this.contents(element, context);
      return;
    }
    const before = this.#inline;
    this.#inline = '';
    if (/^(?:code|kbd|samp|tt|var)$/.test(element.name) && element.name !== 'var') {
      this.#inline = before + codeSpan(oneLine(htmlText(element)));
      return;
    }
    this.contents(element, context);
    this.#inline = before + this.#marked(element, this.#inline);
  }

  #marked(element: HtmlElement, inner: string): string {
    switch (element.name) {
      case 'strong':
      case 'b':
        return inner.includes('**') ? inner : mark(inner, '**');
      case 'em':
      case 'i':
      case 'cite':
        return /(?<!\*)\*(?!\*)/.test(inner) ? inner : mark(inner, '*');
      case 'del':
      case 's':
      case 'strike':
        return inner.includes('~~') ? inner : mark(inner, '~~');
      case 'sub':
      case 'sup':
        return inner.trim() === '' ? inner : `<${element.name}>${inner.trim()}</${element.name}>`;
      case 'q':
        return `“${inner}”`;
      case 'a':
        return this.#anchor(element, inner);
      default:
        return inner;
    }
  }

  #anchor(element: HtmlElement, inner: string): string {
    const target = element.attributes.href;
    if (target === undefined || target.startsWith('#')) return inner;
    return link(inner, this.#resolve(target));
  }

  #image(element: HtmlElement): string {
    const alt = escapeText(oneLine(element.attributes.alt ?? ''));
    const source = element.attributes.src ?? '';
    if (source === '' || source.startsWith('data:')) return alt === '' ? '' : ` ${alt} `;
    return `![${alt}](${this.#resolve(source)
      .replaceAll(/[\s<>]/g, encodeURIComponent)
      .replaceAll('(', '%28')
      .replaceAll(')', '%29')})`;
  }

  #resolve(target: string): string {
    const base = this.#options.baseUrl;
    return base !== undefined && URL.canParse(target, base) ? new URL(target, base).href : target;
  }

  #heading(element: HtmlElement, level: number): void {
    this.flush();
    const inner = new BlockWriter(this.#options);
    inner.contents(element, { listDepth: -1, marks: '' });
    inner.flush();
    const text = inner.blocks.map((block) => ('text' in block ? block.text : writeInline([block]))).join(' ');
    this.blocks.push({ type: 'heading', level, text: oneLine(text.replaceAll(/\*\*/g, '')) });
  }

  #list(element: HtmlElement, context: Context): void {
    this.flush();
    const depth = context.listDepth + 1;
    let number = Number.parseInt(element.attributes.start ?? '1', 10);
    if (!Number.isFinite(number)) number = 1;
    for (const child of element.children) {
      if (typeof child === 'string') continue;
      if (child.name !== 'li') {
        this.#element(child, { ...context, listDepth: depth });
        continue;
      }
      if (isHidden(child)) continue;
      const marker = element.name === 'ol' ? `${number}.` : '-';
      number += 1;
      this.#entry(child, depth, marker, context);
    }
  }

  #definitions(element: HtmlElement, context: Context): void {
    this.flush();
    const depth = context.listDepth + 1;
    for (const child of element.children) {
      if (typeof child === 'string') continue;
      if (child.name === 'div') this.#definitions(child, context);
      else if (child.name === 'dt') {
        const first = this.blocks.length;
        this.#entry(child, depth, '-', context);
        const block = this.blocks[first];
        if (block?.type === 'item' && !block.text.includes('**')) block.text = mark(block.text, '**');
      } else if (child.name === 'dd') this.#entry(child, depth + 1, '-', { ...context, listDepth: depth });
      else this.#element(child, context);
    }
  }

  /** One item: its first text beside the marker, further paragraphs as continuations, lists inside one level deeper. */
  #entry(element: HtmlElement, depth: number, marker: string, context: Context): void {
    this.#item = { depth, marker };
    const first = this.blocks.length;
    this.contents(element, { ...context, listDepth: depth });
    this.flush();
    this.#item = undefined;
    const own = this.blocks[first];
    if (own?.type !== 'item') return;
    while (this.blocks[first + 1]?.type === 'paragraph') {
      const [next] = this.blocks.splice(first + 1, 1);
      if (next?.type === 'paragraph') own.text += `\n\n${next.text}`;
    }
  }

  #preformatted(element: HtmlElement): void {
    const text = htmlText(element).replaceAll(/\r\n?/g, '\n').replace(/^\n/, '');
    if (text.trim() === '') return;
    const code = findElement(element, 'code');
    const language = /\b(?:language|lang|highlight-source)-([\w+#-]+)/.exec(
      `${code?.attributes.class ?? ''} ${element.attributes.class ?? ''}`,
    )?.[1];
    this.#push({ type: 'code', text, ...(language === undefined ? {} : { language }) });
  }

  #quote(element: HtmlElement): void {
    this.flush();
    const blocks = htmlBlocks(element, this.#options);
    if (blocks.length > 0) this.blocks.push({ type: 'quote', blocks });
  }

  #table(element: HtmlElement, context: Context): void {
    this.flush();
    const caption = element.children.find((node) => typeof node !== 'string' && node.name === 'caption');
    const rows = tableRows(element);
    if (isLayoutTable(element, rows)) {
      for (const cell of rows.flat()) {
        this.contents(cell, context);
        this.flush();
      }
      return;
    }
    if (caption && typeof caption !== 'string') {
      this.contents(caption, context);
      this.flush();
    }
    this.blocks.push({ type: 'table', rows: spread(rows, (cell) => writeInline(htmlBlocks(cell, this.#options))) });
  }
}

/** Rows of this table alone, not of tables in its cells. */
function tableRows(table: HtmlElement): HtmlElement[][] {
  const rows: HtmlElement[][] = [];
  const visit = (element: HtmlElement): void => {
    for (const child of element.children) {
      if (typeof child === 'string' || isHidden(child)) continue;
      if (child.name === 'tr')
        rows.push(
          child.children.filter(
            (one): one is HtmlElement => typeof one !== 'string' && (one.name === 'td' || one.name === 'th'),
          ),
        );
      else if (child.name !== 'table' && child.name !== 'caption') visit(child);
    }
  };
  visit(table);
  return rows.filter((row) => row.length > 0);
}

/** Tables that only place things on the page: one cell, tables inside, or headings and long text in the cells. */
function isLayoutTable(table: HtmlElement, rows: HtmlElement[][]): boolean {
  if (table.attributes.role === 'presentation') return true;
  const cells = rows.flat();
  if (cells.length <= 1) return true;
  if (cells.some((cell) => cell.name === 'th')) return false;
  const heavy = cells.filter((cell) => /^(?:table|h[1-3]|article|section)$/.test(firstHeavy(cell) ?? '')).length;
  return heavy > 0 && (rows.length === 1 || heavy > cells.length / 2);
}

function firstHeavy(cell: HtmlElement): string | undefined {
  return ['table', 'h1', 'h2', 'h3', 'article', 'section'].find((name) => findElement(cell, name));
}

/** Cells that span rows or columns are repeated in each place, so that every row can be read by itself. */
function spread(rows: HtmlElement[][], write: (cell: HtmlElement) => string): string[][] {
  const grid: string[][] = rows.map(() => []);
  rows.forEach((row, y) => {
    let x = 0;
    for (const cell of row) {
      while (grid[y]?.[x] !== undefined) x += 1;
      if (x >= tableColumnsMax) break;
      const text = write(cell);
      const columns = span(cell.attributes.colspan);
      const height = Math.min(span(cell.attributes.rowspan), rows.length - y);
      for (let down = 0; down < height; down++)
        for (let right = 0; right < columns && x + right < tableColumnsMax; right++) {
          const target = grid[y + down];
          if (target) target[x + right] = text;
        }
      x += columns;
    }
  });
  return grid.map((row) => Array.from(row, (cell) => cell ?? ''));
}

function span(value: string | undefined): number {
  const number = Number.parseInt(value ?? '1', 10);
  return Number.isFinite(number) ? Math.min(spanMax, Math.max(1, number)) : 1;
}

function hasBlockInside(element: HtmlElement): boolean {
  return element.children.some(
    (node) => typeof node !== 'string' && (blockNames.has(node.name) || hasBlockInside(node)),
  );
}

function isHidden(element: HtmlElement): boolean {
  const { attributes } = element;
  return (
    'hidden' in attributes ||
    (attributes['aria-hidden'] === 'true' && element.name !== 'a' && htmlText(element).trim().length < 3) ||
    /display\s*:\s*none|visibility\s*:\s*hidden/i.test(attributes.style ?? '')
  );
}

/** The TeX of a formula when the page carries it, else its symbols. */
function mathText(element: HtmlElement): string {
  const tex = findElement(element, 'annotation');
  if (tex && /tex/i.test(tex.attributes.encoding ?? '')) return `$${oneLine(htmlText(tex))}$`;
  return escapeText(oneLine(htmlText(element)));
}
