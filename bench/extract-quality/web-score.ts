import { stripMarkdown } from './score.ts';

/** How close the words of a text are to those of its reference. */
export type WordScore = { precision: number; recall: number; f1: number };

/** F1 over the multiset of words (`\w+`, lower case), as WCXB scores it. */
export function scoreWords(reference: string, markdown: string): WordScore {
  return scoreWordLists(wordsOf(reference.toLowerCase()), wordsOf(stripMarkdown(markdown).toLowerCase()));
}

/** Precision and recall of runs of four words, as the article-extraction-benchmark scores them. */
export function scoreShingles(reference: string, markdown: string): WordScore {
  return scoreWordLists(shingles(wordsOf(reference)), shingles(wordsOf(stripMarkdown(markdown))));
}

export type SnippetScore = { found: number; missed: number; wrong: number };

/** Which of the wanted and unwanted segments are in the text. */
export function scoreSnippets(wanted: string[], unwanted: string[], markdown: string): SnippetScore {
  const raw = oneSpace(markdown);
  const text = oneSpace(stripMarkdown(markdown));
  const stands = (segment: string): boolean => text.includes(oneSpace(segment)) || raw.includes(oneSpace(segment));
  const found = wanted.filter((segment) => stands(segment) || text.includes(oneSpace(stripMarkdown(segment)))).length;
  return { found, missed: wanted.length - found, wrong: unwanted.filter(stands).length };
}

function oneSpace(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

export function wordsOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}_]+/gu) ?? [];
}

const shingleWords = 4;

function shingles(list: string[]): string[] {
  const count = Math.max(1, list.length - shingleWords + 1);
  return Array.from({ length: count }, (_unused, at) => list.slice(at, at + shingleWords).join(' ')).filter(
    (one) => one !== '',
  );
}

export function scoreWordLists(truth: string[], given: string[]): WordScore {
  if (truth.length === 0 && given.length === 0) return { precision: 1, recall: 1, f1: 1 };
  const left = new Map<string, number>();
  for (const one of truth) left.set(one, (left.get(one) ?? 0) + 1);
  let common = 0;
  for (const one of given) {
    const count = left.get(one) ?? 0;
    if (count > 0) common += 1;
    left.set(one, count - 1);
  }
  return {
    precision: given.length === 0 ? 0 : common / given.length,
    recall: truth.length === 0 ? 0 : common / truth.length,
    f1: (2 * common) / (truth.length + given.length),
  };
}
