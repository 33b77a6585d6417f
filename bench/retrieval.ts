/**
 * How well search works, through the API: nDCG@10 and recall@100 of each mode on a collection in BEIR's layout
 * (corpus.jsonl, queries.jsonl, qrels.tsv), for whole queries and for their first two to four content words, each
 * with the gain over full text and the probability that such a gain is chance (paired randomisation test). Beside
 * them PostgreSQL's own ts_rank_cd on the same texts.
 *
 *   node bench/retrieval.ts DIRECTORY [--meanings]
 *
 * With `--meanings`, a model of meanings is the embedder. Its ranking is fused with what hybrid search finds without it,
 * with several weights: choose one on a collection, and read its gain on another.
 */
import { testPaired } from '../src/cli/client/measures.ts';
import { isStopTerm, readTokens } from '../src/content/terms.ts';
import { fuseRankings } from '../src/knowledge/search/fuse.ts';
import { type Gains, itemsOf, ndcg, type Query, readCollection, searchWithPostgres } from './retrieval/collection.ts';
import { startBenchServer } from './support.ts';

type Scores = { ndcg: number[]; recall: number[]; latencyMs: number[] };

const directory = process.argv[2];
if (directory === undefined) throw new Error('Name the directory of a collection.');
const { corpus, queries, relevant } = readCollection(directory);

function recall(gains: Gains, found: string[]): number {
  const wanted = [...gains].filter(([, gain]) => gain > 0).map(([id]) => id);
  return wanted.filter((id) => found.slice(0, 100).includes(id)).length / Math.max(1, wanted.length);
}

/** The first words of a query, as many as `words`, that are not stop words. */
function shorten(text: string, words: number): string {
  const meaningful = (text.match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => {
    const terms = readTokens(word, 'english');
    return terms.length > 0 && terms.every(({ term }) => !isStopTerm(term, 'english'));
  });
  return meaningful.slice(0, words).join(' ');
}

async function score(some: Query[], search: (text: string) => Promise<string[]>): Promise<Scores> {
  const scores: Scores = { ndcg: [], recall: [], latencyMs: [] };
  for (const { id, text } of some) {
    const start = performance.now();
    const found = [...new Set(await search(text))];
    scores.latencyMs.push(performance.now() - start);
    const gains: Gains = relevant.get(id) ?? new Map();
    scores.ndcg.push(ndcg(gains, found));
    scores.recall.push(recall(gains, found));
  }
  return scores;
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

function print(name: string, scores: Scores, base: Scores): void {
  const gain = mean(scores.ndcg) - mean(base.ndcg);
  const p95 = [...scores.latencyMs].sort((a, b) => a - b)[Math.floor(scores.latencyMs.length * 0.95)] ?? 0;
  console.log(
    `${name.padEnd(14)} nDCG@10 ${mean(scores.ndcg).toFixed(4)} (${gain < 0 ? '' : '+'}${gain.toFixed(4)}, p ${testPaired(scores.ndcg, base.ndcg).toFixed(3)})  R@100 ${mean(scores.recall).toFixed(4)}  p95 ${p95.toFixed(1)} ms`,
  );
}

const meanings = process.argv.includes('--meanings')
  ? await (await import('./retrieval/meanings.ts')).startMeanings()
  : undefined;
const server = await startBenchServer(meanings?.env);
try {
  const source = await server.makeSource();
  for (let from = 0; from < corpus.length; from += 100) {
    const items = itemsOf(corpus.slice(from, from + 100));
    await server.finished(await server.post(`/api/v1/knowledge_sources/${source}/ingest/batch`, { items }));
  }
  const unembedded = () => server.db`select from knowledge_documents where embedding_model is null limit 1`;
  while (meanings && (await unembedded()).count > 0) await new Promise((resolve) => setTimeout(resolve, 1_000));
  const [model] = await server.learnAll();
  console.log(`${corpus.length} documents, ${queries.length} queries; model ${JSON.stringify(model)}`);
  const ask = async (query: string, mode: string) => {
    const path = `/api/v1/knowledge_sources/${source}/search`;
    type Found = { data: { metadata: { id: string } }[] };
    const { data } = await server.post<Found>(path, { query, mode, max_results: 100 });
    return [...new Set(data.map((hit) => hit.metadata.id))];
  };
  if (meanings) await compareWeights(ask, meanings);
  for (const words of meanings ? [] : [undefined, 2, 3, 4]) {
    const some = words === undefined ? queries : queries.map(({ id, text }) => ({ id, text: shorten(text, words) }));
    console.log(words === undefined ? 'whole queries' : `their first ${words} content words`);
    let base: Scores | undefined;
    for (const mode of ['fulltext', 'vector', 'hybrid']) {
      const scores = await score(some, (query) => ask(query, mode));
      base ??= scores;
      print(mode, scores, base);
    }
    if (words !== undefined || !base) continue;
    const { db } = server;
    await db`create table bare_texts as select d.metadata ->> 'id' as id, to_tsvector('english', concat_ws(' ', d.title, convert_from(t.content, 'UTF8'))) as words
      from knowledge_documents d join knowledge_texts t on t.app_id = d.app_id and t.document_id = d.id`;
    const bare = await score(some, (query) => searchWithPostgres(db, query, 'ts_rank_cd', 0));
    print('ts_rank_cd', bare, base);
  }
} finally {
  await server.close();
  meanings?.close();
}

/** Hybrid search without the model, the model alone, and both with several weights of the model. */
async function compareWeights(
  ask: (query: string, mode: string) => Promise<string[]>,
  service: { isDown: boolean },
): Promise<void> {
  const without = new Map<string, string[]>();
  const byMeaning = new Map<string, string[]>();
  service.isDown = true;
  const base = await score(queries, async (query) => remember(without, query, await ask(query, 'hybrid')));
  service.isDown = false;
  print('without', base, base);
  print(
    'model alone',
    await score(queries, async (query) => remember(byMeaning, query, await ask(query, 'vector'))),
    base,
  );
  const rowOf = new Map(corpus.map(({ id }, row) => [id, row]));
  const rowsOf = (ids: string[] = []) => ids.map((id) => rowOf.get(id) ?? 0);
  for (const weight of [0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2]) {
    const fuse = async (query: string) =>
      fuseRankings(rowsOf(without.get(query)), [{ rows: rowsOf(byMeaning.get(query)), weight }]).map(
        ({ row }) => corpus[row]?.id ?? '',
      );
    print(`weight ${weight}`, await score(queries, fuse), base);
  }
  print('hybrid search', await score(queries, (query) => ask(query, 'hybrid')), base);
}

function remember(found: Map<string, string[]>, query: string, ids: string[]): string[] {
  found.set(query, ids);
  return ids;
}
