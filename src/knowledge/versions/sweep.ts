import type { Database, Transaction } from '../../db/database.ts';
import { lockIndex, type SourceKey } from '../index/store.ts';
import * as store from './store.ts';

const sourcesBatch = 50;
const versionsBatch = 500;
/** Beyond this many old versions of an app, its oldest ones are deleted before their time. */
const versionsOfAppMax = 1_000_000;

/** Deletes versions whose time is over, in batches. Returns when none is left. */
export async function sweepVersions(db: Database, now: Date, appMax = versionsOfAppMax): Promise<void> {
  for (;;) {
    const sources = await store.listSourcesToForget(db, now, sourcesBatch);
    for (const key of sources) {
      await inBatches(db, key, (tx) => store.forgetVersions(tx, key, now, versionsBatch));
      await store.endVersions(db, key);
    }
    if (sources.length < sourcesBatch) break;
  }
  for (const { appId, total } of await store.listFullApps(db, appMax))
    for (const { until, ...key } of await store.findExcess(db, appId, total - appMax))
      await inBatches(db, key, (tx) => store.deleteVersionsUntil(tx, key, until, versionsBatch));
}

/** Repeats a deletion, each time with the index of the source locked, so that no writer adds a text that it deletes. */
async function inBatches(db: Database, key: SourceKey, step: (tx: Transaction) => Promise<number>): Promise<void> {
  for (;;) {
    const deleted = await db.begin(async (tx) => {
      await lockIndex(tx, key);
      return step(tx);
    });
    if (deleted < versionsBatch) return;
  }
}
