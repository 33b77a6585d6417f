import type { Db } from '../db/database.ts';
import type { Snapshot, StreamSource } from '../http/sse.ts';
import { presentSummary } from './present.ts';
import { summarise } from './service.ts';
import { filterVisibleExtractions, listExtractionsById } from './store.ts';

/** Loads extractions for event streams: without their outputs, which may be thousands. */
export function extractionStream(deps: { db: Db }): StreamSource {
  return {
    event: 'extraction_update',
    async load(appId, ids): Promise<Snapshot[]> {
      const rows = await listExtractionsById(deps.db, appId, ids);
      const summaries = await summarise(deps.db, appId, rows);
      return summaries.map((summary) => ({
        id: summary.row.id,
        version: summary.row.version,
        data: presentSummary(summary),
        ended: summary.row.state !== 'running',
      }));
    },
    filterVisible: (caller, ids) => filterVisibleExtractions(deps.db, caller, ids),
  };
}
