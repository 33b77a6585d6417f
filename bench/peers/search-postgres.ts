import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '../../src/db/database.ts';
import { startEmbeddedPostgres } from '../../src/db/embedded.ts';
import { createLogger } from '../../src/lib/log.ts';
import { searchWithPostgres } from '../retrieval/collection.ts';
import type { SearchPeer } from './row.ts';

/** The embedded server's own full text, with the settings that rank best on one of the collections each. */
export async function startPostgres(): Promise<SearchPeer> {
  const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
  const embedded = await startEmbeddedPostgres({ dataDir, log: createLogger('error') });
  const db = openDatabase(embedded.address, { poolSize: 1, applicationName: 'bench' });
  const [server] = await db<{ version: string }[]>`select current_setting('server_version') as version`;
  return {
    async add(texts) {
      await db`create table bare_texts (id text primary key, words tsvector not null)`;
      for (const { id, title, text } of texts)
        await db`insert into bare_texts select ${id}, to_tsvector('english', concat_ws(' ', ${title}::text, ${text}::text))`;
      await db`create index on bare_texts using gin (words)`;
      await db`vacuum analyze bare_texts`;
    },
    searches: [0, 1].map((normalization) => ({
      program: `PostgreSQL, ts_rank with normalization ${normalization}`,
      version: server?.version ?? '',
      guarantees: 'durable; tenants are up to the program; GIN index, title and text in one vector, any word; SQL',
      search: async (query) => (await searchWithPostgres(db, query, 'ts_rank', normalization)).slice(0, 10),
    })),
    async close() {
      await db.end();
      await embedded.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
