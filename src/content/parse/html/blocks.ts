import { type Block, codeSpan, escapeText, link, mark, oneLine, writeInline } from '../write-markdown.ts';
import { isBesideCode } from './code.ts';
import { marks } from './structure/marks.ts';
import { isLayoutTable, spreadCells, tableRows } from './table-grid.ts';
import { blockNames, collect, type HtmlElement, type HtmlNode, type HtmlText, textLength, textOf } from './tree.ts';

const skipped = new Set(
  'head title meta link input select textarea button datalist map area param source track rt rp rtc'.split(' '),
);

/** Elements that set their contents apart. */
const boxNames = new Set('div section aside article main header footer form nav figure details fieldset td'.split(' '));

const urlCharactersMax = 4_096;
/** How many spaces further a nested list stands. */
const indentOfLevel = 4;
/** Marks a line break inside a paragraph until the paragraph is complete. */
const lineBreak = '\u2028';

type HtmlOptions = {
  /** The base of relative links. Without it, they stay unchanged. */
  baseUrl?: string | undefined;
  /** The caller has removed hidden elements, or knows that a script reveals them. */
  keepHidden?: boolean;
  /** Filled with the element that each block stands in. */
  boxes?: Map<Block, HtmlElement> | undefined;
  /** Called with a description of each part of a table that is left out because of the table's size. */
  onCut?: ((missing: string) => void) | undefined;
};

/** The blocks of an element's contents, in order. */
export function htmlBlocks(element: HtmlElement, options: HtmlOptions = {}): Block[] {
  const notes = new Set<string>();
  for (const { attributes } of collect(element, (one) => one.attributes[marks.note] !== undefined))
    notes.add(attributes[marks.note] ?? '');
  return blocksOf(element, { ...options, notes });
}

function blocksOf(element: HtmlElement, options: WriterOptions): Block[] {
  const writer = new BlockWriter(options);
  writer.contents(element, topLevel);
  writer.flush();
  return writer.blocks;
}

type Context = { listDepth: number };
const topLevel: Context = { listDepth: -1 };
/** `notes` are the labels of the footnotes whose text is part of the document. */
type WriterOptions = HtmlOptions & { notes: ReadonlySet<string> };

class BlockWriter {
  readonly blocks: Block[] = [];
  readonly #options: WriterOptions;
  readonly #holdsBlocks = new Map<HtmlElement, boolean>();
  #inline = '';
  #inLink = false;
  #item: { depth: number; marker: string } | undefined;
  #box: HtmlElement | undefined;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  contents(element: HtmlElement, context: Context): void {
    for (const node of element.children) {
      if (node.kind === 'text') this.#inline += this.#text(node);
      else if (!this.#isLeftOut(node)) this.#element(node, context);
    }
  }

