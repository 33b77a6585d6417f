import type { Db } from '../../db/database.ts';
import type { StreamSource } from '../../http/streams/stream.ts';
import type { Snapshot } from '../../http/streams/versions.ts';
import { presentIngestion } from '../present.ts';
import { filterVisibleIngestions, listIngestionsById } from './store.ts';

/** The kind of resource in streams of ingestions. The triggers of knowledge_ingestions announce it. */
export const ingestionTopic = 'ingestion';

/** Loads ingestions for event streams. */
export function ingestionStream(deps: { db: Db }): StreamSource {
  return {
    event: 'ingestion_update',
    async load(appId, ids): Promise<Snapshot[]> {
      const rows = await listIngestionsById(deps.db, appId, ids);
      return rows.map((row) => ({
        id: row.id,
        version: row.version,
        data: presentIngestion(row),
        ended: row.status === 'succeeded' || row.status === 'failed',
      }));
    },
    hasGrants: true,
    filterVisible: (caller, ids) => filterVisibleIngestions(deps.db, caller, ids),
  };
}
