import { parseQuery, readTokens, type StemLanguage } from './terms.ts';

/** A range of a text in UTF-16 units; `end` is exclusive. */
type TextRange = { start: number; end: number };

/** A query for texts in several languages, one of which is this text's language. */
type HighlightQuery = { query: string; languages: readonly StemLanguage[]; language: StemLanguage };

/**
 * The ranges of `text` that match words or prefixes of the query, in order, overlapping ones joined, at most
 * `rangesMax`.
 */
export function findHighlights(text: string, query: HighlightQuery, rangesMax: number): TextRange[] {
  const { language } = query;
  const { terms: words, prefixes } = parseQuery(query.query, query.languages);
  const terms = new Set(words.map(({ label, byLanguage }) => byLanguage.get(language) ?? label));
  // The index contains stems, so `retrieval*` also matches `retriev`.
  for (const prefix of prefixes) for (const { label } of parseQuery(prefix, [language]).terms) terms.add(label);
  const sourceRange = mapToSource(text);
  const ranges: TextRange[] = [];
  for (const { term, start, end } of readTokens(text, language)) {
    if (!terms.has(term) && !prefixes.some((prefix) => term.startsWith(prefix))) continue;
    const range = sourceRange(start, end);
    const last = ranges.at(-1);
    if (last && range.start < last.end) last.end = Math.max(last.end, range.end);
    else if (ranges.length === rangesMax) break;
    else ranges.push(range);
  }
  return ranges;
}

/** Maps ranges of the NFKC form, from which tokens are read, to ranges of the original text. */
function mapToSource(text: string): (start: number, end: number) => TextRange {
  const normalized = text.normalize('NFKC');
  if (normalized === text) return (start, end) => ({ start, end });
  const starts = new Int32Array(normalized.length + 1).fill(-1);
  const ends = new Int32Array(normalized.length + 1).fill(-1);
  let at = 0;
  for (const { segment, index } of graphemes.segment(text)) {
    const { length } = segment.normalize('NFKC');
    // A character that becomes several, such as a ligature, is one range.
    for (let i = 0; i < length && at + i < normalized.length; i++) {
      starts[at + i] = index;
      ends[at + i] = index + segment.length;
    }
    at += length;
  }
  return (start, end) => ({
    start: starts[start] ?? 0,
    end: ends[end - 1] ?? text.length,
  });
}

const graphemes = new Intl.Segmenter('und', { granularity: 'grapheme' });