  #text(node: HtmlText): string {
    const escaped = escapeText(breakMarks.test(node.text) ? plainText(node.text) : node.collapsed.toWellFormed());
    return this.#inLink ? escapeBrackets(escaped) : escaped;
  }

  #isLeftOut(element: HtmlElement): boolean {
    if (skipped.has(element.name) || isFormulaCopy(element)) return true;
    return this.#options.keepHidden !== true && isHidden(element);
  }

  #add(block: Block): void {
    this.blocks.push(block);
    if (this.#box !== undefined) this.#options.boxes?.set(block, this.#box);
  }

  /** Writes the contents of a box, apart from what surrounds it. */
  #inside(box: HtmlElement, context: Context): void {
    const outer = this.#box;
    this.flush();
    if (boxNames.has(box.name)) this.#box = box;
    this.contents(box, context);
    this.flush();
    this.#box = outer;
  }

  /** Ends the current paragraph (or first paragraph of a list item). Two line breaks also end one. */
  flush(): void {
    const inline = this.#inline;
    this.#inline = '';
    if (inline === '') return;
    for (const piece of inline.split(/\u2028(?:\s*\u2028)+/)) this.#paragraph(piece);
  }

  #paragraph(inline: string): void {
    const spaced = /[\t\r\n\f\u00a0]| {2}/.test(inline) ? inline.replaceAll(/[ \t\r\n\f\u00a0]+/g, ' ') : inline;
    const text = spaced
      .replaceAll(/ ?\u2028 ?/g, lineBreak)
      .trim()
      .replaceAll(lineBreak, '  \n');
    if (text === '') return;
    const item = this.#item;
    if (item) {
      this.#add({ type: 'item', ...item, text });
      this.#item = undefined;
    } else this.#add({ type: 'paragraph', text });
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
    else if (name === 'br') this.#inline += lineBreak;
    else if (name === 'img') this.#inline += this.#image(element);
    else if (name === 'math') this.#formula(element);
    else if (element.attributes[marks.noteRef] !== undefined) this.#inline += this.#noteRef(element);
    else if (element.attributes[marks.note] !== undefined) this.#note(element);
    else if (blockNames.has(name)) this.#inside(element, context);
    else this.#inlineElement(element, context);
  }

  #formula(element: HtmlElement): void {
    const tex = element.attributes[marks.tex];
    if (tex === undefined) this.#inline += mathText(element);
    else if (element.attributes.display === 'block') this.#push({ type: 'formula', tex });
    else this.#inline += `$${oneLine(tex)}$`;
  }

  /** Without its note, a reference is only a number. */
  #noteRef(element: HtmlElement): string {
    const label = element.attributes[marks.noteRef] ?? '';
    return this.#options.notes.has(label) ? `[^${label}]` : `<sup>${escapeText(label)}</sup>`;
  }

  #note(element: HtmlElement): void {
    const blocks = blocksOf(element, this.#options);
    if (blocks.length > 0) this.#push({ type: 'note', label: element.attributes[marks.note] ?? '', blocks });
  }

  #push(block: Block): void {
    this.flush();
    this.#add(block);
  }

  /** If an inline element contains blocks (a link around a card), the element is dropped and the blocks are kept. */
  #inlineElement(element: HtmlElement, context: Context): void {
    if (this.#hasBlockInside(element)) {
      this.contents(element, context);
      return;
    }
    const before = this.#inline;
    this.#inline = '';
    if (/^(?:code|kbd|samp|tt)$/.test(element.name)) {
      this.#inline = before + spaced(rawText(element), codeSpan);
      return;
    }
    const wasInLink = this.#inLink;
    if (element.name === 'a') this.#inLink = true;
    this.contents(element, context);
    this.#inLink = wasInLink;
    const inner = this.#inline;
    const isUnit = element.name === 'sup' && /^[23]$/.test(inner) && unitOfLength.test(before);
    this.#inline = before + (isUnit ? inner : this.#marked(element, inner));
  }

  #hasBlockInside(element: HtmlElement): boolean {
    const known = this.#holdsBlocks.get(element);
    if (known !== undefined) return known;
    const holds = element.children.some(
      (node) => node.kind === 'element' && (blockNames.has(node.name) || this.#hasBlockInside(node)),
    );
    this.#holdsBlocks.set(element, holds);
    return holds;
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

  /** A link within the page has no meaning outside of the page. */
  #anchor(element: HtmlElement, inner: string): string {
    const target = element.attributes.href?.trim();
    if (target === undefined || target.startsWith('#') || target.length > urlCharactersMax) return inner;
    return link(inner, this.#resolve(target));
  }

  /**
   * Lazily loaded images have their address in other attributes. Small images without a description are spacers and
   * trackers.
   */
  #image({ attributes }: HtmlElement): string {
    const alt = escapeBrackets(escapeText(oneLine(plainText(attributes.alt ?? ''))));
    if (isEmoji(attributes, alt)) return alt;
    const candidates = ['data-src', 'data-original', 'data-lazy-src', 'src'].map((name) => attributes[name]?.trim());
    const source =
      candidates.find((value) => value !== undefined && value !== '' && !value.startsWith('data:')) ??
      firstOfSet(attributes.srcset ?? attributes['data-srcset']);
    if (source === undefined || source.length > urlCharactersMax) return alt === '' ? '' : `![${alt}]()`;
    if (alt === '' && Math.min(Number(attributes.width ?? 99), Number(attributes.height ?? 99)) < 32) return '';
    return `![${alt}](${this.#resolve(source)
      .replaceAll(/[\s<>]/g, encodeURIComponent)
      .replaceAll('(', '%28')
      .replaceAll(')', '%29')})`;
  }

  #resolve(target: string): string {
    const base = this.#options.baseUrl;
    return (base !== undefined && URL.parse(target, base)?.href) || target;
  }

  #heading(element: HtmlElement, level: number): void {
    this.flush();
    const blocks = blocksOf(element, this.#options);
    const text = blocks.map((block) => ('text' in block ? block.text : writeInline([block]))).join(' ');
    if (text.trim() === '') return;
    const fragment = element.attributes[marks.fragment];
    const heading = { type: 'heading', level, text: oneLine(text.replaceAll(/\*\*/g, '')) } as const;
    this.#add(fragment === undefined ? heading : { ...heading, fragment });
  }

  #list(element: HtmlElement, context: Context): void {
    this.flush();
    const depth = context.listDepth + 1;
    let number = Number.parseInt(element.attributes.start ?? '1', 10);
    if (!Number.isFinite(number)) number = 1;
    for (const child of element.children) {
      if (child.kind === 'text') {
        const text = escapeText(oneLine(plainText(child.text)));
        if (text !== '') this.#add({ type: 'item', depth, marker: '-', text });
        continue;
      }
      if (this.#isLeftOut(child)) continue;
      if (child.name === 'li' && startsWithHeading(child)) this.#inside(child, topLevel);
      else if (child.name === 'li') {
        const before = this.blocks.length;
        this.#entry(child, depth, element.name === 'ol' ? `${number}.` : '-', context);
        if (this.blocks.length > before) number += 1;
      } else {
        this.#element(child, { listDepth: depth });
        this.flush();
      }
    }
  }

  #definitions(element: HtmlElement, context: Context): void {
    this.flush();
    const depth = context.listDepth + 1;
    for (const child of element.children) {
      if (child.kind === 'text' || this.#isLeftOut(child)) continue;
      if (child.name === 'div') this.#definitions(child, context);
      else if (child.name === 'dt') {
        const first = this.blocks.length;
        this.#entry(child, depth, '-', context);
        const block = this.blocks[first];
        if (block?.type !== 'item') continue;
        if (!block.text.includes('**')) block.text = mark(block.text, '**');
        const fragment = child.attributes[marks.fragment];
        if (fragment !== undefined) block.fragment = fragment;
      } else if (child.name === 'dd') this.#entry(child, depth + 1, '-', { listDepth: depth });
      else this.#element(child, context);
    }
  }

  /** One item: its first text after the marker, what follows indented below it, nested lists one level deeper. */
  #entry(element: HtmlElement, depth: number, marker: string, context: Context): void {
    this.#item = { depth, marker };
    const first = this.blocks.length;
    this.contents(element, { ...context, listDepth: depth });
    this.flush();
    this.#item = undefined;
    const own = this.blocks[first];
    if (own?.type !== 'item') return;
    if (own.depth > depth) {
      this.#raise(first);
      return;
    }
    while (this.blocks[first + 1]?.type === 'paragraph') {
      const [next] = this.blocks.splice(first + 1, 1);
      if (next?.type === 'paragraph') own.text += `\n\n${next.text}`;
    }
    const indent = indentOfLevel * depth + marker.length + 1;
    for (const block of this.blocks.slice(first + 1)) if (isIndented(block)) block.indent ??= indent;
  }

  /** Raises the blocks of an entry that has no text of its own, and so is no level of its list. */
  #raise(first: number): void {
    for (const block of this.blocks.slice(first)) {
      if (block.type === 'item') block.depth -= 1;
      else if (isIndented(block) && block.indent !== undefined) block.indent -= indentOfLevel;
    }
  }

  #preformatted(element: HtmlElement): void {
    const text = rawText(element)
      .replaceAll(/\r\n?/g, '\n')
      .replaceAll(/^(?:[ \t]*\n)+|\s+$/g, '');
    if (text === '') return;
    const language = element.attributes[marks.language];
    this.#push({ type: 'code', text, ...(language === undefined ? {} : { language }) });
  }

  #quote(element: HtmlElement): void {
    this.flush();
    const blocks = blocksOf(element, this.#options);
    const alert = element.attributes[marks.alert];
    if (blocks.length > 0) this.#add({ type: 'quote', blocks, ...(alert === undefined ? {} : { alert }) });
  }

  #table(element: HtmlElement, context: Context): void {
    this.flush();
    const rows = tableRows(element);
    if (isLayoutTable(element, rows)) {
      for (const cell of rows.flat()) this.#inside(cell, context);
      return;
    }
    const caption = element.children.find((node) => node.kind === 'element' && node.name === 'caption');
    if (caption?.kind === 'element') {
      this.contents(caption, context);
      this.flush();
    }
    this.#add({
      type: 'table',
      rows: spreadCells(rows, (cell) => writeInline(blocksOf(cell, this.#options)), this.#options.onCut),
    });
  }
}

