import { createHash, hash } from 'node:crypto';
import type { Static } from 'typebox';
import type { Db, Transaction } from '../../db/database.ts';
import { canonicalJson } from '../../lib/canonical-json.ts';
import { AppError, invalidField } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { emptyContent, readContent, requireDocumentFile } from '../ingestion/content.ts';
import type { syncBatchSchema } from './schema.ts';
import { expiryOf, queueItems, requireActive, requireFence, type Step } from './state.ts';
import * as store from './store.ts';

type Body = Static<typeof syncBatchSchema>;
type Batch = { number: number; body: Body; items: store.NewSyncItem[]; digest: Buffer };

const batchesMax = 100_000;
/** Beyond these, a batch is refused until some have been indexed. */
const pendingItemsMax = 2_000;
const pendingBytesMax = 64 * 1024 * 1024;

export async function readBatch(db: Db, caller: Caller, number: number, body: Body): Promise<Batch> {
  checkNames(body);
  const items = await readItems(db, caller, body);
  return { number, body, items, digest: digestOf(body, items) };
}

/** Stores a batch with its cursor. A repeated one changes nothing. */
export async function storeBatch(
  { tx, sync, state }: Step,
  { number, body, items, digest }: Batch,
  now: Date,
): Promise<void> {
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
  await store.insertBatch(tx, sync, { number, digest, items, position: state.nextPosition });
  const upserts = sync.upserts + (body.upserts?.length ?? 0);
  await store.updateSync(tx, sync, {
    ...sync,
    ...{ cursor, batches: number, upserts, expiresAt: expiryOf(sync, now) },
  });
  await store.updateState(tx, sync, {
    ...state,
    nextPosition: state.nextPosition + items.length,
    // A full sync that never completes must not change where a sync of changes begins.
    cursor: sync.mode === 'changes' ? cursor : state.cursor,
  });
  if (items.length > 0) await queueItems(tx, sync);
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
function checkNames({ upserts = [], deletes = [] }: Body): void {
  const seen = new Set<string>();
  const check = (name: string, field: string) => {
    if (seen.has(name)) throw invalidField(field, 'occurs twice in this batch');
    seen.add(name);
  };
  for (const [i, each] of upserts.entries()) check(each.external_id, `upserts.${i}.external_id`);
  for (const [i, each] of deletes.entries()) check(each.external_id, `deletes.${i}.external_id`);
}

async function readItems(db: Db, caller: Caller, { upserts = [], deletes = [] }: Body): Promise<store.NewSyncItem[]> {
  const items: store.NewSyncItem[] = [];
  for (const [i, each] of upserts.entries()) items.push(await readUpsert(db, caller, each, `upserts.${i}.`));
  for (const { external_id: externalId, order = null } of deletes)
    items.push({ ...emptyContent, externalId, externalOrder: order, isDeletion: true, sourceUrl: null });
  return items;
}

async function readUpsert(
  db: Db,
  caller: Caller,
  input: NonNullable<Body['upserts']>[number],
  at: string,
): Promise<store.NewSyncItem> {
  if ((input.content === undefined) === (input.file === undefined))
    throw invalidField(`${at}content`, 'exactly one of content and file is required');
  const item = {
    ...emptyContent,
    externalId: input.external_id,
    isDeletion: false,
    externalOrder: input.order ?? null,
    title: input.title ?? null,
    metadata: input.metadata ?? {},
    sourceUrl: input.source_url ?? null,
  };
  if (input.content) return { ...item, ...(await readContent(input.content, `${at}content.data`, caller.appId)) };
  return { ...item, fileId: await requireDocumentFile(db, caller, input.file ?? '', `${at}file`) };
}

/** The digest of what a batch says. The fence is not part of it: a resumed connector may repeat a batch. */
function digestOf({ cursor }: Body, items: store.NewSyncItem[]): Buffer {
  const digest = createHash('sha256');
  for (const { content, ...item } of items) {
    digest.update(`${canonicalJson(item)}\n${content === null ? '' : hash('sha256', content)}\n`);
  }
  return digest.update(canonicalJson({ cursor })).digest();
}
