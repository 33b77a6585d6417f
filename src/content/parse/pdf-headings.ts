import type { PdfBlock, TextBlock } from './pdf-paragraphs.ts';

/** What the document's text usually looks like, to tell headings from it. */
export type DocumentLook = { bodySize: number; boldShare: number; hasHeadingRoles: boolean };

export function lookOf(sizes: Map<number, number>, boldCharacters: number, characters: number): DocumentLook {
  const [size] = [...sizes].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0] ?? [10];
  return { bodySize: size, boldShare: boldCharacters / Math.max(1, characters), hasHeadingRoles: false };
}

/** The level of each heading among the blocks: by the file's structure, else by size, weight and numbering. */
export function headingLevels(blocks: PdfBlock[], look: DocumentLook): Map<PdfBlock, number> {
  const levels = new Map<PdfBlock, number>();
  const visual: TextBlock[] = [];
  blocks.forEach((block, index) => {
    if (block.kind !== 'text') return;
    const role = roleLevel(block.role);
    if (role !== undefined) levels.set(block, role);
    else if (!look.hasHeadingRoles && isHeading(block, blocks[index + 1], look)) visual.push(block);
  });
  const styles = [...new Set(visual.map(styleOf))].sort((a, b) => b - a);
  for (const block of visual) levels.set(block, Math.min(6, styles.indexOf(styleOf(block)) + 1));
  return levels;
}

export function roleLevel(role: string | undefined): number | undefined {
  if (role === undefined) return undefined;
  if (/^title$/i.test(role)) return 1;
  if (/^h$/i.test(role)) return 2;
  const number = /^h(?:eading)?[\s_-]*([1-6])$/i.exec(role)?.[1];
  return number === undefined ? undefined : Number(number);
}

/** Larger type ranks first; among equals bold before plain. */
function styleOf(block: TextBlock): number {
  return Math.round(block.size * 2) * 10 + (block.bold ? 1 : 0);
}

function isHeading(block: TextBlock, next: PdfBlock | undefined, look: DocumentLook): boolean {
  const { text } = block;
  const letters = text.replaceAll(/[^\p{L}]/gu, '');
  if (letters.length < 2 || text.length > 200 || block.mono || block.lines.length > 3 || block.role === 'LI')
    return false;
  const numbered =
    /^(?:\d{1,2}(?:\.\d{1,2})*\.?|[A-Z]\.|[IVX]{1,5}\.|(?:chapter|section|part|appendix|kapitel|chapitre)\s+\w+)[\s:]/i.test(
      `${block.marker ?? ''} ${text}`.trim(),
    );
  const bullet = block.marker !== undefined && !/[\p{L}\p{N}]/u.test(block.marker);
  if (bullet) return false;
  const large = block.size >= look.bodySize * 1.13;
  const sentence = /[.,;]$/.test(text) && !numbered;
  if (large) return !(sentence && block.size < look.bodySize * 1.35) && text.length <= 160;
  if (block.size < look.bodySize * 0.92 || sentence || text.length > 120 || block.lines.length > 2) return false;
  if (/:$/.test(text) && !numbered) return false;
  if (block.bold && look.boldShare < 0.4)
    return next !== undefined && (block.above > block.size * 0.35 || block.above === Number.POSITIVE_INFINITY);
  return (
    isCapitals(letters) &&
    letters.length >= 5 &&
    standsAlone(block) &&
    look.boldShare < 0.4 &&
    next?.kind === 'text' &&
    next.text.length > 80
  );
}

function isCapitals(letters: string): boolean {
  return letters === letters.toUpperCase() && letters !== letters.toLowerCase();
}

function standsAlone(block: TextBlock): boolean {
  return block.above > block.size * 0.5 && block.below > block.size * 0.4 && block.lines.length === 1;
}
