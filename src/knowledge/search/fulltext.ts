import { type ParsedQuery, parseQuery, type StemLanguage } from '../../content/terms.ts';
import { allowedBit, containsPhrase } from './rank.ts';
import type { IndexReader } from './reader.ts';
import { type RankTerm, type Scored, scoreTerms } from './score.ts';

/** An item of a query to rank by: in each language of the scope one term, or the words that a prefix matches. */
export type WantedTerm = {
  label: string;
  /** How much it counts. */
  count: number;
  byLanguage: Map<StemLanguage, string[]>;
};

export type TextRanking = Pick<Scored, 'ranked' | 'scoreOf'> & {
  /** For `explain`: each term with its weight. */
  terms: { term: string; documentFrequency: number; idf: number }[];
};

/** Ranks `rows` of the scope by BM25, with a weight for titles and headings by BM25F; at most `count`. */
export async function rankText(
  reader: IndexReader,
  rows: Uint8Array,
  wanted: readonly WantedTerm[],
  titleWeight: number,
  count: number,
): Promise<TextRanking> {
  const columns = await reader.columns(wanted.map((term) => term.byLanguage));
  const terms: RankTerm[] = wanted.map((term, i) => ({ count: term.count, lists: columns[i] ?? [] }));
  const { statistics } = reader.scope;
  const { weights, ranked, scoreOf } = scoreTerms(terms, statistics, rows, titleWeight, count);
  return {
    ranked,
    scoreOf,
    terms: wanted.map((term, i) => ({ term: term.label, ...(weights[i] ?? { documentFrequency: 0, idf: 0 }) })),
  };
}

/** The items of a query in the languages of the scope. */
export async function readQuery(reader: IndexReader, query: string): Promise<WantedTerm[]> {
  const wanted = new Map<string, WantedTerm>();
  const add = (label: string, count: number, language: StemLanguage, terms: string[]) => {
    const known = wanted.get(label) ?? { label, count, byLanguage: new Map() };
    known.byLanguage.set(language, terms);
    wanted.set(label, known);
  };
  for (const language of reader.languages) {
    const parsed = parseQuery(query, language);
    for (const [term, count] of parsed.terms) add(term, count, language, [term]);
    for (const prefix of parsed.prefixes) add(`${prefix}*`, 1, language, await reader.termsByPrefix(language, prefix));
  }
  return [...wanted.values()];
}

/** The scope's rows, where only those that contain every phrase of the query stay allowed. */
export async function restrictToPhrases(reader: IndexReader, query: string): Promise<Uint8Array> {
  const { scope } = reader;
  const phrasesOf = new Map<StemLanguage, ParsedQuery['phrases']>(
    reader.languages.map((language) => [language, parseQuery(query, language).phrases]),
  );
  if ([...phrasesOf.values()].every((phrases) => phrases.length === 0)) return scope.rows;
  const rows = scope.rows.slice();
  for (const source of scope.sources) {
    const phrases = phrasesOf.get(source.language) ?? [];
    const positions = await reader.positions(source, [...new Set(phrases.flat())]);
    for (const phrase of phrases) {
      const lists = phrase.map((word) => positions.get(word) ?? new Map<number, number[]>());
      const from = source.base + source.firstOrdinal;
      for (let row = from; row < source.base + source.nextOrdinal; row++) {
        if (((rows[row] ?? 0) & allowedBit) === 0) continue;
        const found = lists.map((list) => list.get(row - source.base) ?? []);
        if (!containsPhrase(found)) rows[row] = (rows[row] ?? 0) & ~allowedBit;
      }
    }
  }
  return rows;
}
