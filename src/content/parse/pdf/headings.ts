import type { Line } from './lines.ts';
import { contentsLine, isCapitals, type PdfBlock, type TextBlock } from './paragraphs.ts';

/** The usual type of the document's text, to distinguish headings from it. */
export type DocumentLook = {
  bodySize: number;
  bodyWeight: number;
  bodyFont: string;
  bodyMono: boolean;
  bodyItalic: boolean;
  bodyColour: number | undefined;
  /** Share of the text in type clearly heavier than the body's. */
  boldShare: number;
  hasHeadingRoles: boolean;
};

type Typeface = Pick<Line, 'size' | 'weight' | 'font' | 'mono' | 'italic' | 'colour'> & { characters: number };

/** Counts the type of every line; the most used one is the body's. */
export class LookCounter {
  readonly #faces = new Map<string, Typeface>();

  add(line: Line): void {
    const size = Math.round(line.size * 2) / 2;
    const key = `${size} ${line.font} ${line.colour}`;
    const known = this.#faces.get(key) ?? {
      size,
      weight: line.weight,
      font: line.font,
      mono: line.mono,
      italic: line.italic,
      colour: line.colour,
      characters: 0,
    };
    known.characters += line.text.length;
    this.#faces.set(key, known);
  }

  look(): DocumentLook {
    const faces = [...this.#faces.values()];
    const sizes = new Map<number, number>();
    for (const face of faces) sizes.set(face.size, (sizes.get(face.size) ?? 0) + face.characters);
    const bodySize = [...sizes].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0]?.[0] ?? 10;
    const body = faces.filter((face) => face.size === bodySize).sort((a, b) => b.characters - a.characters)[0];
    const bodyWeight = body?.weight ?? 400;
    const all = faces.reduce((sum, face) => sum + face.characters, 0);
    const heavy = faces
      .filter((face) => isHeavier(face.weight, bodyWeight))
      .reduce((sum, face) => sum + face.characters, 0);
    return {
      bodySize,
      bodyWeight,
      bodyFont: body?.font ?? '',
      bodyMono: body?.mono ?? false,
      bodyItalic: body?.italic ?? false,
      bodyColour: body?.colour,
      boldShare: heavy / Math.max(1, all),
      hasHeadingRoles: false,
    };
  }
}

function isHeavier(weight: number, bodyWeight: number): boolean {
  return (weight >= 600 && bodyWeight < 600) || weight >= bodyWeight + 200;
}

/** The level of each heading among the blocks: from the file's structure, else from size, weight and numbering. */
export function headingLevels(blocks: PdfBlock[], look: DocumentLook): Map<PdfBlock, number> {
  const levels = new Map<PdfBlock, number>();
  const visual: TextBlock[] = [];
  blocks.forEach((block, index) => {
    if (block.kind !== 'text') return;
    const role = roleLevel(block.role);
    if (role !== undefined) levels.set(block, role);
    else if (!look.hasHeadingRoles && isHeading(block, blocks[index - 1], blocks[index + 1], look)) visual.push(block);
  });
  const styles = stylesOf(withoutAuthors(visual, blocks));
  const ranks = [...new Set(styles.values())].sort((a, b) => b - a);
  for (const [block, style] of styles) levels.set(block, Math.min(6, ranks.indexOf(style) + 1));
  return levels;
}

const chapterNumber =
  /^(?:chapter|part|appendix|kapitel|teil|anhang|chapitre|partie|annexe|capítulo|capitolo|parte|hoofdstuk)\s+(?:\d{1,3}|[ivxlc]{1,6}|[a-z])$/i;

