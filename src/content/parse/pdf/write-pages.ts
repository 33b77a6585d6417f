import { type Block, escapeText, oneLine, writeMarkdown } from '../write-markdown.ts';
import { addDrawnBullets } from './bullets.ts';
import { splitColumns } from './columns.ts';
import { Footnotes, markReferences } from './footnotes.ts';
import { dropFurniture } from './furniture.ts';
import type { Rule } from './glyph.ts';
import { type DocumentLook, headingLevels, joinChapterNumbers, LookCounter, roleLevel } from './headings.ts';
import { buildLines, type Line, type Segment } from './lines.ts';
import { orderLines } from './order.ts';
import { buildParagraphs, type PdfBlock, type TextBlock } from './paragraphs.ts';
import { isMostlyRightToLeft } from './right-to-left.ts';
import { structuredBlocks } from './structure.ts';
import type { StructureElement } from './structure-tree.ts';
import { findTables } from './tables.ts';
import { joinText, WordList } from './words.ts';

export type Page = {
  number: number;
  width: number;
  height: number;
  lines: Line[];
  turned: Segment[];
  rules: Rule[];
  tree: StructureElement[];
  /** A picture whose text was not recognised. */
  unread: boolean;
};

type Paragraph = Extract<Block, { type: 'paragraph' }>;

/** What a page draws. */
type Drawn = { width: number; height: number; segments: Segment[]; rules: Rule[]; tree: StructureElement[] };

/** Joins what a page draws into lines. `unread` marks a picture whose text was not recognised. */
export function buildPage(number: number, drawn: Drawn, unread: boolean): Page {
  const {
    width,
    height,
    rules,
    tree,
    segments: all,
  } = isMostlyRightToLeft(drawn.segments.map(({ text }) => text)) ? mirror(drawn) : drawn;
  // Notes of the printer are above the page or left of it. What is right of it or below does not fit on it.
  const drawnText = all.filter(
    (segment) => (!segment.artifact || tree.length === 0) && segment.right > 0 && segment.bottom > 0,
  );
  const segments = tree.length === 0 ? addDrawnBullets(drawnText, rules) : drawnText;
  const lines = buildLines(segments.filter((segment) => !segment.turned));
  return { number, width, height, lines, turned: segments.filter(({ turned }) => turned), rules, tree, unread };
}

/** Mirrors a right-to-left page, so that columns, indents and cells are found as on other pages. */
function mirror(drawn: Drawn): Drawn {
  const swap = <T extends { left: number; right: number }>(box: T): T => ({
    ...box,
    left: drawn.width - box.right,
    right: drawn.width - box.left,
  });
  const segments = drawn.segments.map((segment) => ({ ...swap(segment), parts: segment.parts.map(swap) }));
  return { ...drawn, segments, rules: drawn.rules.map(swap) };
}

/** Writes the pages of a document as Markdown, without running heads and feet. The type of all pages decides on headings. */
export function writePages(pages: Page[]): string {
  const look = documentLook(pages);
  const words = new WordList();
  for (const { lines } of pages)
    lines.forEach((line, index) => {
      words.addLine(line.text, lines[index - 1]?.hyphenated === true, line.hyphenated);
    });
  const kept = dropFurniture(pages, look.bodySize);
  const footnotes = new Footnotes();
  const blocks = pages.map((page, index) => ({
    page: page.number,
    ...footnotes.take(joinChapterNumbers(pageBlocks(page, kept[index] ?? [], words), look), look),
  }));
  const all = blocks.flatMap((one) => one.blocks);
  const hasHeadingRoles = all.some((block) => block.kind === 'text' && roleLevel(block.role) !== undefined);
  const levels = headingLevels(all, { ...look, hasHeadingRoles });
  const out: Block[] = [];
  const joined = new Map<Paragraph, string[]>();
  /** The footnotes of the page before, which follow the paragraph that continues on this one. */
  const notes: Block[] = [];
  blocks.forEach(({ page, blocks: own, notes: ownNotes }, index) => {
    const written = writeBlocks(own, levels, look);
    const goesOn = index > 0 && joinAcrossPages(out, written, words, joined, page);
    if (!goesOn || written.length > 0) out.push(...notes.splice(0));
    if (index > 0 && !goesOn) out.push({ type: 'comment', text: `page ${page}` });
    notes.push(...ownNotes);
    if (pages[index]?.unread) out.push({ type: 'comment', text: `page ${page} is a picture without text` });
    out.push(...written);
  });
  out.push(...notes);
  for (const [paragraph, pieces] of joined) paragraph.text = pieces.join('');
  return writeMarkdown(out);
}

function pageBlocks(page: Page, lines: Line[], words: WordList): PdfBlock[] {
  const segments = lines.flatMap((line) => line.segments);
  const structured =
    page.tree.length > 0 ? structuredBlocks(page.tree, [...segments, ...page.turned], words) : undefined;
  if (structured) return structured;
  const plain = page.tree.length > 0 ? buildLines(segments) : lines;
  const blocks: PdfBlock[] = [];
  let pending: Line[] = [];
  const flush = (): void => {
    blocks.push(...buildParagraphs(pending, plain, words));
    pending = [];
  };
  for (const item of findTables(orderLines(splitColumns(plain)), page.rules)) {
    if (item.kind === 'line') pending.push(item.line);
    else {
      flush();
      blocks.push({ kind: 'table', table: item.table });
    }
  }
  flush();
  const turned = page.turned.map((segment) => segment.text).join(' ');
  if (turned.trim() !== '') {
    const sideways = buildLines(page.turned);
    blocks.push(...buildParagraphs(sideways, sideways, words));
  }
  return blocks;
}

