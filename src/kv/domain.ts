import type { Database } from '../db/database.ts';
import type { Domain } from '../domain.ts';
import { createKvService, type KvLimits, type KvService } from './service.ts';
import { kvSweepJob, sweepKv } from './sweep.ts';
import { createKvWatch, type KvWatch, kvTopic } from './watch.ts';

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