/** Joins the number of a chapter, on a line of its own, with the title below it. Both are larger than the text. */
export function joinChapterNumbers(blocks: PdfBlock[], { bodySize }: DocumentLook): PdfBlock[] {
  const joined: PdfBlock[] = [];
  for (const block of blocks) {
    const last = joined.at(-1);
    if (last?.kind === 'text' && block.kind === 'text' && chapterNumber.test(last.text) && block.marker === undefined) {
      const isLarge = Math.min(last.size, block.size) >= bodySize * titleSizeMin;
      if (isLarge && last.lines.length + block.lines.length <= 3) {
        const lines = [...last.lines, ...block.lines];
        joined[joined.length - 1] = { ...block, lines, text: `${last.text} ${block.text}`, above: last.above };
        continue;
      }
    }
    joined.push(block);
  }
  return joined;
}

/** Type of this many times the size of the text is that of a title. */
const titleSizeMin = 1.13;

/**
 * The titles without the authors or the date: lines that are centred below the title of the document, in type that no other
 * title has.
 */
function withoutAuthors(visual: TextBlock[], blocks: PdfBlock[]): TextBlock[] {
  const [title] = visual;
  if (!title) return visual;
  const start = blocks.indexOf(title) + 1;
  let end = start;
  for (let block = blocks[end]; block?.kind === 'text' && isCentredBelow(block, title); block = blocks[end]) end += 1;
  const below = new Set<PdfBlock>(blocks.slice(start, end));
  const types = new Set(visual.filter((block) => !below.has(block)).map(typeOf));
  return visual.filter((block) => !below.has(block) || types.has(typeOf(block)));
}

function isCentredBelow({ lines, size, bold }: TextBlock, title: TextBlock): boolean {
  const [first, over] = [lines[0], title.lines.at(-1)];
  if (!first || !over || size >= title.size || bold) return false;
  const distance = (first.left + first.right - over.left - over.right) / 2;
  return first.baseline > over.baseline && Math.abs(distance) < 2 && Math.abs(first.left - over.left) > size * 0.25;
}

/** The heading level of a role of the logical structure, from 1; undefined if it is not a heading. */
export function roleLevel(role: string | undefined): number | undefined {
  if (role === undefined) return undefined;
  if (/^title$/i.test(role)) return 1;
  if (/^h$/i.test(role)) return 2;
  const number = /^h(?:eading)?[\s_-]*([1-6])$/i.exec(role)?.[1];
  return number === undefined ? undefined : Number(number);
}

/**
 * The rank of each heading: larger type first; of the same size, bold before regular and regular before italic, then `1` before `1.1`, and `(a)`
 * last. One without a number ranks like the highest with one in its type, or below them all in a type that is used below
 * numbered ones only.
 */
function stylesOf(blocks: TextBlock[]): Map<TextBlock, number> {
  const highest = new Map<number, number>();
  for (const block of blocks) {
    const depth = depthOf(block) ?? depthMax;
    const type = typeOf(block);
    highest.set(type, Math.min(depth, highest.get(type) ?? depthMax));
  }
  const below = typesBelowNumbers(blocks);
  return new Map(
    blocks.map((block) => {
      const type = typeOf(block);
      const numbered = below.get(type);
      if (numbered !== undefined) return [block, numbered - depthMax - 0.5];
      return [block, type - (depthOf(block) ?? highest.get(type) ?? 0)];
    }),
  );
}

/**
 * The types without numbers that are used only below titles numbered `1.1` or deeper, in other type of the same size, and
 * between two of them at least once: with each, the type of those titles.
 */
function typesBelowNumbers(blocks: TextBlock[]): Map<number, number> {
  const below = new Map<number, number>();
  const numbers = new Set(blocks.filter((block) => depthOf(block) !== undefined).map(typeOf));
  for (const type of new Set(blocks.map(typeOf))) {
    if (numbers.has(type)) continue;
    const ofSize = blocks.filter((block) => sizeOf(block) === Math.floor(type / typesOfSize));
    const places = ofSize.flatMap((block, index) => (typeOf(block) === type ? [index] : []));
    const above = places.map((place) => ofSize.slice(0, place).findLast((block) => typeOf(block) !== type));
    const types = new Set(above.map((block) => (block && (depthOf(block) ?? 0) > 0 ? typeOf(block) : undefined)));
    const [numbered] = types;
    if (types.size !== 1 || numbered === undefined) continue;
    if (ofSize.slice(places[0]).some((block) => typeOf(block) === numbered)) below.set(type, numbered);
  }
  return below;
}