const sectionNames = new Set(['div', 'section', 'article']);

/** Whether an item of a list is a section with a heading, which ends the list: cards, methods of a class. */
function startsWithHeading(item: HtmlElement): boolean {
  const first = item.children.find((child) => (child.kind === 'text' ? child.trimmed > 0 : child.children.length > 0));
  if (first?.kind !== 'element') return false;
  return /^h[1-6]$/.test(first.name) || (sectionNames.has(first.name) && startsWithHeading(first));
}

type Indented = Extract<Block, { indent?: number }>;

function isIndented(block: Block): block is Indented {
  return ['paragraph', 'code', 'quote', 'table', 'formula'].includes(block.type);
}

/** Units whose square and cube are commonly typed as `m2` and `cm3`. */
const unitOfLength = /(?:^|[^\p{L}])(?:[kdcm]?m|ft|in|yd|mi)$/iu;

/**
 * Pictures that stand for a character: forums and chats name them so, or keep them in a folder of that name. Such a folder
 * may also have the buttons of an editor, whose descriptions are words.
 */
function isEmoji({ class: names = '', src = '' }: Record<string, string>, alt: string): boolean {
  return alt !== '' && (emojiNames.test(names) || (emojiFolder.test(src) && !/^[\p{L}\s]+$/u.test(alt)));
}

