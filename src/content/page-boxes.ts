/*
 * The boxes of a page's text, and those that the pages of a site repeat. A box is a run of paragraphs, lists and headings
 * that stand next to each other in one element. It repeats only as a whole: a licence or a signature among the paragraphs
 * of a text is part of the text's own box.
 */

/** Where a box stands in the Markdown of its page. */
export type PageBox = {
  /** The same for the same text in the same place. Empty if the box always stays. */
  key: string;
  start: number;
  end: number;
  isHeading: boolean;
};

export const boxLimits = {
  /** The boxes of a page that are compared. All further ones stay. */
  boxesMax: 200,
  /** How many pages of a site are compared. */
  pagesMax: 100,
  /** A box repeats if it is on so many pages, and on this share of them. */
  repeatsMin: 5,
  shareMin: 0.5,
  /** A shorter repeated text is a label, such as "Price" or "Parameters". */
  wordsMin: 8,
} as const;

const keyBytes = 8;

/** The keys of a page's boxes, each once, as bytes. */
export function writeKeys(boxes: readonly PageBox[]): Buffer {
  return Buffer.from([...new Set(boxes.map(({ key }) => key))].join(''), 'hex');
}

export function readKeys(bytes: Buffer): string[] {
  return Array.from({ length: bytes.length / keyBytes }, (_unused, at) =>
    bytes.toString('hex', at * keyBytes, (at + 1) * keyBytes),
  );
}

/** The keys of the boxes that repeat among the pages, each of which is given by the keys of its boxes. */
export function findRepeated(pages: readonly (readonly string[])[]): Set<string> {
  const counts = new Map<string, number>();
  for (const keys of pages) for (const key of new Set(keys)) counts.set(key, (counts.get(key) ?? 0) + 1);
  const enough = Math.max(boxLimits.repeatsMin, pages.length * boxLimits.shareMin);
  return new Set([...counts].flatMap(([key, count]) => (key !== '' && count >= enough ? key : [])));
}

/** The text without its repeated boxes. A heading goes with all that it announces, and never alone. */
export function leaveOutRepeated(markdown: string, boxes: readonly PageBox[], repeated: ReadonlySet<string>): string {
  const isOut = boxes.map(({ key }) => repeated.has(key));
  for (let at = boxes.length - 1; at >= 0; at--) if (boxes[at]?.isHeading && isOut[at + 1] === false) isOut[at] = false;
  const kept: string[] = [];
  let from = 0;
  for (let at = 0; at < boxes.length; at++) {
    if (!isOut[at]) continue;
    let next = at + 1;
    while (isOut[next]) next += 1;
    const [start, end] = [boxes[at]?.start ?? 0, boxes[next]?.start ?? markdown.length];
    if (countWords(markdown.slice(start, end)) >= boxLimits.wordsMin) {
      kept.push(markdown.slice(from, start));
      from = end;
    }
    at = next;
  }
  if (from === 0) return markdown;
  const text = [...kept, markdown.slice(from)].join('').trimEnd();
  return text === '' ? markdown : text;
}

function countWords(text: string): number {
  return text.match(/[\p{L}\p{N}]+/gu)?.length ?? 0;
}
