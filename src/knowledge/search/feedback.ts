import { withContext } from '../../content/prepare.ts';
import { isStopTerm, readTokens, type StemLanguage } from '../../content/terms.ts';
import type { Db } from '../../db/database.ts';
import { type Models, wordKey } from './learned.ts';
import { type RankedColumns, unpackRanked } from './rank.ts';
import { placeOfRow, type SearchedChunks } from './scope.ts';
import { listPassages } from './store.ts';
import type { WantedTerm } from './wanted.ts';

/**
 * Pseudo-relevance feedback (Bo1, Amati 2003): words that the best passages of a first ranking share, and that are rare
 * in the collection, are added to the query of a second one. Chosen on CISI; ten passages or a weight of a half score
 * within .005 of these.
 */
const passagesRead = 5;
const termsAdded = 10;
const passagesPerTermMin = 2;
const addedWeight = 0.3;
/** How far a query's direction moves towards the best passage, as a fraction. */
const directionWeight = 0.1;
/** With fewer words, the first ranking is too often about something else: on CISI, feedback then gains nothing. */
const queryTermsMin = 5;

export type Feedback = {
  /** The query's own terms and the added ones, with their weights for the second ranking. */
  wanted: WantedTerm[];
  /** For `explain`: the added terms and how many passages they come from. */
  added: { term: string; weight: number }[];
  passages: number;
  /** The passages, with how far a query's direction moves towards each. */
  chunks: { sourceId: string; ordinal: number; weight: number }[];
};

/**
 * Derives the second query from the best chunks of the first ranking, all of which the search may return. Undefined if
 * the first ranking is unreliable: the query is short, few chunks match it, or one of their sources has no model to
 * tell how common its words are.
 */
export async function askBestPassages(
  db: Db,
  appId: string,
  scope: SearchedChunks,
  models: Models,
  query: readonly WantedTerm[],
  ranked: RankedColumns,
): Promise<Feedback | undefined> {
  const best = unpackRanked(ranked, passagesRead);
  if (query.length < queryTermsMin || best.length < passagesRead) return undefined;
  const top = best[0]?.score ?? 1;
  const chunks = best.map(({ row, score }) => ({ ...placeOfRow(scope, row), weight: (score / top) ** 2 }));
  const sources = new Map(models.sources.map((source) => [source.sourceId, source]));
  if (chunks.some((chunk) => !sources.has(chunk.sourceId))) return undefined;

  const passages = await listPassages(db, appId, chunks);
  const weights = new Map(chunks.map((chunk) => [`${chunk.sourceId}/${chunk.ordinal}`, chunk.weight]));
  const met = new Map<string, { occurrences: number; passages: number; languages: Set<StemLanguage> }>();
  for (const { sourceId, ordinal, language, title, headingPath, content } of passages) {
    const weight = weights.get(`${sourceId}/${ordinal}`) ?? 0;
    for (const [term, frequency] of countTerms(
      withContext(content.toString(), title ?? undefined, headingPath),
      language,
    )) {
      const known = met.get(term) ?? { occurrences: 0, passages: 0, languages: new Set() };
      known.occurrences += frequency * weight;
      known.passages += 1;
      known.languages.add(language);
      met.set(term, known);
    }
  }
  for (const [term, { passages: count }] of met) if (count < passagesPerTermMin) met.delete(term);

  const involved = [...new Set(chunks.map((chunk) => chunk.sourceId))].flatMap((id) => sources.get(id) ?? []);
  const frequencies = await models.readFrequencies(
    involved.flatMap((source) => [...met.keys()].map((term) => ({ source, term }))),
  );
  const total = involved.reduce((sum, source) => sum + source.chunkCount, 0);
  const scored = [...met].flatMap(([term, { occurrences, languages }]) => {
    const expected =
      involved.reduce((sum, source) => sum + (frequencies.get(wordKey(source, term)) ?? 0) * source.chunkCount, 0) /
      total;
    if (expected === 0) return [];
    const score = occurrences * Math.log2((1 + expected) / expected) + Math.log2(1 + expected);
    return [{ term, languages, score }];
  });
  scored.sort((a, b) => b.score - a.score || (a.term < b.term ? -1 : 1));
  const added = scored.slice(0, termsAdded);
  const most = added[0]?.score ?? 1;
  const largest = Math.max(...query.map((term) => term.count));
  const wanted = new Map(query.map((term) => [term.label, { ...term, count: term.count / largest }]));
  const weighted = added.map(({ term, languages, score }) => ({
    term,
    languages,
    weight: (addedWeight * score) / most,
  }));
  for (const { term, languages, weight } of weighted) {
    const known = wanted.get(term);
    if (known) known.count += weight;
    else
      wanted.set(term, {
        label: term,
        count: weight,
        byLanguage: new Map([...languages].map((language) => [language, [term]])),
      });
  }
  return {
    wanted: [...wanted.values()],
    added: weighted.map(({ term, weight }) => ({ term, weight })),
    passages: passages.length,
    chunks: chunks.map((chunk) => ({ ...chunk, weight: directionWeight * chunk.weight })),
  };
}

function countTerms(text: string, language: StemLanguage): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { term } of readTokens(text, language))
    if (!isStopTerm(term, language)) counts.set(term, (counts.get(term) ?? 0) + 1);
  return counts;
}
