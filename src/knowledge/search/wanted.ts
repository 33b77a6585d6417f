import type { StemLanguage } from '../../content/terms.ts';

/** An item of a query to rank by: a word, one term in each language, or the words that a prefix matches. */
export type WantedTerm = {
  label: string;
  /** Its weight: how often it occurs in the query. */
  count: number;
  byLanguage: ReadonlyMap<StemLanguage, readonly string[]>;
  isPrefix?: true;
};

/** The terms of an item in a source whose texts are in these languages. */
export function termsIn(languages: readonly StemLanguage[], { byLanguage }: Pick<WantedTerm, 'byLanguage'>): string[] {
  return [...new Set(languages.flatMap((language) => byLanguage.get(language) ?? []))];
}
