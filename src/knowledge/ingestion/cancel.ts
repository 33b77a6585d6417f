import type { Db } from '../../db/database.ts';
import { itemMetadata } from './run.ts';
import * as store from './store.ts';
import { launch } from './workflow.ts';

/** Cancels an ingestion: its pending items fail as cancelled. One that has ended stays unchanged. */
export async function cancelIngestion(db: Db, appId: string, id: string): Promise<void> {
  await db.begin(async (tx) => {
    const ingestion = await store.lockUnfinished(tx, appId, id);
    if (ingestion === undefined) return;
    const error = { code: 'cancelled', message: 'The ingestion was cancelled.' };
    const items = (await store.listItems(tx, appId, id)).map((item) => ({
      index: item.ordinal,
      ...itemMetadata(item.state === 'pending' ? { ...item, result: { error } } : item),
    }));
    await store.finishIngestion(tx, appId, id, {
      status: 'failed',
      error,
      metadata: { items },
      stats: ingestion.stats,
    });
    const next = await store.promoteQueued(tx, appId, ingestion.sourceId);
    if (next !== undefined) await launch(tx, appId, ingestion.sourceId, next);
  });
}
