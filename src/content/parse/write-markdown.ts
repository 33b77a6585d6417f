import { requireTextSize } from './types.ts';

/**
 * The blocks to which every format is converted before it is written as Markdown. Texts are inline Markdown, already
 * escaped. `indent` is the number of spaces before the lines of a block that belongs to a list item.
 */
export type Block =
  | { type: 'heading'; level: number; text: string; fragment?: string }
  | { type: 'paragraph'; text: string; indent?: number }
  | { type: 'item'; depth: number; marker: string; text: string; fragment?: string }
  | { type: 'table'; rows: string[][]; indent?: number }
  | { type: 'code'; text: string; language?: string; indent?: number }
  /** `alert` is the kind of an admonition. */
  | { type: 'quote'; blocks: Block[]; alert?: string; indent?: number }
  /** The text of a footnote. */
  | { type: 'note'; label: string; blocks: Block[] }
  | { type: 'formula'; tex: string; indent?: number }
  | { type: 'rule' }
  | { type: 'comment'; text: string }
  | { type: 'raw'; text: string };

/**
 * Writes Markdown with one blank line between blocks and none between list items, ending in a newline. Calls `onWritten`
 * with the range of each block in the text.
 */
export function writeMarkdown(blocks: Block[], onWritten?: (block: Block, start: number, end: number) => void): string {
  const out: string[] = [];
  let previous: Block | undefined;
  let characters = 0;
  let end = 0;
  for (const block of blocks) {
    const text = indentLines(writeBlock(block, previous), block);
    if (text.trim() === '') continue;
    characters += text.length;
    requireTextSize(characters);
    const gap = previous === undefined ? '' : block.type === 'item' && previous.type === 'item' ? '\n' : '\n\n';
    out.push(gap, text);
    const start = end + gap.length;
    end = start + text.length;
    onWritten?.(block, start, end);
    previous = block;
  }
  return out.length === 0 ? '' : `${out.join('')}\n`;
}

function indentLines(text: string, block: Block): string {
  const indent = 'indent' in block ? (block.indent ?? 0) : 0;
  return indent === 0 ? text : text.replaceAll(/^(?=[^\n])/gm, ' '.repeat(indent));
}

/** Joins neighbouring lines of code, each of which is a paragraph of its own in office documents, and neighbouring quotes. */
export function joinBlocks(blocks: Block[]): Block[] {
  const joined: Block[] = [];
  for (const block of blocks) {
    const last = joined.at(-1);
    if (block.type === 'code' && last?.type === 'code') last.text += `\n${block.text}`;
    else if (block.type === 'quote' && last?.type === 'quote') last.blocks.push(...block.blocks);
    else joined.push(block);
  }
  return joined;
}

/** Writes the blocks on one line, for a table cell. */
export function writeInline(blocks: Block[]): string {
  const texts = blocks
    .map((block) => {
      if (block.type === 'table') return joinCells(block.rows.flat().filter(Boolean), ' ');
      if (block.type === 'item') return `${block.marker} ${block.text}`;
      if (block.type === 'quote' || block.type === 'note') return writeInline(block.blocks);
      if (block.type === 'formula') return `$${oneLine(block.tex)}$`;
      if (block.type === 'rule') return '';
      if (block.type === 'code') return joinCells(linesOf(block.text).map(codeSpan), '<br>');
      if (block.type === 'comment') return `<!-- ${block.text} -->`;
      return block.text;
    })
    .filter((text) => text.trim() !== '');
  return joinCells(texts, '<br>');
}

/** Each line of code becomes a span of its own, because the lines of a span run together. */
function linesOf(code: string): string[] {
  return code.split(/\r\n|\r|\n/).flatMap((line) => (line.trim() === '' ? [] : [line.trimEnd()]));
}

/** Nested tables repeat the text of merged cells at every level, so the size is counted before joining. */
function joinCells(cells: string[], separator: string): string {
  requireTextSize(cells.reduce((sum, cell) => sum + cell.length, 0));
  return cells.join(separator);
}

function writeBlock(block: Block, previous: Block | undefined): string {
  switch (block.type) {
    case 'heading': {
      const text = oneLine(block.text);
      return text === '' ? '' : `${'#'.repeat(Math.min(6, Math.max(1, block.level)))} ${text}`;
    }
    case 'paragraph':
      return guardLineStarts(block.text.trim());
    case 'item': {
      const indent = '    '.repeat(
        previous?.type === 'item' ? Math.min(block.depth, previous.depth + 1) : Math.min(block.depth, 3),
      );
      const text = block.text.trim().replaceAll('\n', `\n${indent}${' '.repeat(block.marker.length + 1)}`);
      return text === '' ? '' : `${indent}${block.marker} ${text}`;
    }
    case 'table':
      return writeTable(block.rows);
    case 'code': {
      const fence = '`'.repeat(Math.max(3, longestRun(block.text, '`') + 1));
      return `${fence}${block.language ?? ''}\n${block.text.replace(/\n+$/, '')}\n${fence}`;
    }
    case 'quote': {
      const inner = writeMarkdown(block.blocks).trimEnd();
      if (inner === '') return '';
      const quoted = inner.replaceAll(/^/gm, '> ').replaceAll(/ +$/gm, '');
      return block.alert === undefined ? quoted : `> [!${block.alert.toUpperCase()}]\n${quoted}`;
    }
    case 'note': {
      const inner = writeMarkdown(block.blocks).trimEnd();
      return inner === '' ? '' : `[^${block.label}]: ${inner.replaceAll(/\n(?=[^\n])/g, '\n    ')}`;
    }
    case 'formula':
      return `$$\n${block.tex.trim()}\n$$`;
    case 'rule':
      return '---';
    case 'comment':
      return `<!-- ${block.text.replaceAll('--', '- -')} -->`;
    case 'raw':
      return block.text;
  }
}