function documentLook(pages: Page[]): DocumentLook {
  const counter = new LookCounter();
  for (const page of pages) for (const line of page.lines) counter.add(line);
  return counter.look();
}

function writeBlocks(blocks: PdfBlock[], levels: Map<PdfBlock, number>, look: DocumentLook): Block[] {
  const out: Block[] = [];
  let lefts: number[] = [];
  let bottom = 0;
  for (const block of blocks) {
    // The indents of a list that continues in the next column are counted from that column.
    const top = block.kind === 'text' ? block.lines[0]?.top : undefined;
    if (top !== undefined && top < bottom && block.kind === 'text' && block.role === undefined) lefts = [];
    bottom = top ?? bottom;
    if (block.kind === 'table') {
      out.push({ type: 'table', rows: block.table.rows.map((row) => row.map((cell) => escapeText(oneLine(cell)))) });
      continue;
    }
    const level = levels.get(block);
    if (level === undefined && block.mono && !look.bodyMono && block.lines.length > 0) {
      addCode(out, block);
      continue;
    }
    const text = markReferences(escapeText(withoutLeaders(block.text))).replaceAll(/\s*\n\s*/g, '  \n');
    if (level !== undefined) out.push({ type: 'heading', level, text: oneLine(`${numberOf(block.marker)} ${text}`) });
    else if (block.role === 'Figure')
      out.push({ type: 'paragraph', text: `![${oneLine(text).replaceAll(/[[\]]/g, '\\$&')}](image)` });
    else if (block.marker === undefined) out.push(ruleOrParagraph(text));
    else {
      const depth = depthOf(block, lefts);
      lefts = [...lefts.slice(0, depth), block.left];
      out.push(itemBlock(block, text, depth));
      continue;
    }
    if (level !== undefined) lefts = [];
  }
  return out;
}

/** The space above a line of code that follows an empty line, in ems. */
const emptyLineMin = 0.9;

/** Monospaced text keeps its lines and their indents; neighbours form one block of code. */
function addCode(out: Block[], block: TextBlock): void {
  const [first] = block.lines;
  if (!first) return;
  const width = (first.right - first.left) / Math.max(1, first.text.length);
  const text = block.lines
    .map((line) => `${' '.repeat(Math.min(40, Math.max(0, Math.round((line.left - first.left) / width))))}${line.text}`)
    .join('\n');
  const last = out.at(-1);
  const isSetOff = Number.isFinite(block.above) && block.above > block.size * emptyLineMin;
  if (last?.type === 'code') last.text += `${isSetOff ? '\n' : ''}\n${text}`;
  else out.push({ type: 'code', text });
}

/** Removes the leader dots of a table of contents. */
function withoutLeaders(text: string): string {
  return text.replaceAll(/\s*(?:\.\s?){5,}\s*/g, ' … ');
}

function ruleOrParagraph(text: string): Block {
  return /^[-=_*~]{3,}$/.test(text.replaceAll('\\', '').trim()) ? { type: 'rule' } : { type: 'paragraph', text };
}

function depthOf(block: TextBlock, lefts: number[]): number {
  const tolerance = Math.max(3, block.size * 0.5);
  let depth = 0;
  while (depth < lefts.length && (lefts[depth] ?? 0) < block.left - tolerance) depth += 1;
  return Math.min(depth, 5);
}

function numberOf(marker: string | undefined): string {
  return marker !== undefined && /[\p{L}\p{N}]/u.test(marker) ? escapeText(marker) : '';
}

function itemBlock(block: TextBlock, text: string, depth: number): Block {
  const marker = block.marker ?? '-';
  if (/^\d{1,3}[.)]$/.test(marker)) return { type: 'item', depth, marker, text };
  const shown =
    /[\p{L}\p{N}]/u.test(marker) && marker !== 'o'
      ? `${escapeText(marker)} ${text}`
      : /[☐☑☒✓✔✗]/u.test(marker)
        ? `${marker} ${text}`
        : text;
  return { type: 'item', depth, marker: '-', text: shown };
}

/**
 * Joins a paragraph that clearly continues after a page break. Returns whether it does. `joined`
 * collects the pieces of such paragraphs, which may continue over thousands of pages.
 */
function joinAcrossPages(
  out: Block[],
  next: Block[],
  words: WordList,
  joined: Map<Paragraph, string[]>,
  page: number,
): boolean {
  const last = out.at(-1);
  const first = next[0];
  const pieces = last?.type === 'paragraph' ? (joined.get(last) ?? [last.text]) : [];
  const piece = pieces.pop();
  const goesOn =
    piece !== undefined &&
    last?.type === 'paragraph' &&
    first?.type === 'paragraph' &&
    /[\p{L},-]$/u.test(piece.slice(-2)) &&
    /^\p{Ll}/u.test(first.text);
  if (!goesOn) {
    if (piece !== undefined) pieces.push(piece);
    return false;
  }
  next.shift();
  const word = /^\S+/.exec(first.text)?.[0] ?? '';
  const rest = first.text.slice(word.length);
  const whole = /\p{L}-$/u.test(piece) ? words.join(piece, word) : joinText(piece, word);
  pieces.push(whole, ` <!-- page ${page} -->${rest}`);
  joined.set(last, pieces);
  return true;
}
