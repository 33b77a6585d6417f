import type { Line } from './lines.ts';

type PageLines = { lines: Line[]; width: number; height: number };

const marginShare = 0.14;
const headShare = 0.25;
const outerLines = 3;

/**
 * Running heads, feet and page numbers: lines at the upper or lower edge whose text (without digits) recurs on other
 * pages or is that of a title, and page numbers on their own line. Returns the pages without them.
 */
export function dropFurniture(pages: PageLines[], bodySize: number): Line[][] {
  const counts = new Map<string, number>();
  const texts = new Map<string, number>();
  const candidates = pages.map((page) => findOuterLines(page));
  for (const lines of candidates) {
    for (const key of new Set(lines.map(shapeOf))) counts.set(key, (counts.get(key) ?? 0) + 1);
    for (const text of new Set(lines.map((line) => line.text))) texts.set(text, (texts.get(text) ?? 0) + 1);
  }
  const isLarge = (line: Line): boolean => line.bold || line.size > bodySize * 1.1;
  // Titles such as `1.1 Overview` and `2.1 Overview` differ only in their numbers, but are no running heads.
  const isTitle = (line: Line): boolean => isLarge(line) && sectionTitle.test(line.text) && texts.get(line.text) === 1;
  const titles = new Set(pages.flatMap(({ lines }) => lines.filter(isLarge).map(wordsOf)));
  const needed = pages.length <= 5 ? 2 : 3;
  return pages.map((page, index) => {
    const edge = candidates[index] ?? [];
    const dropped = new Set(
      edge.filter((line) => {
        if (isPageNumber(line.text)) return true;
        if (isTitle(line)) return false;
        if ((counts.get(shapeOf(line)) ?? 0) >= needed && page.lines.length > edge.length / 2) return true;
        return isNumberedHead(line, page, bodySize);
      }),
    );
    const head = topLine(page);
    if (head && !isLarge(head) && wordsOf(head).length >= titleLettersMin && titles.has(wordsOf(head)))
      dropped.add(head);
    return dropped.size >= page.lines.length ? page.lines : page.lines.filter((line) => !dropped.has(line));
  });
}

const titleLettersMin = 3;

/** The highest line, which margins may push down further than the edge. */
function topLine({ lines, height }: PageLines): Line | undefined {
  const [first, ...others] = lines;
  const top = others.reduce((best, line) => (best && line.baseline < best.baseline ? line : best), first);
  return top && top.bottom < height * headShare ? top : undefined;
}

/** The letters of a line, which a running head has in common with the title that it repeats. */
function wordsOf({ text }: Line): string {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}]+/gu, ' ')
    .trim();
}

/** A section number of several levels, and a title that does not end in a page number. */
const sectionTitle = /^\d{1,2}(?:\.\d{1,2})+\.?\s+\p{L}(?:.*\D)?$/u;

/** The first and last lines of the page, when they are near its edges. */
function findOuterLines(page: PageLines): Line[] {
  const sorted = [...page.lines].sort((a, b) => a.baseline - b.baseline);
  const top = sorted.slice(0, outerLines).filter((line) => line.bottom < page.height * marginShare);
  const bottom = sorted.slice(-outerLines).filter((line) => line.top > page.height * (1 - marginShare));
  return [...new Set([...top, ...bottom])];
}

/** The text without digits, and its size, which distinguishes a title from the running head that repeats it. */
function shapeOf(line: Line): string {
  return `${Math.round(line.size)} ${asciiDigits(line.text)}`
    .toLowerCase()
    .replaceAll(/(?<=\s\S*)\d+|\b[ivxlc]+\b/g, '#')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

function isPageNumber(text: string): boolean {
  return /^(?:[-–—|[(]\s*)?(?:page|seite|página|pagina|p\.?|pg\.?|s\.)?\s*(?:\d{1,4}|[ivxlc]{1,6})(?:\s*(?:of|\/|von|de|sur|di|\|)\s*\d{1,4})?(?:\s*[-–—|\])])?$/i.test(
    asciiDigits(text).trim(),
  );
}

/** Replaces Arabic-Indic and Persian digits by ASCII digits. */
function asciiDigits(text: string): string {
  return text.replaceAll(/[٠-٩۰-۹]/g, (digit) => String(digit.charCodeAt(0) & 0xf));
}

/** The head or foot of a single page: its number at one end, set apart from the text and not larger than it. */
function isNumberedHead(line: Line, page: PageLines, bodySize: number): boolean {
  if (line.segments.length < 2 || line.size > bodySize * 1.02 || line.text.length > 100) return false;
  const first = asciiDigits(line.segments[0]?.text ?? '');
  const last = asciiDigits(line.segments.at(-1)?.text ?? '');
  if (!/^\d{1,4}$/.test(first) && !/^\d{1,4}$/.test(last)) return false;
  const others = page.lines.filter((one) => one !== line);
  const isTop = line.baseline < page.height / 2;
  const distance = Math.min(
    ...others.map((one) => (isTop ? one.top - line.bottom : line.top - one.bottom)).filter((gap) => gap > -line.size),
  );
  return (
    distance > line.size * 0.6 &&
    others.every((one) => (isTop ? one.baseline > line.baseline - 1 : one.baseline < line.baseline + 1))
  );
}