const emojiNames =
  /(?:^|[\s_-])(?:emojis?|emojione|twemoji|emoticons?|(?:mce)?smil(?:ie|ey)(?:s|sprite)?\d*)(?:[\s_-]|$)/i;
const emojiFolder = /\/(?:emojis?|emoticons?|smil(?:ies|eys))\/[^?#]*$/i;

const breakMarks = /[\u200b\ufeff\u00ad]/;

/** Removes characters that only control line breaks. */
function plainText(text: string): string {
  return text
    .replaceAll(/[\u200b\ufeff\u00ad]/g, '')
    .replaceAll(/\s+/g, ' ')
    .toWellFormed();
}

/** Brackets in the text of a link or image would end it. */
function escapeBrackets(text: string): string {
  return text.replaceAll(/\\?([[\]])/g, '\\$1');
}

function isHidden(element: HtmlElement): boolean {
  const { attributes, name } = element;
  return (
    'hidden' in attributes ||
    (attributes['aria-hidden'] === 'true' && name !== 'a' && textLength(element) < 3) ||
    /display\s*:\s*none|visibility\s*:\s*hidden/i.test(attributes.style ?? '')
  );
}

/** KaTeX writes each formula twice: as MathML, and as boxes for display. */
function isFormulaCopy({ attributes }: HtmlElement): boolean {
  return attributes['aria-hidden'] === 'true' && /(?:^|\s)katex-html(?:\s|$)/.test(attributes.class ?? '');
}

/** Text as written, with its line breaks. */
function rawText(node: HtmlNode): string {
  if (node.kind === 'text') return node.text.toWellFormed();
  if (node.name === 'br') return '\n';
  const inner = node.children
    .filter((child) => child.kind === 'text' || !isBesideCode(child))
    .map(rawText)
    .join('');
  const line = node.name === 'div' || node.name === 'p' || node.name === 'tr' || node.name === 'li';
  return line && !inner.endsWith('\n') ? `${inner}\n` : inner;
}

/** Formats the words and leaves the surrounding space outside. */
function spaced(text: string, write: (words: string) => string): string {
  const words = oneLine(text);
  if (words === '') return text === '' ? '' : ' ';
  return `${/^\s/.test(text) ? ' ' : ''}${write(words)}${/\s$/.test(text) ? ' ' : ''}`;
}

function firstOfSet(srcset: string | undefined): string | undefined {
  const first = srcset?.trim().split(/\s+/)[0]?.replace(/,$/, '');
  return first === '' || first?.startsWith('data:') ? undefined : first;
}

/** The symbols of a formula whose TeX the page does not contain. */
function mathText(element: HtmlElement): string {
  return escapeText(element.attributes.alttext ?? textOf(element));
}
