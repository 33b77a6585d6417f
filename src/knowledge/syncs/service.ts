import type { Static } from 'typebox';
import type { Database } from '../../db/database.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import type { Clock } from '../../lib/clock.ts';
import { found, invalidField, notFound } from '../../lib/errors.ts';
import { formatId } from '../../lib/ids.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { pathId } from '../../tenancy/references.ts';
import { findCreatableKind } from '../kinds/index.ts';
import type { SourceService } from '../sources/service.ts';
import { readBatch, storeBatch } from './batch.ts';
import { completeSync } from './complete.ts';
import type { syncAbortSchema, syncBatchSchema, syncCompleteSchema, syncCreateSchema } from './schema.ts';
import { startSync } from './start.ts';
import { lockStateOf, requireActive, requireFence, type Step } from './state.ts';
import * as store from './store.ts';

type SyncDeps = { db: Database; clock: Clock; sources: SourceService };

/** Runs of connectors: programs that send documents of other systems, in batches that are stored before they are indexed. */
export function createSyncService({ db, clock, sources }: SyncDeps) {
  async function view(caller: Caller, id: string): Promise<store.SyncView> {
    return found(await store.findSync(db, caller, id));
  }

  /** The sync, if the caller may change its source. */
  async function getForChange(caller: Caller, text: string): Promise<store.SyncView> {
    const sync = await view(caller, pathId('sync', text));
    await sources.getForChange(db, caller, formatId('source', sync.sourceId), 'update');
    return sync;
  }

  return {
    /** Starts a sync, or resumes the expired one of the same mode. */
    async start(caller: Caller, sourceText: string, input: Static<typeof syncCreateSchema>): Promise<store.SyncView> {
      const source = await sources.getForChange(db, caller, sourceText, 'update');
      if (!findCreatableKind(source.type)?.pushable)
        throw invalidField('mode', `a source of type ${source.type} is not filled by connectors`);
      const key = { appId: source.appId, sourceId: source.id };
      if (!(await store.seesAllDocuments(db, caller, key))) throw notFound();
      return view(caller, await db.begin((tx) => startSync(tx, key, input, clock.now())));
    },

    now: () => clock.now(),

    get: (caller: Caller, text: string) => view(caller, pathId('sync', text)),

    async list(caller: Caller, sourceText: string, page: PageRequest): Promise<[store.SyncView[], number]> {
      const source = await sources.get(db, caller, sourceText);
      const key = { appId: source.appId, sourceId: source.id };
      return (await store.seesAllDocuments(db, caller, key)) ? store.listSyncs(db, key, page) : [[], 0];
    },

    /** Stores a batch with its cursor. A repeated one changes nothing. */
    async putBatch(
      caller: Caller,
      text: string,
      number: number,
      body: Static<typeof syncBatchSchema>,
    ): Promise<store.SyncView> {
      const given = await getForChange(caller, text);
      const batch = await readBatch(db, caller, number, body);
      await change(db, given, (step) => storeBatch(step, batch, clock.now()));
      return view(caller, given.id);
    },

    /** Ends the sending. What was sent is still indexed, then a full sync deletes what was not sent. */
    async complete(caller: Caller, text: string, body: Static<typeof syncCompleteSchema>): Promise<store.SyncView> {
      const given = await getForChange(caller, text);
      await change(db, given, (step) => completeSync(step, body));
      return view(caller, given.id);
    },

    /** Ends a sync without deletions. Its batches stay, and what they hold is still indexed. */
    async abort(caller: Caller, text: string, body: Static<typeof syncAbortSchema>): Promise<store.SyncView> {
      const given = await getForChange(caller, text);
      await change(db, given, async ({ tx, sync }) => {
        requireFence(sync, body.fence);
        if (sync.status === 'aborted') return;
        requireActive(sync);
        await store.endSync(tx, sync.appId, sync.id, 'aborted');
      });
      return view(caller, given.id);
    },
  };
}

/** Runs a step with the source's syncs and this one locked. */
function change(
  db: Database,
  { appId, sourceId, id }: store.SyncRow,
  step: (given: Step) => Promise<void>,
): Promise<void> {
  return db.begin(async (tx) => {
    const state = await lockStateOf(tx, { appId, sourceId });
    const sync = found(await store.lockSync(tx, appId, id));
    await step({ tx, sync, state });
  });
}
