import { createHash, hash } from 'node:crypto';
import type { Static } from 'typebox';
import type { Database, Db, Transaction } from '../../db/database.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import { taskNames } from '../../jobs/task-names.ts';
import { canonicalJson } from '../../lib/canonical-json.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError, found, invalidField, notFound } from '../../lib/errors.ts';
import { formatId, newUuid } from '../../lib/ids.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { pathId } from '../../tenancy/references.ts';
import { lockSource, type SourceKey } from '../index/store.ts';
import { readContent, requireDocumentFile } from '../ingestion/content.ts';
import type { AddKnowledgeJob } from '../ingestion/deps.ts';
import { findCreatableKind } from '../kinds/index.ts';
import { checkMetadata, type SourceService } from '../sources/service.ts';
import {
  type syncAbortSchema,
  type syncBatchSchema,
  type syncCompleteSchema,
  type syncCreateSchema,
  syncSecondsDefault,
} from './schema.ts';
import * as store from './store.ts';

type Batch = Static<typeof syncBatchSchema>;

/** Ended syncs of a source that can still be read. */
const syncsKept = 100;
const batchesMax = 100_000;
/** Beyond these, a batch is refused until some have been indexed. */
const pendingItemsMax = 2_000;
const pendingBytesMax = 64 * 1024 * 1024;

type SyncDeps = { db: Database; clock: Clock; sources: SourceService; addJob: AddKnowledgeJob };

