import { itemsOf } from '../retrieval/collection.ts';
import { startBenchServer } from '../support.ts';
import { ownVersion, type SearchPeer } from './row.ts';

/** Both modes, over HTTP with the default settings and the built-in embedder. */
export async function startQuarrySearch(): Promise<SearchPeer> {
  const server = await startBenchServer();
  const source = await server.makeSource();
  const path = `/api/v1/knowledge_sources/${source}`;
  type Found = { data: { metadata: { id: string } }[] };
  return {
    async add(texts) {
      for (let from = 0; from < texts.length; from += 100)
        await server.finished(
          await server.post(`${path}/ingest/batch`, { items: itemsOf(texts.slice(from, from + 100)) }),
        );
      await server.learnAll();
    },
    searches: ['fulltext', 'hybrid'].map((mode) => ({
      program: `Quarry, ${mode}`,
      version: ownVersion,
      guarantees: 'durable; apps and readers separated; passages with their place; HTTP',
      async search(query) {
        // Passages of one document are separate results.
        const { data } = await server.post<Found>(`${path}/search`, { query, mode, max_results: 20 });
        return data.map((hit) => hit.metadata.id);
      },
    })),
    close: () => server.close(),
  };
}
