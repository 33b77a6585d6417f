import { type Block, escapeText, oneLine } from '../write-markdown.ts';
import type { DocumentLook } from './headings.ts';
import type { PdfBlock, TextBlock } from './paragraphs.ts';

/** Marks a reference in the text of a block until its characters have been escaped. */
const [opened, closed] = ['\ufdd0', '\ufdd1'];
const marks = /\ufdd0(\d{1,6})\ufdd1/g;

/** A note is smaller than the text, and begins with the number of its reference. */
const noteSizeMax = 0.94;
const noteStart = /^(\d{1,3})\s?(?=[\p{L}"'“‘«(])/u;

const notesOfPageMax = 30;

type Note = Extract<Block, { type: 'note' }>;

/**
 * Numbers the footnotes of a document. A small paragraph that begins with a number is one if that number, set directly behind
 * a word or a sentence, is on the same page.
 */
export class Footnotes {
  readonly #labels = new Set<number>();
  #highest = 0;

  /** Takes the footnotes out of the blocks of a page, and marks what refers to them. */
  take(blocks: PdfBlock[], { bodySize }: DocumentLook): { blocks: PdfBlock[]; notes: Note[] } {
    const notes: Note[] = [];
    let tried = 0;
    const kept = blocks.filter((block, index) => {
      const isCandidate = block.kind === 'text' && tried < notesOfPageMax && isSmall(block, bodySize);
      const number = isCandidate ? noteStart.exec(block.text)?.[1] : undefined;
      if (number !== undefined) tried += 1;
      const isNote = number !== undefined && block.kind === 'text' && isAtFoot(block, blocks, bodySize);
      const reference = isNote ? referenceTo(number, blocks.slice(0, index), bodySize) : undefined;
      if (block.kind !== 'text' || number === undefined || !reference) return true;
      const label = this.#labelOf(Number(number));
      const { text } = reference.block;
      reference.block.text = `${text.slice(0, reference.at)}${opened}${label}${closed}${text.slice(reference.at + number.length)}`;
      const own = oneLine(escapeText(block.text.replace(noteStart, '')));
      notes.push({ type: 'note', label, blocks: [{ type: 'paragraph', text: own }] });
      return false;
    });
    return { blocks: kept, notes };
  }

  /** The printed number, or one above all others if each page counts its own notes. */
  #labelOf(number: number): string {
    const label = this.#labels.has(number) ? this.#highest + 1 : number;
    this.#labels.add(label);
    this.#highest = Math.max(this.#highest, label);
    return String(label);
  }
}

function isSmall(block: TextBlock, bodySize: number): boolean {
  return block.size < bodySize * noteSizeMax && block.marker === undefined && !block.mono && block.role === undefined;
}

/** Whether no text in the usual size stands below. The numbered addresses of authors are above theirs. */
function isAtFoot({ lines }: TextBlock, blocks: PdfBlock[], bodySize: number): boolean {
  const [own] = lines;
  return blocks.every((block) => {
    if (block.kind === 'table')
      return own === undefined || block.table.top < own.baseline || !isAbove(own, block.table);
    const first = block.lines[0];
    if (!own || !first || block.size < bodySize * noteSizeMax) return true;
    return first.baseline < own.baseline || !isAbove(own, first);
  });
}

function isAbove(one: { left: number; right: number }, other: { left: number; right: number }): boolean {
  return one.left < other.right && one.right > other.left;
}

/** Where a number stands directly behind a word or a sentence, if in one place only. `sha1`, `Fig.1` and `0.1` are none. */
function referenceTo(
  number: string,
  blocks: PdfBlock[],
  bodySize: number,
): { block: TextBlock; at: number } | undefined {
  const pattern = new RegExp(`(?<=(?:\\p{L}{4}|[)\\]"'”’])[.,;:!?]?)${number}(?=\\s|$|[.,;:!?)])`, 'gu');
  const found = blocks.flatMap((block) =>
    block.kind === 'text' && !block.mono && block.size >= bodySize * noteSizeMax
      ? [...block.text.matchAll(pattern)].map((match) => ({ block, at: match.index }))
      : [],
  );
  return found.length === 1 ? found[0] : undefined;
}

/** The text of a block, already escaped, with its references as Markdown. */
export function markReferences(text: string): string {
  return text.replaceAll(marks, '[^$1]');
}
