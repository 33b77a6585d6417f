import { type Line, typicalLeading } from './lines.ts';
import type { PdfTable } from './tables.ts';
import { joinText, type WordList } from './words.ts';

/** A block of text before it is classified as a heading or not. */
export type TextBlock = {
  kind: 'text';
  text: string;
  lines: Line[];
  size: number;
  bold: boolean;
  mono: boolean;
  /** White space above in points; infinite at the start of a page or column. */
  above: number;
  below: number;
  /** The bullet or number of a list item. */
  marker: string | undefined;
  left: number;
  /** The role in the file's own structure: `H1`, `P`, … */
  role?: string;
};
export type PdfBlock = TextBlock | { kind: 'table'; table: PdfTable };

const bulletPattern = /^(?:[•‣▪▫●○◦■□◆◇➢➤►▶✓✔✗❖∙·⁃◾◼☐☑☒\ue000-\uf8ff]|[-–—*o](?=\s)|[∗⋆](?=\s*\p{L}{2}))\s*(?=\S)/u;
const numberPattern = /^\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)](?=\s)\s*/;

/** Joins lines in reading order into paragraphs and list items. `all` is every line of the page, to find column widths. */
export function buildParagraphs(lines: Line[], all: Line[], words: WordList): TextBlock[] {
  const leading = typicalLeading(all);
  const groups: Line[][] = [];
  for (const line of lines) {
    const group = groups.at(-1);
    if (group && continues(group, line, all, leading)) group.push(line);
    else groups.push([line]);
  }
  return groups.map((group, index) => textBlock(group, groups[index - 1]?.at(-1), groups[index + 1]?.[0], all, words));
}

/** A line of a table of contents: leaders, then the page number. */
export const contentsLine = /(?:\.\s?){4,}\s*(?:\d{1,4}|[ivxlc]{1,6})$/i;

function listMarker(text: string): string | undefined {
  if (startsWithWord.test(text)) return undefined;
  return (bulletPattern.exec(text) ?? numberPattern.exec(text))?.[0];
}

/** Matches most lines without a marker, so that the slower patterns of markers are not tried on them. */
const startsWithWord = /^[A-Za-hj-uw-z][A-Za-z]/;

/** A title in the type of the text has at least this many times the usual distance to it. */
const setOffMin = 1.12;

