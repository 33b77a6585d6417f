/** A part of a text, in UTF-16 units; `end` is exclusive. */
export type Piece = { start: number; end: number };

/** Where a piece may end, best place first: before a heading, between paragraphs, lines, sentences and words. */
const seams = [/\n(?=#{1,6} )/g, /\n\n+/g, /\n/g, /[.!?]\s+/g, /\s+/g];
/** A piece ends at a worse place if it would otherwise be smaller than this share of what fits. */
const fullnessMin = 0.5;

/** Divides a text into consecutive pieces of at most `bytesMax` bytes. Joined, they are the whole text. */
export function divideText(text: string, bytesMax: number): Piece[] {
  const pieces: Piece[] = [];
  for (let start = 0; start < text.length; ) {
    const end = endOfPiece(text, start, bytesMax);
    pieces.push({ start, end });
    start = end;
  }
  return pieces;
}

function endOfPiece(text: string, start: number, bytesMax: number): number {
  const most = fittingEnd(text, start, bytesMax);
  if (most === text.length) return most;
  const window = text.slice(start, most);
  const least = Math.floor(window.length * fullnessMin);
  for (const seam of seams) {
    let last = 0;
    for (const match of window.matchAll(seam)) {
      const at = match.index + match[0].length;
      if (at < window.length) last = at;
    }
    if (last >= least && last > 0) return start + last;
  }
  return most;
}

/** The end of the longest part from `start` that fits without splitting a surrogate pair; at least one character. */
function fittingEnd(text: string, start: number, bytesMax: number): number {
  let bytes = 0;
  let at = start;
  while (at < text.length) {
    const code = text.codePointAt(at) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (bytes > bytesMax && at > start) break;
    at += code < 0x10000 ? 1 : 2;
  }
  return at;
}