/** Runs of connectors: programs that send documents of other systems, in batches that are stored before they are indexed. */
export function createSyncService({ db, clock, sources, addJob }: SyncDeps) {
  const expiry = (seconds: number) => new Date(clock.now().getTime() + seconds * 1_000);

  async function view(caller: Caller, id: string): Promise<store.SyncView> {
    return found(await store.findSync(db, caller, id));
  }

  /** The sync, if the caller may change its source. */
  async function getForChange(caller: Caller, text: string): Promise<store.SyncView> {
    const sync = await view(caller, pathId('sync', text));
    await sources.getForChange(db, caller, formatId('source', sync.sourceId), 'update');
    return sync;
  }

  /** Runs a step with the source's syncs and this one locked. */
  function change<T>(
    { appId, sourceId, id }: store.SyncRow,
    step: (tx: Transaction, sync: store.SyncRow, state: store.SyncState) => Promise<T>,
  ): Promise<T> {
    return db.begin(async (tx) => {
      await lockSource(tx, { appId, sourceId });
      const state = await lockStateOf(tx, { appId, sourceId });
      const sync = found(await store.lockSync(tx, appId, id));
      return step(tx, sync, state);
    }) as Promise<T>;
  }

  return {
    /** Starts a sync, or resumes the expired one of the same mode. */
    async start(caller: Caller, sourceText: string, input: Static<typeof syncCreateSchema>): Promise<store.SyncView> {
      const source = await sources.getForChange(db, caller, sourceText, 'update');
      if (!findCreatableKind(source.type)?.pushable)
        throw invalidField('mode', `a source of type ${source.type} is not filled by connectors`);
      const key = { appId: source.appId, sourceId: source.id };
      if (!(await store.seesAllDocuments(db, caller, key))) throw notFound();
      const ttlSeconds = input.expires_in_seconds ?? syncSecondsDefault;
      const id = await db.begin(async (tx) => {
        await lockSource(tx, key);
        const state = await lockStateOf(tx, key);
        const fence = state.fence + 1;
        const live = await store.findLive(tx, key);
        if (live) requireReplaceable(live, input.take_over === true, clock.now());
        await store.updateState(tx, key, { ...state, fence });
        if (live?.mode === input.mode) {
          const resumed = { ...live, fence, isResumed: true, ttlSeconds, expiresAt: expiry(ttlSeconds) };
          await store.updateSync(tx, live, resumed);
          return live.id;
        }
        if (live) await store.endSync(tx, key.appId, live.id, 'aborted');
        const cursor = input.mode === 'changes' ? state.cursor : null;
        const sync = { ...key, id: newUuid(), mode: input.mode, fence, cursor, ttlSeconds };
        await store.insertSync(tx, { ...sync, expiresAt: expiry(ttlSeconds) });
        await store.deleteOldSyncs(tx, key, syncsKept);
        return sync.id;
      });
      return view(caller, id);
    },

    now: () => clock.now(),

    get: (caller: Caller, text: string) => view(caller, pathId('sync', text)),

    async list(caller: Caller, sourceText: string, page: PageRequest): Promise<[store.SyncView[], number]> {
      const source = await sources.get(db, caller, sourceText);
      const key = { appId: source.appId, sourceId: source.id };
      return (await store.seesAllDocuments(db, caller, key)) ? store.listSyncs(db, key, page) : [[], 0];
    },

    /** Stores a batch with its cursor. A repeated one changes nothing. */
    async putBatch(caller: Caller, text: string, number: number, body: Batch): Promise<store.SyncView> {
      const given = await getForChange(caller, text);
      checkNames(body);
      const items = await readItems(db, caller, body);
      const digest = digestOf(body, items);
      await change(given, async (tx, sync, state) => {
        requireFence(sync, body.fence);
        requireActive(sync);
        if (number <= sync.batches) {
          const before = await store.findBatchDigest(tx, sync.appId, sync.id, number);
          if (before?.equals(digest)) return;
          throw new AppError('conflict', `Batch ${number} was stored with other contents.`, {
            details: { next_batch: sync.batches + 1 },
          });
        }
        if (number > sync.batches + 1)
          throw new AppError('conflict', `Batch ${sync.batches + 1} is missing.`, {
            details: { next_batch: sync.batches + 1 },
          });
        if (number > batchesMax)
          throw new AppError('conflict', `A sync can have at most ${batchesMax} batches: complete it.`);
        await requireIndexed(tx, sync);
        const cursor = body.cursor === undefined ? sync.cursor : body.cursor;
        const ttl = { ttlSeconds: sync.ttlSeconds, expiresAt: expiry(sync.ttlSeconds) };
        await store.insertBatch(tx, sync, { number, digest, items, position: state.nextPosition });
        const upserts = sync.upserts + (body.upserts?.length ?? 0);
        await store.updateSync(tx, sync, { ...sync, ...ttl, cursor, batches: number, upserts });
        await store.updateState(tx, sync, {
          ...state,
          nextPosition: state.nextPosition + items.length,
          // A full sync that never completes must not change where a sync of changes begins.
          cursor: sync.mode === 'changes' ? cursor : state.cursor,
        });
        if (items.length > 0) await queueItems(tx, addJob, sync);
      });
      return view(caller, given.id);
    },

    /** Ends the sending. What was sent is still indexed, then a full sync deletes what was not sent. */
    async complete(caller: Caller, text: string, body: Static<typeof syncCompleteSchema>): Promise<store.SyncView> {
      const given = await getForChange(caller, text);
      await change(given, async (tx, sync, state) => {
        requireFence(sync, body.fence);
        if (sync.status === 'completing' || sync.status === 'succeeded') return;
        requireActive(sync);
        if (body.batches !== sync.batches || body.documents !== sync.upserts)
          throw new AppError('conflict', 'The sync has another number of batches or documents.', {
            details: { batches: sync.batches, documents: sync.upserts },
          });
        if (sync.mode === 'full') {
          const unseen = await store.countUnseen(tx, sync, sync.id);
          if (unseen * 2 > sync.documentsBefore && body.confirm_deletions !== true)
            throw new AppError(
              'conflict',
              'Completing would delete more than half of the source. Confirm it with confirm_deletions.',
              { details: { deletions: unseen, documents: sync.documentsBefore } },
            );
          await store.updateState(tx, sync, { ...state, cursor: sync.cursor });
        }
        await store.updateSync(tx, sync, { ...sync, status: 'completing' });
        await queueItems(tx, addJob, sync);
      });
      return view(caller, given.id);
    },

    /** Ends a sync without deletions. Its batches stay, and what they hold is still indexed. */
    async abort(caller: Caller, text: string, body: Static<typeof syncAbortSchema>): Promise<store.SyncView> {
      const given = await getForChange(caller, text);
      await change(given, async (tx, sync) => {
        requireFence(sync, body.fence);
        if (sync.status === 'aborted') return;
        requireActive(sync);
        await store.endSync(tx, sync.appId, sync.id, 'aborted');
      });
      return view(caller, given.id);
    },
  };
}

/** Queues one job that applies the items of a source, however often it is called. */
export function queueItems(db: Db, addJob: AddKnowledgeJob, { appId, sourceId }: SourceKey, runAt?: Date) {
  const key = `${taskNames.applySyncs}/${sourceId}`;
  return addJob(db, taskNames.applySyncs, { appId, sourceId }, runAt === undefined ? { key } : { key, runAt });
}