const depthMax = 4;

/** Type of one size has ranks of this many steps. */
const typesOfSize = 20;

/** Half points. */
function sizeOf({ size }: TextBlock): number {
  return Math.round(size * 2);
}

function typeOf(block: TextBlock): number {
  const isItalic = block.lines.every(({ italic }) => italic);
  return sizeOf(block) * typesOfSize + (block.bold ? 10 : 0) + (isItalic && !block.bold ? 0 : 5);
}

/** The parts of a heading's number after the first, or undefined without a number. */
function depthOf(block: TextBlock): number | undefined {
  const start = `${block.marker ?? ''}${block.text}`;
  if (/^\(?[a-z]\)/.test(start)) return depthMax;
  const number = /^(?:(?:section|§)\s*)?(\d{1,2}(?:\.\d{1,2})*)/i.exec(start)?.[1];
  return number === undefined ? undefined : Math.min(depthMax, number.split('.').length - 1);
}

function isHeading(
  block: TextBlock,
  before: PdfBlock | undefined,
  next: PdfBlock | undefined,
  look: DocumentLook,
): boolean {
  const { text } = block;
  const letters = text.replaceAll(/[^\p{L}]/gu, '');
  if (
    letters.length < 2 ||
    text.length > 200 ||
    (block.mono && !look.bodyMono) ||
    block.lines.length > 3 ||
    block.role === 'LI'
  )
    return false;
  if (block.marker !== undefined && (!/[\p{L}\p{N}]/u.test(block.marker) || block.marker === 'o')) return false;
  const numbered = numberedTitle.test(`${block.marker ?? ''} ${text}`.trim());
  const heavy = block.lines.every((line) => isHeavier(line.weight, look.bodyWeight));
  if (block.lines.some((line) => contentsLine.test(line.text))) return false;
  if (caption.test(text) && block.size < look.bodySize * 1.3) return false;
  const sentence = /[.,;。]$/.test(text) && !numbered;
  if (numbered && next !== undefined && isInTitleFace(block, look)) return true;
  if (block.marker !== undefined && !heavy && (isListNeighbour(block, before) || isListNeighbour(block, next)))
    return false;
  if (block.size >= look.bodySize * titleSizeMin)
    return !(sentence && block.size < look.bodySize * 1.35) && text.length <= 160;
  if (block.size < look.bodySize * 0.92 || sentence || text.length > 120 || block.lines.length > 2) return false;
  const other = block.lines[0]?.font !== look.bodyFont;
  if (block.size >= look.bodySize * 1.06 && other && block.lines.length === 1 && text.length <= 80)
    return next !== undefined;
  if (/:$/.test(text) && !numbered) return false;
  if (heavy && block.lines.some(hasColumns)) return false;
  if (heavy && look.boldShare < 0.4) return next !== undefined && block.above > block.size * 0.3;
  if (next && isShortTitle(text) && isInOtherType(block, next, look)) return true;
  if (next?.kind !== 'text' || next.text.length <= 80) return false;
  const isTitle = isCapitals(letters) && letters.length >= 5 && look.boldShare < 0.4 && !statement.test(text);
  if (isTitle && block.above > block.size * 0.5 && isCentredOver(block, next)) return true;
  if (!standsAlone(block)) return false;
  return isTitle || (isShortTitle(text) && !look.bodyItalic && block.lines.every((line) => line.italic));
}

