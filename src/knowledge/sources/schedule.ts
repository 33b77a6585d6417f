import type { Database } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IngestService } from '../ingestion/service.ts';
import { dueAt } from './configuration.ts';
import { listDueSources, setNextPull } from './store.ts';

const sourcesBatch = 50;

/** Starts the pulls that are due. */
export async function startDuePulls(db: Database, clock: Clock, ingestions: IngestService): Promise<void> {
  for (;;) {
    const due = await db.begin(async (tx) => {
      const rows = await listDueSources(tx, clock.now(), sourcesBatch);
      for (const row of rows)
        await setNextPull(tx, row.appId, row.id, dueAt(row.type, row.state, row.payload, clock.now()));
      return rows;
    });
    for (const source of due) await ingestions.pullDue(source);
    if (due.length < sourcesBatch) return;
  }
}
