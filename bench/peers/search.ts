import { basename } from 'node:path';
import { type Collection, ndcg, readCollection } from '../retrieval/collection.ts';
import { mean, percentile, type Row } from './row.ts';
import { startMiniSearch } from './search-minisearch.ts';
import { startOrama } from './search-orama.ts';
import { startPostgres } from './search-postgres.ts';
import { startQuarrySearch } from './search-quarry.ts';

const rounds = 2;

/** The ten best documents of each query, one query at a time. */
export async function measureSearch(directories: string[]): Promise<Row[]> {
  const rows = new Map<string, Row>();
  for (const start of [startQuarrySearch, startPostgres, startOrama, startMiniSearch])
    for (const directory of directories) {
      const collection = readCollection(directory);
      const peer = await start();
      try {
        await peer.add(collection.corpus);
        for (const { search, ...described } of peer.searches) {
          const row = rows.get(described.program) ?? { ...described, figures: {} };
          row.figures[basename(directory).toUpperCase()] = await score(search, collection);
          rows.set(described.program, row);
        }
      } finally {
        await peer.close();
      }
    }
  return [...rows.values()];
}

/** The first round of queries only warms up. */
async function score(search: (query: string) => Promise<string[]>, { queries, relevant }: Collection): Promise<string> {
  const times: number[] = [];
  const gained: number[] = [];
  for (let round = 0; round <= rounds; round++)
    for (const { id, text } of queries) {
      const startedAt = performance.now();
      const found = [...new Set(await search(text))];
      if (round > 0) times.push(performance.now() - startedAt);
      if (round === 0) gained.push(ndcg(relevant.get(id) ?? new Map(), found));
    }
  times.sort((a, b) => a - b);
  const [p50, p95] = [percentile(times, 0.5).toFixed(2), percentile(times, 0.95).toFixed(2)];
  return `nDCG@10 ${mean(gained).toFixed(3).slice(1)}, p50 ${p50} ms, p95 ${p95} ms`;
}