function continues(group: Line[], line: Line, all: Line[], leading: number): boolean {
  const last = group.at(-1);
  const first = group[0];
  if (!last || !first) return false;
  if (contentsLine.test(last.text)) return contentsLine.test(line.text) && line.baseline > last.baseline;
  if (Math.abs(last.size - line.size) > Math.max(last.size, line.size) * 0.12) return false;
  if (last.font !== line.font && !last.mono && !line.mono && Math.abs(last.size - line.size) > 0.4) return false;
  if (last.bold !== line.bold && !isMixed(group, last, line, all)) return false;
  const item = listMarker(first.text) !== undefined;
  if (startsItem(line, group)) return false;
  if (group.length === 1 && isTitleOver(last, line, all)) return false;
  if (isNextNote(first, line)) return false;
  if (last.mono !== line.mono && !(/[\p{L},(]$/u.test(last.text) && line.left <= first.left + line.size)) return false;
  const step = line.baseline - last.baseline;
  const overlap = Math.min(last.right, line.right) - Math.max(last.left, line.left);
  if (step <= 0 || overlap <= 0) return continuesElsewhere(last, line);
  if (step > Math.max(leading * 1.3, 0.9) * line.size + 0.5) return false;
  const isSetOff = group.length === 1 && step > leading * setOffMin * line.size;
  if (isRagged(last, line, all) && (isSetOff || /[.!?:;。！？”"]\)?$/.test(last.text))) return false;
  const reference = group.length > 1 ? Math.min(...group.slice(1).map((one) => one.left)) : first.left;
  const indent = line.left - reference;
  if (!item && indent > line.size * 0.8 && indent < line.size * 6 && !isCentred(last, line) && group.length > 1)
    return false;
  if (!item && group.length === 1 && indent > line.size * 0.8 && /[.!?:]$/.test(last.text)) return false;
  if (item && group.length > 1 && line.left < reference - line.size * 0.8 && isRagged(last, line, all)) return false;
  return !(item && line.left < first.left - line.size * 0.8);
}

/** Whether a line in capitals is centred over text that is not. */
function isTitleOver(title: Line, line: Line, all: Line[]): boolean {
  if (!isCapitals(title.text) || isCapitals(line.text) || title.left < line.left + line.size * 2) return false;
  const middle = (line.left + columnRight(line, all)) / 2;
  return Math.abs((title.left + title.right) / 2 - middle) < line.size;
}

/** Whether a text has letters, and all of them are capitals. */
export function isCapitals(text: string): boolean {
  return text === text.toUpperCase() && text !== text.toLowerCase();
}

/** Whether both lines begin with the numbers of footnotes, one after the other. */
function isNextNote(first: Line, line: Line): boolean {
  const [number, next] = [noteNumber.exec(first.text)?.[0], noteNumber.exec(line.text)?.[0]];
  return number !== undefined && Number(next) === Number(number) + 1;
}

const noteNumber = /^\d{1,3}(?=\p{L})/u;

/** Whether bold starts or ends within running text, which does not split the paragraph. */
function isMixed(group: Line[], last: Line, line: Line, all: Line[]): boolean {
  if (last.bold && /^\p{Ll}/u.test(line.text) && !isRagged(last, line, all)) return true;
  if (last.bold) return group.length > 1 && group.some((one) => !one.bold);
  return !line.bold || (line.right < last.right && /[a-z,]$/.test(last.text) && /^[a-z]/.test(line.text));
}

/** Whether the paragraph continues in the next column or page: only if the sentence clearly does. */
function continuesElsewhere(last: Line, line: Line): boolean {
  const moved = line.bottom < last.top - last.size * 4 && line.left > last.left;
  return moved && (last.hyphenated || /[\p{L},]$/u.test(last.text)) && /^\p{Ll}/u.test(line.text);
}

function startsItem(line: Line, group: Line[]): boolean {
  if (startsWithWord.test(line.text)) return false;
  if (bulletPattern.test(line.text))
    return (
      !/^[-–—]\s/.test(line.text) ||
      !/[\p{L},]$/u.test(group.at(-1)?.text ?? '') ||
      listMarker(group[0]?.text ?? '') !== undefined
    );
  if (!numberPattern.test(line.text)) return false;
  const last = group.at(-1);
  const indented = last !== undefined && Math.abs(line.left - (group[0]?.left ?? 0)) < line.size * 4;
  return (
    indented &&
    (listMarker(group[0]?.text ?? '') !== undefined ||
      /[.!?:;]$/.test(last?.text ?? '') ||
      /^\(?(?:1|a|i)[.)]/i.test(line.text))
  );
}

/** Whether the first word of the next line would have fitted on this one, which means that the line break is intended. */
function isRagged(last: Line, line: Line, all: Line[]): boolean {
  const width = columnRight(last, all) - last.right;
  const word = /^\S+/.exec(line.text)?.[0] ?? '';
  const perCharacter = (line.right - line.left) / Math.max(1, line.text.length);
  return width > (word.length + 1.5) * perCharacter + last.size * 0.8;
}

/** Cached right edges by left edge and size of type, which most lines of a page share. The size of code is negative. */
const columnRights = new WeakMap<Line[], Map<number, Map<number, number>>>();

/** The right edge of the column: the 90th percentile of the lines that start at the same left edge. */
function columnRight(line: Line, all: Line[]): number {
  let known = columnRights.get(all);
  if (!known) {
    known = new Map();
    columnRights.set(all, known);
  }
  let bySize = known.get(line.left);
  if (!bySize) {
    bySize = new Map();
    known.set(line.left, bySize);
  }
  const size = line.mono ? -line.size : line.size;
  let right = bySize.get(size);
  if (right === undefined) {
    const beside = all.filter((one) => isAlike(one, line) && Math.abs(one.left - line.left) < line.size * 4);
    if (beside.length < 4) return furthest(linesAround(line, all)) ?? line.right;
    right = furthest(beside) ?? line.right;
    bySize.set(size, right);
  }
  return right;
}

function linesAround(line: Line, all: Line[]): Line[] {
  const half = (line.right - line.left) * 0.5;
  return all.filter(
    (one) => isAlike(one, line) && Math.min(one.right, line.right) - Math.max(one.left, line.left) > half,
  );
}

/** Lines of code are often longer than the column of the text around them. */
function isAlike(one: Line, line: Line): boolean {
  return one.mono === line.mono && Math.abs(one.size - line.size) < 1.5;
}

/** The edge that most lines of justified text share, otherwise the 90th percentile. Lines of code may be longer. */
function furthest(lines: Line[]): number | undefined {
  const rights = Float64Array.from(lines, ({ right }) => right).sort();
  const shareMin = Math.max(4, rights.length * 0.3);
  let start = rights.length - 1;
  for (let end = rights.length - 1; end >= rights.length * 0.8; end--) {
    start = Math.min(start, end);
    while (start > 0 && (rights[end] ?? 0) - (rights[start - 1] ?? 0) <= 3) start -= 1;
    if (end - start + 1 >= shareMin) return rights[end];
  }
  return rights[Math.max(0, Math.ceil(rights.length * 0.9) - 1)];
}

function isCentred(last: Line, line: Line): boolean {
  return (
    Math.abs((last.left + last.right) / 2 - (line.left + line.right) / 2) < line.size &&
    Math.abs(last.left - line.left) > line.size * 0.5
  );
}

function textBlock(
  group: Line[],
  before: Line | undefined,
  after: Line | undefined,
  all: Line[],
  words: WordList,
): TextBlock {
  const [first] = group;
  const last = group.at(-1);
  if (!first || !last) throw new Error('A paragraph has no lines.');
  const marker = listMarker(first.text);
  return {
    kind: 'text',
    text: groupText(group, marker, all, words),
    lines: group,
    size: Math.max(...group.map((line) => line.size)),
    bold: group.every((line) => line.bold),
    mono: group.every((line) => line.mono),
    above: before && before.baseline < first.baseline ? first.top - before.bottom : Number.POSITIVE_INFINITY,
    below: after && after.baseline > last.baseline ? after.top - last.bottom : Number.POSITIVE_INFINITY,
    marker: marker?.trim(),
    left: first.left,
  };
}

/** Lines as running text, with spaces for line ends. */
export function plainText(lines: Line[], words: WordList): string {
  let text = '';
  lines.forEach((line, index) => {
    const hyphenated = lines[index - 1]?.hyphenated === true && /[\p{L}\p{N}][-‐\u00ad]$/u.test(text);
    text = hyphenated ? words.join(text, line.text) : joinText(text, line.text);
  });
  return text;
}

/** Whether nearly every line starts with a capital or a digit, as in receipts and addresses but not in prose. */
function isListOfLines(group: Line[]): boolean {
  const later = group.slice(1);
  if (later.length < 3 || group.some((line) => line.text.length > 60)) return false;
  return later.filter((line) => /^[\p{Lu}\p{N}$€£#*(+-]/u.test(line.text)).length >= later.length * 0.85;
}

/** Lines with intended breaks (addresses, verses, receipts) keep them. */
function groupText(group: Line[], marker: string | undefined, all: Line[], words: WordList): string {
  let text = '';
  const ragged = group.map((line, index) => {
    const last = group[index - 1];
    return last !== undefined && isRagged(last, line, all);
  });
  const isListing = isListOfLines(group);
  const deliberate = isListing || ragged.filter(Boolean).length > (group.length - 1) * 0.5;
  group.forEach((line, index) => {
    const own = index === 0 && marker !== undefined ? line.text.slice(marker.length) : line.text;
    const last = group[index - 1];
    if (!last) text = own;
    else if (last.hyphenated && /[\p{L}\p{N}][-‐\u00ad]$/u.test(text)) text = words.join(text, own);
    else if ((deliberate && (ragged[index] || isListing)) || contentsLine.test(last.text)) text = `${text}\n${own}`;
    else text = joinText(text, own);
  });
  return text;
}
