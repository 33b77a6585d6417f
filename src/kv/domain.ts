import type { Database } from '../db/database.ts';
import type { Domain } from '../domain.ts';
import { createKvService, type KvService } from './service.ts';
import { kvSweepJob, sweepKv } from './sweep.ts';
import { createKvWatch, type KvWatch, kvTopic } from './watch.ts';
import type { KvLimits } from './writes.ts';

/*
 * Small strings under keys, for each user.
 * - `paths.ts` decodes a key from a path, `keys.ts` checks it; `owner.ts` says whose entries a caller uses.
 * - `service.ts` reads and writes single entries, `lists.ts` reads many; with `shared-statements.ts`, concurrent requests
 *   share statements.
 * - `precondition.ts` and `tag.ts` make writes conditional by `If-Match`; `run-batch.ts` changes several entries in one
 *   transaction, in which `batch.ts` computes what the operations make of them.
 * - `watch.ts` streams changes from a log that a trigger writes while somebody watches; `sweep.ts` deletes expired entries.
 */

type KvDeps = { db: Database; limits: KvLimits; streamSecondsMax: number };

export function createKv({ db, limits, streamSecondsMax }: KvDeps): Domain<KvService> & { watch: KvWatch } {
  const watch = createKvWatch({ db, streamSecondsMax });
  return {
    service: createKvService({ limits }),
    watch,
    tasks: { [kvSweepJob.task]: () => sweepKv(db) },
    recurring: [kvSweepJob],
    streams: { [kvTopic]: watch.source },
  };
}