/** 404 if the source has just been deleted. */
async function lockStateOf(tx: Transaction, key: SourceKey): Promise<store.SyncState> {
  const rows = await tx`select 1 from knowledge_sources where app_id = ${key.appId} and id = ${key.sourceId}`;
  if (rows.count === 0) throw notFound();
  return store.lockState(tx, key);
}

function requireReplaceable(live: store.SyncRow, isTakenOver: boolean, now: Date): void {
  if (live.status === 'completing')
    throw new AppError('conflict', 'The last sync of this source is still being completed.', {
      details: { sync: formatId('sync', live.id) },
    });
  if (isTakenOver || live.expiresAt <= now) return;
  throw new AppError('conflict', 'Another sync of this source is active.', {
    details: { sync: formatId('sync', live.id), expires_at: live.expiresAt.toISOString() },
  });
}

/** Without a fence, it is the connector that started the sync, and no other has resumed it. */
function requireFence(sync: store.SyncRow, fence: number | undefined): void {
  if (fence === undefined ? !sync.isResumed : fence === sync.fence) return;
  throw new AppError('conflict', 'Another connector has resumed the sync.', { details: { fence: sync.fence } });
}

function requireActive({ status }: store.SyncRow): void {
  if (status !== 'active') throw new AppError('conflict', 'The sync has ended.', { details: { status } });
}

async function requireIndexed(tx: Transaction, sync: store.SyncRow): Promise<void> {
  const { items, bytes } = await store.measurePending(tx, sync);
  if (items < pendingItemsMax && bytes < pendingBytesMax) return;
  throw new AppError('rate_limited', 'Earlier batches are still being indexed. Send this one again in a moment.', {
    details: { pending: items },
    headers: { 'retry-after': '1' },
  });
}

/** Each document occurs once in a batch, because the order within a batch would decide otherwise. */
function checkNames({ upserts = [], deletes = [] }: Batch): void {
  const seen = new Set<string>();
  const check = (name: string, field: string) => {
    if (seen.has(name)) throw invalidField(field, 'occurs twice in this batch');
    seen.add(name);
  };
  for (const [i, each] of upserts.entries()) check(each.external_id, `upserts.${i}.external_id`);
  for (const [i, each] of deletes.entries()) check(each.external_id, `deletes.${i}.external_id`);
}

async function readItems(db: Db, caller: Caller, { upserts = [], deletes = [] }: Batch): Promise<store.NewSyncItem[]> {
  const items: store.NewSyncItem[] = [];
  for (const [i, each] of upserts.entries()) items.push(await readUpsert(db, caller, each, `upserts.${i}.`));
  for (const { external_id: externalId, order = null } of deletes)
    items.push({ ...emptyItem, externalId, externalOrder: order, isDeletion: true });
  return items;
}

async function readUpsert(
  db: Db,
  caller: Caller,
  input: NonNullable<Batch['upserts']>[number],
  at: string,
): Promise<store.NewSyncItem> {
  checkMetadata(input.metadata, `${at}metadata`);
  if ((input.content === undefined) === (input.file === undefined))
    throw invalidField(`${at}content`, 'exactly one of content and file is required');
  const item = {
    ...emptyItem,
    externalId: input.external_id,
    externalOrder: input.order ?? null,
    title: input.title ?? null,
    metadata: input.metadata ?? {},
    sourceUrl: input.source_url ?? null,
  };
  if (input.content) return { ...item, ...(await readContent(input.content, `${at}content.data`, caller.appId)) };
  return { ...item, fileId: await requireDocumentFile(db, caller, input.file ?? '', `${at}file`) };
}

const emptyItem: store.NewSyncItem = {
  externalId: '',
  externalOrder: null,
  isDeletion: false,
  fileId: null,
  content: null,
  isText: false,
  contentType: null,
  filename: null,
  title: null,
  metadata: null,
  sourceUrl: null,
};

/** The digest of what a batch says. The fence is not part of it: a resumed connector may repeat a batch. */
function digestOf({ cursor }: Batch, items: store.NewSyncItem[]): Buffer {
  const digest = createHash('sha256');
  for (const { content, ...item } of items) {
    digest.update(`${canonicalJson(item)}\n${content === null ? '' : hash('sha256', content)}\n`);
  }
  return digest.update(canonicalJson({ cursor })).digest();
}
