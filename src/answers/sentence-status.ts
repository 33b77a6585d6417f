import type { CheckedQuote } from '../content/quotes/check.ts';

type Checked = Pick<CheckedQuote<unknown>, 'status'>;

const isFound = ({ status }: Checked) => status === 'exact' || status === 'normalised' || status === 'elided';
const isMissing = ({ status }: Checked) => status === 'altered' || status === 'not_found';

/** What a sentence is, by its quotes and by whether it names a document. */
export function sentenceStatusOf(quotes: readonly Checked[], isCited: boolean): 'quoted' | 'cited' | 'uncited' {
  if (quotes.some(isFound) && !quotes.some(isMissing)) return 'quoted';
  return isCited ? 'cited' : 'uncited';
}
