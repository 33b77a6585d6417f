import { findHighlights } from '../../content/highlight.ts';
import type { StemLanguage } from '../../content/terms.ts';
import type { Transaction } from '../../db/database.ts';
import {
  type ContextRow,
  countFacets,
  type FacetValue,
  type HitRow,
  listContexts,
  listDocumentsAt,
  listHits,
} from './results-store.ts';
import { languagesOf, placeOfRow, type SearchedChunks } from './scope.ts';

/** Which parts of the passages found a search returns. */
export type ResultShape = {
  maxResults: number;
  /** Only the best passage of each document. */
  onePerDocument: boolean;
  /** Members of document metadata to count. */
  facets: string[];
  /** The number of neighbours of each passage on either side. */
  contextChunks: number;
  highlights: boolean;
};

/** A range that matches the query: UTF-16 units of the passage, and bytes of the document. */
type Highlight = { start: number; end: number; startByte: number; endByte: number };

/** A row's final score, and its rank and score in each ranking that contains it. */
export type Combined = {
  row: number;
  score: number;
  textRank?: number;
  textScore?: number;
  learnedRank?: number;
  learnedScore?: number;
  vectorRank?: number;
  similarity?: number;
};

export type SearchHit = Omit<Combined, 'row'> & {
  row: HitRow;
  context?: ContextRow;
  highlights?: Highlight[];
  /** The rank before the reranker changed it. */
  rankBefore?: number;
};

export type Facets = Map<string, Pick<FacetValue, 'value' | 'count'>[]>;

const highlightsMax = 100;
const facetBounds = { valuesMax: 20, bytesMax: 200 };

/** Reads the results of a ranking, best first: hits in the requested shape, and the facets of all ranked passages. */
export async function readResults(
  search: { tx: Transaction; appId: string; scope: SearchedChunks; query: string },
  ranked: readonly Combined[],
  shape: ResultShape,
): Promise<{ hits: SearchHit[]; facets?: Facets }> {
  const { tx, appId, scope } = search;
  const place = ({ row }: { row: number }) => placeOfRow(scope, row);
  let best = ranked;
  let facets: Facets | undefined;
  if (shape.onePerDocument || shape.facets.length > 0) {
    const found = await listDocumentsAt(tx, appId, ranked.map(place));
    const documentAt = new Map(found.map((one) => [keyOf(one), one.documentId]));
    const documentOf = (one: { row: number }) => documentAt.get(keyOf(place(one)));
    if (shape.onePerDocument) best = firstOfEach(ranked, documentOf);
    if (shape.facets.length > 0) facets = await readFacets(tx, appId, [...new Set(documentAt.values())], shape.facets);
  }
  best = best.slice(0, shape.maxResults);
  const places = best.map(place);
  const rows = byPlace(await listHits(tx, appId, places));
  const contexts = byPlace(shape.contextChunks > 0 ? await listContexts(tx, appId, places, shape.contextChunks) : []);
  const languages = languagesOf(scope);
  const hits = best.flatMap((one): SearchHit[] => {
    const key = keyOf(place(one));
    const row = rows.get(key);
    if (!row) return [];
    const context = contexts.get(key);
    const highlights = shape.highlights && { highlights: highlight(row, search.query, languages) };
    return [{ ...one, row, ...(context && { context }), ...highlights }];
  });
  return { hits, ...(facets && { facets }) };
}

function firstOfEach<Item>(items: readonly Item[], groupOf: (item: Item) => string | undefined): Item[] {
  const seen = new Set<string | undefined>();
  return items.filter((item) => {
    const group = groupOf(item);
    return seen.has(group) ? false : seen.add(group);
  });
}

async function readFacets(tx: Transaction, appId: string, documentIds: string[], keys: string[]): Promise<Facets> {
  const facets: Facets = new Map(keys.map((key) => [key, []]));
  for (const { key, value, count } of await countFacets(tx, appId, documentIds, keys, facetBounds))
    facets.get(key)?.push({ value, count });
  return facets;
}

function highlight({ content, startByte, language }: HitRow, query: string, languages: StemLanguage[]): Highlight[] {
  const text = content.toString();
  let seen = 0;
  let bytes = startByte;
  const byteAt = (offset: number): number => {
    bytes += Buffer.byteLength(text.slice(seen, offset));
    seen = offset;
    return bytes;
  };
  return findHighlights(text, { query, languages, language }, highlightsMax).map(({ start, end }) => ({
    start,
    end,
    startByte: byteAt(start),
    endByte: byteAt(end),
  }));
}

function byPlace<Row extends { sourceId: string; ordinal: number }>(rows: Row[]): Map<string, Row> {
  return new Map(rows.map((row) => [keyOf(row), row]));
}

function keyOf({ sourceId, ordinal }: { sourceId: string; ordinal: number }): string {
  return `${sourceId}/${ordinal}`;
}