/** Writes a GFM table with the first row as its header. Drops empty rows and columns at the edges. */
export function writeTable(rows: string[][]): string {
  const filled = rows.filter((row) => row.some((cell) => cell.trim() !== ''));
  const width = filled.reduce((max, row) => Math.max(max, lastFilled(row) + 1), 0);
  const [head, ...body] = filled;
  if (!head || width === 0) return '';
  let characters = 0;
  const line = (row: string[]): string => {
    characters += row.reduce((sum, cell) => sum + cell.length, 3 * width);
    requireTextSize(characters);
    const cells = Array.from({ length: width }, (_, index) => cellText(row[index] ?? ''));
    return `| ${cells.join(' | ')} |`;
  };
  return [line(head), `| ${Array.from({ length: width }, () => '---').join(' | ')} |`, ...body.map(line)].join('\n');
}

function lastFilled(row: string[]): number {
  for (let index = row.length - 1; index >= 0; index--) if (row[index]?.trim()) return index;
  return -1;
}

function cellText(cell: string): string {
  return cell
    .trim()
    .split('\n')
    .map((line, index, { length }) => (index === length - 1 ? line : line.replace(/\r$/, '').replace(/\\$/, '')).trim())
    .filter((line) => line !== '')
    .join('<br>')
    .replaceAll(/(?<!\\)\|/g, '\\|');
}

/** Escapes plain text for Markdown: characters that would be markup get a backslash, ordinary prose stays unchanged. */
export function escapeText(text: string): string {
  if (!/[\\`*_~<&\]]/.test(text)) return text;
  return text
    .replaceAll(/\\(?=[!-/:-@[-`{-~])/g, '\\\\')
    .replaceAll(/[`*]/g, '\\$&')
    .replaceAll(/(?<![\p{L}\p{N}])_(?=\S)|(?<=\S)_(?![\p{L}\p{N}])/gu, '\\_')
    .replaceAll(/~~/g, '\\~\\~')
    .replaceAll(/<(?=[A-Za-z/!?])/g, '&lt;')
    .replaceAll(/&(?=#?\w{1,31};)(?!lt;)/g, '&amp;')
    .replaceAll(/\](?=[([:])/g, '\\]');
}

/** Escapes characters that have a meaning only at the start of a line: headings, lists, quotes, rules. */
function guardLineStarts(text: string): string {
  return text
    .replaceAll(/^([ \t]*)(#{1,6}(?=\s|$)|[-+](?=\s|$)|>|={2,}\s*$|-{3,}\s*$)/gm, '$1\\$2')
    .replaceAll(/^([ \t]*\d{1,9})([.)])(?=\s|$)/gm, '$1\\$2');
}

export function codeSpan(text: string): string {
  if (text === '') return '';
  const fence = '`'.repeat(longestRun(text, '`') + 1);
  const pad = text.startsWith('`') || text.endsWith('`') ? ' ' : '';
  return `${fence}${pad}${text}${pad}${fence}`;
}

/** Puts an inline delimiter (`**`, `*`, `~~`) around the text but inside its outer spaces, as CommonMark requires. */
export function mark(text: string, delimiter: string): string {
  const inner = text.trim();
  if (inner === '') return text;
  const start = text.indexOf(inner);
  return `${text.slice(0, start)}${delimiter}${inner}${delimiter}${text.slice(start + inner.length)}`;
}

/** Writes text above or below the line, without its outer spaces. */
export function script(text: string, tag: 'sub' | 'sup'): string {
  const inner = text.trim();
  return inner === '' ? text : text.replace(inner, () => `<${tag}>${inner}</${tag}>`);
}

/** Writes a link, unless its target is empty or a script. */
export function link(text: string, target: string): string {
  const url = target.trim();
  if (url === '' || text.trim() === '' || /^\s*(?:javascript|vbscript|data):/i.test(url)) return text;
  const safe = url
    .replaceAll(/[\s<>]/g, encodeURIComponent)
    .replaceAll('(', '%28')
    .replaceAll(')', '%29');
  const inner = text.trim();
  const start = text.indexOf(inner);
  return `${text.slice(0, start)}[${inner}](${safe})${text.slice(start + inner.length)}`;
}

export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

function longestRun(text: string, character: string): number {
  let longest = 0;
  let run = 0;
  for (const one of text) {
    run = one === character ? run + 1 : 0;
    longest = Math.max(longest, run);
  }
  return longest;
}
