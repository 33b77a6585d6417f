import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from '../../src/db/database.ts';

type Line = { _id: string; title?: string; text: string };
export type Query = { id: string; text: string };
export type Text = { id: string; title: string; text: string };
/** The relevant documents of a query, with their gains. */
export type Gains = ReadonlyMap<string, number>;
export type Collection = { corpus: Text[]; queries: Query[]; relevant: ReadonlyMap<string, Gains> };

/** Reads a collection in BEIR's layout. */
export function readCollection(directory: string): Collection {
  const readLines = (name: string) =>
    readFileSync(join(directory, name), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);
  const relevant = new Map<string, Map<string, number>>();
  for (const line of readFileSync(join(directory, 'qrels.tsv'), 'utf8').trim().split('\n').slice(1)) {
    const [query = '', document = '', score = '0'] = line.split('\t');
    const known = relevant.get(query) ?? new Map<string, number>();
    relevant.set(query, known.set(document, Number(score)));
  }
  return {
    relevant,
    // If a document consists only of a title, the title is its text.
    corpus: readLines('corpus.jsonl').map(({ _id, title = '', text }) => ({
      ...{ id: _id, title, text: text.trim() === '' ? title : text },
    })),
    queries: readLines('queries.jsonl')
      .map(({ _id, text }) => ({ id: _id, text }))
      .filter(({ id }) => relevant.has(id)),
  };
}

/** nDCG@10 with the given gains and a discount of log2(rank + 1). */
export function ndcg(gains: Gains, found: string[]): number {
  const sum = (values: number[]) => values.reduce((total, gain, i) => total + gain / Math.log2(i + 2), 0);
  const ideal = [...gains.values()].sort((a, b) => b - a).slice(0, 10);
  return sum(found.slice(0, 10).map((id) => gains.get(id) ?? 0)) / sum(ideal);
}

/** The documents of a collection as a batch of an ingestion. */
export function itemsOf(texts: readonly Text[]) {
  return texts.map(({ id, title, text }) => ({
    content: { data: text },
    ...(title === '' ? {} : { title }),
    metadata: { id },
  }));
}

/**
 * PostgreSQL's own full text: documents with any word of the query, ranked by one of its functions.
 * @param normalization 0 ignores how long a document is, 1 divides by the logarithm of its length
 */
export async function searchWithPostgres(
  db: Database,
  text: string,
  rank: 'ts_rank' | 'ts_rank_cd',
  normalization: number,
): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    with q as (select replace(plainto_tsquery('english', ${text})::text, '&', '|')::tsquery as query)
    select id from bare_texts, q where words @@ query
    order by ${db(rank)}(words, query, ${normalization}::integer) desc limit 100`;
  return rows.map((row) => row.id);
}
