/**
 * How well search finds, through the API: nDCG@10 of each mode on a collection in BEIR's layout (corpus.jsonl,
 * queries.jsonl, qrels.tsv), beside PostgreSQL's own ts_rank_cd on the same texts.
 *
 *   node bench/retrieval.ts DIRECTORY
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startBenchServer } from './support.ts';

type Line = { _id: string; title?: string; text: string };

const directory = process.argv[2];
if (directory === undefined) throw new Error('Name the directory of a collection.');
const readLines = (name: string) =>
  readFileSync(join(directory, name), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
const corpus = readLines('corpus.jsonl');
const queries = readLines('queries.jsonl');
const relevant = new Map<string, Map<string, number>>();
for (const line of readFileSync(join(directory, 'qrels.tsv'), 'utf8').trim().split('\n').slice(1)) {
  const [query = '', document = '', score = '0'] = line.split('\t');
  const known = relevant.get(query) ?? new Map<string, number>();
  relevant.set(query, known.set(document, Number(score)));
}

/** nDCG@10 with gains as given and a discount of log2(rank + 1), averaged over the queries that have judgements. */
function score(runs: Map<string, string[]>): number {
  let sum = 0;
  for (const [query, gains] of relevant) {
    const found = (runs.get(query) ?? []).slice(0, 10);
    const gained = found.reduce((total, id, i) => total + (gains.get(id) ?? 0) / Math.log2(i + 2), 0);
    const ideal = [...gains.values()].sort((a, b) => b - a).slice(0, 10);
    sum += gained / ideal.reduce((total, gain, i) => total + gain / Math.log2(i + 2), 0);
  }
  return sum / relevant.size;
}

const server = await startBenchServer();
try {
  const source = await server.makeSource();
  for (let from = 0; from < corpus.length; from += 100) {
    const items = corpus.slice(from, from + 100).map((line) => ({
      content: { data: line.title ? `${line.title}\n\n${line.text}` : line.text },
      metadata: { id: line._id },
    }));
    await server.finished(await server.post(`/api/v1/knowledge_sources/${source}/ingest/batch`, { items }));
  }
  for (const mode of ['fulltext', 'vector', 'hybrid']) {
    const runs = new Map<string, string[]>();
    for (const query of queries) {
      const answer = await server.post<{ data: { metadata: { id: string } }[] }>(
        `/api/v1/knowledge_sources/${source}/search`,
        { query: query.text, mode, max_results: 30 },
      );
      runs.set(query._id, [...new Set(answer.data.map((hit) => hit.metadata.id))]);
    }
    console.log(`${mode.padEnd(12)} nDCG@10 ${score(runs).toFixed(4)}`);
  }
  const { db } = server;
  await db`create table bare_texts as select d.metadata ->> 'id' as id, to_tsvector('english', convert_from(t.content, 'UTF8')) as words
    from knowledge_documents d join knowledge_texts t on t.app_id = d.app_id and t.document_id = d.id`;
  const runs = new Map<string, string[]>();
  for (const query of queries) {
    const rows = await db<{ id: string }[]>`
      with q as (select replace(plainto_tsquery('english', ${query.text})::text, '&', '|')::tsquery as query)
      select id from bare_texts, q where words @@ query order by ts_rank_cd(words, query) desc limit 30`;
    runs.set(
      query._id,
      rows.map((row) => row.id),
    );
  }
  console.log(`ts_rank_cd   nDCG@10 ${score(runs).toFixed(4)}`);
} finally {
  await server.close();
}