/** Whether a line that is set off is in italics or small capitals, as numbered titles of papers are in the size of the text. */
function isInTitleFace({ lines, text, size, above }: TextBlock, look: DocumentLook): boolean {
  if (text.length > titleCharactersMax || /[.,;]$/.test(text) || above <= size * 0.3 || lines.length > 2) return false;
  if (size < look.bodySize * 0.92 || look.bodyItalic) return false;
  return lines.every(
    (line) => isInSmallCapitals(line, look) || (line.italic && !line.mono && line.font !== look.bodyFont),
  );
}

/** Whether a line is in small capitals: its font makes them of letters, or has nothing else. */
function isInSmallCapitals({ smallCapitals, mono, font }: Line, { bodyFont }: DocumentLook): boolean {
  return smallCapitals || (!mono && font !== bodyFont && /caps|csc\d*$|[-_]sc$/i.test(font));
}

/** Whether a line has the heads of several columns. The number of a title stands apart from it, too. */
function hasColumns({ segments }: Line): boolean {
  return segments.length > 1 && /\p{L}{3}/u.test(segments[0]?.text ?? '');
}

function isShortTitle(text: string): boolean {
  return text.length <= titleCharactersMax && /^[\p{Lu}\p{N}]/u.test(text) && !/[:!?…”"')]$/.test(text);
}

/** Whether a line is in small capitals, or in another colour than the text, above anything in the colour of the text. */
function isInOtherType({ text, lines, size, above, below }: TextBlock, next: PdfBlock, look: DocumentLook): boolean {
  if (lines.length > 1 || above <= size * 0.5 || below <= size * 0.2) return false;
  if (lines.every((line) => isInSmallCapitals(line, look))) return true;
  if (next.kind === 'text' && next.lines.some((line) => line.colour !== look.bodyColour)) return false;
  return !/\p{L}[.:/@]\p{L}/u.test(text) && lines.every((line) => isOtherColour(line.colour, look.bodyColour));
}

/** Whether colours differ as clearly as titles do from text: in red, green and blue together by a quarter of a channel. */
function isOtherColour(colour: number | undefined, other: number | undefined): boolean {
  if (colour === undefined || other === undefined) return false;
  const difference = (shift: number): number => Math.abs(((colour >> shift) & 255) - ((other >> shift) & 255));
  return difference(16) + difference(8) + difference(0) >= 64;
}

const titleCharactersMax = 80;

/** Statements and expressions of a query language are written in capitals, too. */
const statement =
  /[=;{}<>*]|\w\(|^(?:select|insert|update|delete|create|alter|drop|from|where|having|values|set|grant|revoke|begin|commit|rollback|(?:left |right |inner |outer |cross )*join|(?:group|order) by)\s/i;

const caption =
  /^[[(<]?(?:table|figure|fig|tab|tabelle|abbildung|abb|tableau|tabla|figura|listing|algorithm|표|그림|図|表|图)\.?\s*\d/i;

const numberedTitle =
  /^(?:\d{1,2}(?:\.\d{1,2})*\.?|[A-Z]\.|[IVX]{1,5}\.|(?:chapter|section|part|appendix|kapitel|chapitre)\s+\w+)[\s:]/i;

/** Whether the blocks are neighbouring items of one list: consecutive numbers are a list, not titles. */
function isListNeighbour(block: TextBlock, other: PdfBlock | undefined): boolean {
  return other?.kind === 'text' && other.marker !== undefined && Math.abs(other.size - block.size) < 0.6;
}

/** Whether a line is in the middle of the column of the text below it. */
function isCentredOver({ lines: [title], size }: TextBlock, { lines }: TextBlock): boolean {
  if (title === undefined || lines.length < 2) return false;
  const [left, right] = [Math.min(...lines.map((line) => line.left)), Math.max(...lines.map((line) => line.right))];
  return title.left > left + size * 2 && Math.abs((title.left + title.right - left - right) / 2) < size;
}

function standsAlone(block: TextBlock): boolean {
  return block.above > block.size * 0.5 && block.below > block.size * 0.4 && block.lines.length === 1;
}
