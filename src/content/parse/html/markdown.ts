import { blockNames, findAll, type HtmlElement, type HtmlNode, textOf } from './tree.ts';

/** A tree as GitHub-flavoured Markdown, links and images absolute by `base`. Unknown elements give their content. */
export function toMarkdown(root: HtmlElement, base: string): string {
  const blocks = renderBlocks(root, { base, preserved: false });
  return blocks
    .join('\n\n')
    .replace(/[ \t]+$/gm, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}

type Context = { base: string; preserved: boolean };

/** The blocks of an element, each a string without surrounding blank lines. Loose inline content becomes paragraphs. */
function renderBlocks(element: HtmlElement, context: Context): string[] {
  const blocks: string[] = [];
  let inline: HtmlNode[] = [];
  const flush = (): void => {
    const text = paragraph(inline, context);
    if (text !== '') blocks.push(text);
    inline = [];
  };
  for (const child of element.children) {
    if (child.kind === 'text' || !isBlock(child)) {
      inline.push(child);
      continue;
    }
    flush();
    blocks.push(...renderBlock(child, context));
  }
  flush();
  return blocks;
}

function isBlock(element: HtmlElement): boolean {
  if (element.name === 'br') return false;
  if (blockNames.has(element.name)) return true;
  // An inline element around blocks (<a><div>…) is a block in all but name.
  return element.children.some((child) => child.kind === 'element' && child.name !== 'br' && isBlock(child));
}

function renderBlock(element: HtmlElement, context: Context): string[] {
  switch (element.name) {
    case 'h1':
    case 'h2':
    case 'h3':
    case 'h4':
    case 'h5':
    case 'h6': {
      const text = inlineText(element.children, context)
        .replace(/\s*\n\s*/g, ' ')
        .trim();
      return text === '' ? [] : [`${'#'.repeat(Number(element.name[1]))} ${text}`];
    }
    case 'hr':
      return ['---'];
    case 'pre':
      return codeBlock(element);
    case 'blockquote':
      return quote(renderBlocks(element, context));
    case 'ul':
    case 'ol':
    case 'menu':
      return list(element, context);
    case 'dl':
      return definitions(element, context);
    case 'table':
      return table(element, context);
    case 'li':
      return item('- ', element, context);
    case 'img':
      return [inlineText([element], context)];
    default:
      return renderBlocks(element, context);
  }
}

function quote(blocks: string[]): string[] {
  const inner = blocks.join('\n\n');
  return inner === '' ? [] : [inner.replace(/^/gm, '> ').replace(/^> $/gm, '>')];
}

function list(element: HtmlElement, context: Context): string[] {
  let number = Number.parseInt(element.attributes.start ?? '1', 10);
  if (!Number.isFinite(number)) number = 1;
  const lines: string[] = [];
  for (const child of element.children) {
    if (child.kind === 'text') {
      const text = escapeText(child.text).trim();
      if (text !== '') lines.push(`- ${text}`);
    } else if (child.name === 'ul' || child.name === 'ol') {
      // A list directly in a list: meant as the nested part of the item before it.
      lines.push(...list(child, context).map((block) => block.replace(/^/gm, '  ')));
    } else {
      const marker = element.name === 'ol' ? `${number}. ` : '- ';
      const rendered = item(marker, child, context);
      if (rendered.length > 0 && element.name === 'ol') number += 1;
      lines.push(...rendered);
    }
  }
  return lines.length === 0 ? [] : [lines.join('\n')];
}

function item(marker: string, element: HtmlElement, context: Context): string[] {
  const blocks = element.name === 'li' ? renderBlocks(element, context) : renderBlock(element, context);
  if (blocks.length === 0) return [];
  const indent = ' '.repeat(marker.length);
  const body = blocks
    .map((block, index) => (index > 0 && !/^\s*(?:[-*]|\d+\.) /.test(block) ? `\n${block}` : block))
    .join('\n');
  return [marker + body.replace(/\n(?=[^\n])/g, `\n${indent}`)];
}

function definitions(element: HtmlElement, context: Context): string[] {
  const blocks: string[] = [];
  const visit = (parent: HtmlElement): void => {
    for (const child of parent.children) {
      if (child.kind !== 'element') continue;
      if (child.name === 'dt') {
        const text = inlineText(child.children, context).trim();
        if (text !== '') blocks.push(`**${text.replace(/\*\*/g, '')}**`);
      } else if (child.name === 'dd') blocks.push(...renderBlocks(child, context));
      else if (child.name === 'div') visit(child);
      else blocks.push(...renderBlock(child, context));
    }
  };
  visit(element);
  return blocks;
}

function codeBlock(element: HtmlElement): string[] {
  const text = rawText(element)
    .replace(/\r\n?/g, '\n')
    .replace(/^\n+|\s+$/g, '');
  if (text === '') return [];
  const classes = [element, ...findAll(element, 'code')].map(
    (at) => `${at.attributes.class ?? ''} ${at.attributes['data-lang'] ?? ''}`,
  );
  const language =
    /(?:^|\s)(?:language|lang|highlight-source|brush:?)[-\s]([\w+#-]+)/.exec(classes.join(' '))?.[1] ?? '';
  let longest = 2;
  for (const run of text.match(/`{3,}/g) ?? []) longest = Math.max(longest, run.length);
  const fence = '`'.repeat(longest + 1);
  return [`${fence}${language}\n${text}\n${fence}`];
}

function rawText(node: HtmlNode): string {
  if (node.kind === 'text') return node.text;
  if (node.name === 'br') return '\n';
  const inner = node.children.map(rawText).join('');
  const line = node.name === 'div' || node.name === 'p' || node.name === 'tr' || node.name === 'li';
  return line && !inner.endsWith('\n') ? `${inner}\n` : inner;
}

type Cell = { text: string; header: boolean };
const tableCellsMax = 50_000;
const columnsMax = 500;

/** A table as rows; one that is only there for the layout, or has tables inside, as its blocks one after the other. */
function table(element: HtmlElement, context: Context): string[] {
  const rows = rowsOf(element);
  const nested = findAll(element, 'table').length > 0;
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const headed = findAll(element, 'th').length > 0 || findAll(element, 'caption').length > 0;
  const blocky = rows.some((row) =>
    row.some((cell) => findAll(cell, 'p').length > 2 || findAll(cell, 'pre').length > 0 || textOf(cell).length > 2_000),
  );
  if (nested || element.attributes.role === 'presentation' || columns < 2 || rows.length < 1 || (blocky && !headed))
    return rows.flatMap((row) => row.flatMap((cell) => renderBlocks(cell, context)));

  const grid = spreadCells(rows, context);
  const width = Math.max(...grid.map((row) => row.length));
  const caption = findAll(element, 'caption').map((at) => inlineText(at.children, context).trim())[0];
  const [first, ...rest] = grid;
  if (first === undefined || width === 0) return [];
  const headless =
    !first.some((cell) => cell.header) && rows.length > 1 && headed && first.every((cell) => cell.text === '');
  const body = headless ? rest.slice(1) : rest;
  const head = headless ? (rest[0] ?? first) : first;
  const line = (row: Cell[]): string =>
    `| ${Array.from({ length: width }, (_unused, at) => row[at]?.text ?? '').join(' | ')} |`;
  const lines = [
    line(head),
    `|${' --- |'.repeat(width)}`,
    ...body.filter((row) => row.some((cell) => cell.text !== '')).map(line),
  ];
  return caption ? [caption, lines.join('\n')] : [lines.join('\n')];
}

function rowsOf(element: HtmlElement): HtmlElement[][] {
  const rows: HtmlElement[][] = [];
  const visit = (parent: HtmlElement): void => {
    for (const child of parent.children) {
      if (child.kind !== 'element') continue;
      if (child.name === 'tr')
        rows.push(
          child.children.filter(
            (at): at is HtmlElement => at.kind === 'element' && (at.name === 'td' || at.name === 'th'),
          ),
        );
      else if (child.name !== 'table' && child.name !== 'caption') visit(child);
    }
  };
  visit(element);
  return rows.filter((row) => row.length > 0);
}

/** Cells at their column, those that span several rows repeated and those over several columns once. */
function spreadCells(rows: HtmlElement[][], context: Context): Cell[][] {
  const grid: Cell[][] = rows.map(() => []);
  let cells = 0;
  rows.forEach((row, y) => {
    let x = 0;
    for (const element of row) {
      while (grid[y]?.[x] !== undefined) x += 1;
      const blocks = renderBlocks(element, context);
      const text = blocks
        .join(' ')
        .replace(/\s*\n\s*/g, ' ')
        .replace(/(?<!\\)\|/g, '\\|')
        .trim();
      const across = Math.min(span(element.attributes.colspan), columnsMax - x);
      const down = Math.min(span(element.attributes.rowspan), rows.length - y);
      for (let dy = 0; dy < down; dy++)
        for (let dx = 0; dx < across && cells++ < tableCellsMax; dx++) {
          const target = grid[y + dy];
          if (target !== undefined)
            target[x + dx] = { text: dx === 0 && dy === 0 ? text : '', header: element.name === 'th' };
        }
      x += Math.max(1, across);
    }
  });
  return grid.map((row) => Array.from(row, (cell) => cell ?? { text: '', header: false }));
}

function span(value: string | undefined): number {
  const number = Number.parseInt(value ?? '1', 10);
  return Number.isFinite(number) && number > 0 ? Math.min(number, columnsMax) : 1;
}

function paragraph(nodes: HtmlNode[], context: Context): string {
  if (nodes.length === 0) return '';
  const text = inlineText(nodes, context)
    .replace(/[ \t\u00a0]*\n[ \t\u00a0]*/g, '\n')
    .replace(/^\s+|\s+$/g, '')
    .replace(/\n{2,}/g, '\n\n');
  return text.split('\n').map(escapeLineStart).join('\n');
}

/** What would make a line a heading, a list item, a quote or a rule. */
function escapeLineStart(line: string): string {
  return line.replace(/^(#{1,6}\s|>|[-+]\s|[-=]{3,}\s*$|~~~)/, '\\$1').replace(/^(\d{1,9})([.)])(\s)/, '$1\\$2$3');
}

function inlineText(nodes: HtmlNode[], context: Context): string {
  let out = '';
  for (const node of nodes) {
    const piece = inline(node, context);
    // One space between two pieces that both bring one.
    out += /\s$/.test(out) ? piece.replace(/^ +/, '') : piece;
  }
  return out;
}

function inline(node: HtmlNode, context: Context): string {
  if (node.kind === 'text') return escapeText(node.text);
  switch (node.name) {
    case 'br':
      return '\n';
    case 'strong':
    case 'b':
      return wrapped(node, '**', context);
    case 'em':
    case 'i':
      return wrapped(node, '*', context);
    case 'del':
    case 's':
    case 'strike':
      return wrapped(node, '~~', context);
    case 'code':
    case 'kbd':
    case 'samp':
    case 'tt':
      return inlineCode(node);
    case 'a':
      return link(node, context);
    case 'img':
      return image(node, context);
    case 'q':
      return `"${inlineText(node.children, context)}"`;
    case 'math':
      return escapeText(node.attributes.alttext ?? textOf(node));
    case 'annotation':
    case 'annotation-xml':
    case 'rp':
    case 'wbr':
      return '';
    default:
      return isBlock(node) ? ` ${renderBlocks(node, context).join('\n')} ` : inlineText(node.children, context);
  }
}

/** Emphasis marks must touch the words, so outer spaces move out. */
function wrapped(node: HtmlElement, mark: string, context: Context): string {
  const inner = inlineText(node.children, context);
  const words = inner.trim();
  if (words === '' || words.includes('\n') || words.startsWith(mark) || words.startsWith('![')) return inner;
  const before = /^\s/.test(inner) ? ' ' : '';
  const after = /\s$/.test(inner) ? ' ' : '';
  return `${before}${mark}${words}${mark}${after}`;
}

function inlineCode(node: HtmlElement): string {
  const text = rawText(node).replace(/\s+/g, ' ');
  if (text.trim() === '') return text === '' ? '' : ' ';
  const fence = text.includes('`') ? '``' : '`';
  const pad = text.startsWith('`') || text.endsWith('`') ? ' ' : '';
  return `${fence}${pad}${text}${pad}${fence}`;
}

function link(node: HtmlElement, context: Context): string {
  const inner = inlineText(node.children, context);
  const words = inner.trim();
  const target = absolute(node.attributes.href, context.base);
  // A link to a place on the same page, and one without words, say nothing outside the page.
  if (words === '' || target === undefined) return inner;
  const before = /^\s/.test(inner) ? ' ' : '';
  const after = /\s$/.test(inner) ? ' ' : '';
  return `${before}[${words.replace(/\s*\n\s*/g, ' ')}](${target})${after}`;
}

function image(node: HtmlElement, context: Context): string {
  const { attributes } = node;
  const source = [
    attributes['data-src'],
    attributes['data-original'],
    attributes['data-lazy-src'],
    attributes.src,
  ].find((value) => value !== undefined && value.trim() !== '' && !value.startsWith('data:'));
  const target = absolute(source ?? firstOfSet(attributes.srcset ?? attributes['data-srcset']), context.base);
  if (target === undefined) return '';
  const alternative = (attributes.alt ?? '').replace(/\s+/g, ' ').trim();
  // Without words and small it is a spacer, a tracker or an icon.
  if (alternative === '' && Math.min(Number(attributes.width ?? 99), Number(attributes.height ?? 99)) < 32) return '';
  return `![${escapeText(alternative)}](${target})`;
}

function firstOfSet(srcset: string | undefined): string | undefined {
  return srcset?.trim().split(/\s+/)[0]?.replace(/,$/, '');
}

function absolute(href: string | undefined, base: string): string | undefined {
  const text = href?.trim() ?? '';
  if (text === '' || text.startsWith('#') || !URL.canParse(text, base)) return undefined;
  const url = new URL(text, base);
  if (!['http:', 'https:', 'mailto:'].includes(url.protocol) || url.href.length > 4_096) return undefined;
  return url.href.replace(/\(/g, '%28').replace(/\)/g, '%29');
}

function escapeText(text: string): string {
  return text
    .replace(/[\u200b\ufeff\u00ad]/g, '')
    .replace(/[\s\u00a0]+/g, ' ')
    .replace(/[\\`*[\]]|<(?=[a-z/!?])|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}_])|~~/giu, '\\$&')
    .toWellFormed();
}
