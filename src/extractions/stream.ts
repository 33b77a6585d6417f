import type { Db } from '../db/database.ts';
import type { StreamSource } from '../http/streams/stream.ts';
import type { Snapshot } from '../http/streams/versions.ts';
import { filterExisting } from '../tenancy/visible.ts';
import { presentSummary } from './present.ts';
import { filterVisibleExtractions, listExtractionsById } from './store.ts';

/** Loads extractions for event streams without their outputs, which may be thousands. */
export function extractionStream(deps: { db: Db }): StreamSource {
  return {
    event: 'extraction_update',
    async load(appId, ids): Promise<Snapshot[]> {
      const rows = await listExtractionsById(deps.db, appId, ids);
      return rows.map((row) => ({
        id: row.id,
        version: row.version,
        data: presentSummary(row),
        ended: row.state !== 'running',
      }));
    },
    filterExisting: (resources) => filterExisting(deps.db, 'extractions', resources),
    filterVisible: (caller, ids) => filterVisibleExtractions(deps.db, caller, ids),
  };
}
