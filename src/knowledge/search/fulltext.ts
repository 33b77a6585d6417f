import { parseQuery, type StemLanguage } from '../../content/terms.ts';
import type { TextInput } from '../computing/tasks.ts';
import { allowedBit, containsPhrase } from './rank.ts';
import type { IndexReader } from './reader.ts';
import type { WantedTerm } from './wanted.ts';

/** The terms of a query with their postings, and how they are to be ranked. */
export async function prepareText(
  reader: IndexReader,
  rows: Uint8Array,
  wanted: readonly WantedTerm[],
  titled: number,
  count: number,
): Promise<TextInput> {
  const columns = await reader.columns(wanted);
  const terms = wanted.map((term, i) => ({ count: term.count, lists: columns[i] ?? [] }));
  return { terms, statistics: reader.scope.statistics, rows, titled, count };
}

/** Parses a query into items, with their terms in the languages of the scope. */
export async function readQuery(reader: IndexReader, query: string): Promise<WantedTerm[]> {
  const { terms, prefixes } = parseQuery(query, reader.languages);
  const wanted: WantedTerm[] = terms.map(({ label, count, byLanguage }) => ({
    label,
    count,
    byLanguage: new Map([...byLanguage].map(([language, term]) => [language, [term]])),
  }));
  for (const prefix of prefixes) {
    const byLanguage = new Map<StemLanguage, string[]>();
    for (const language of reader.languages) byLanguage.set(language, await reader.termsByPrefix(language, prefix));
    wanted.push({ label: `${prefix}*`, count: 1, byLanguage, isPrefix: true });
  }
  return wanted;
}

/** The scope's rows, of which only those that contain every phrase of the query stay allowed. */
export async function restrictToPhrases(reader: IndexReader, query: string): Promise<Uint8Array> {
  const { scope } = reader;
  const { phrases } = parseQuery(query, reader.languages);
  if (phrases.length === 0) return scope.rows;
  const rows = scope.memory.copy(scope.rows);
  for (const source of scope.sources) {
    const inLanguages = phrases.map((phrase) =>
      source.languages.map((language) => phrase.map(({ label, byLanguage }) => byLanguage.get(language) ?? label)),
    );
    const positions = await reader.positions(source, [...new Set(inLanguages.flat(2))]);
    for (const sequences of inLanguages) {
      const lists = sequences.map((words) => words.map((word) => positions.get(word) ?? new Map<number, number[]>()));
      const from = source.base + source.firstOrdinal;
      for (let row = from; row < source.base + source.nextOrdinal; row++) {
        if (((rows[row] ?? 0) & allowedBit) === 0) continue;
        const contains = lists.some((words) => containsPhrase(words.map((word) => word.get(row - source.base) ?? [])));
        if (!contains) rows[row] = (rows[row] ?? 0) & ~allowedBit;
      }
    }
  }
  return rows;
}
