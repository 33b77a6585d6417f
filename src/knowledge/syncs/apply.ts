import { hash } from 'node:crypto';
import { ParseError } from '../../content/parse/types.ts';
import type { Transaction } from '../../db/database.ts';
import { findFile } from '../../files/store.ts';
import { keepLease } from '../../jobs/lease.ts';
import { canonicalJson } from '../../lib/canonical-json.ts';
import { newUuid } from '../../lib/ids.ts';
import { updateDocumentMetadata } from '../documents/store.ts';
import { outside } from '../embedding/work.ts';
import { groupWrites, removeDocument, writeDocuments } from '../index/indexing.ts';
import { type IndexState, lockIndex, type SourceKey } from '../index/store.ts';
import { type KnowledgeWorkDeps, queueEmbedding, queueIndexWork } from '../ingestion/deps.ts';
import {
  describeFailure,
  documentBytesMax,
  type PreparedInput,
  readDocument,
  withNewId,
} from '../ingestion/prepare.ts';
import { type Reading, readAhead } from '../ingestion/read-ahead.ts';
import type { IngestionError } from '../ingestion/store.ts';
import { heartbeatMs, isTransient, type JobControls, leaseSeconds } from '../ingestion/workflow.ts';
import { findSourceById, type SourceRow } from '../sources/store.ts';
import { queueItems } from './state.ts';
import * as store from './store.ts';

const itemsPerPage = 40;
const deletionsPerTransaction = 20;
const errorsMax = 100;
/** An item is read again if its document was created or deleted meanwhile. */
const triesMax = 5;

export const emptyStats: Readonly<store.SyncStats> = {
  written: 0,
  unchanged: 0,
  outdated: 0,
  deleted: 0,
  failed: 0,
  errors: [],
};

/** What reading an item led to. The document that it is for may have changed when it is applied. */
type Work =
  | { kind: 'delete' }
  | { kind: 'outdated' }
  | { kind: 'unchanged'; bytesHash: Buffer }
  | { kind: 'write'; ready: PreparedInput; replaces: string | undefined }
  | { kind: 'fail'; error: IngestionError };

/**
 * Applies what connectors sent to a source, in order, and ends the sync that is being completed. One process at a time
 * does this for a source; the transaction that applies an item also deletes it, so each is applied once.
 */
export async function applySyncs(deps: KnowledgeWorkDeps, key: SourceKey, controls: JobControls): Promise<void> {
  const { db, log } = deps;
  const holder = newUuid();
  const again = (inMs?: number) => queueItems(db, key, inMs);
  const source = await findSourceById(db, key.appId, key.sourceId);
  if (!source) return;
  // Another process has the items. If it dies, its lease ends.
  if (!(await store.claimItems(db, key, holder, leaseSeconds))) return again(leaseSeconds * 1_000);
  const lease = keepLease({
    ...{ everyMs: heartbeatMs, signal: controls.signal },
    renew: () => store.renewItems(db, key, holder, leaseSeconds),
    onError: (error) => log.warn({ err: error, source: key.sourceId }, 'A lease was not renewed'),
  });
  try {
    const embedder = outside(await deps.embedderOf(source), controls);
    await new SyncRun({ ...deps, embedder }, key, holder, lease.signal).work();
  } catch (error) {
    if (!(error instanceof ItemsLost) && !lease.isLost()) throw error;
  } finally {
    lease.end();
    await store.releaseItems(db, key, holder).catch(() => {});
  }
  // A batch that arrived after the last look found the lease taken.
  const isCompleting = (await store.findLive(db, key))?.status === 'completing';
  if (isCompleting || (await store.listItems(db, key, 1)).length > 0) await again();
}

/** Another process now has the items, or the source was deleted. */
class ItemsLost extends Error {}

class SyncRun {
  readonly #deps: KnowledgeWorkDeps;
  readonly #key: SourceKey;
  readonly #holder: string;
  readonly #signal: AbortSignal;

  constructor(deps: KnowledgeWorkDeps, key: SourceKey, holder: string, signal: AbortSignal) {
    this.#deps = deps;
    this.#key = key;
    this.#holder = holder;
    this.#signal = signal;
  }

  async work(): Promise<void> {
    const { db } = this.#deps;
    const source = await findSourceById(db, this.#key.appId, this.#key.sourceId);
    if (!source) throw new ItemsLost();
    for (;;) {
      const items = await store.listItems(db, this.#key, itemsPerPage);
      if (items.length === 0) break;
      const read = (item: store.SyncItem) => this.#read(source, item);
      for await (const group of readAhead(this.#deps.parser, items, read)) await this.#applyRead(source, group);
    }
    const live = await store.findLive(db, this.#key);
    if (live?.status === 'completing') await this.#complete(live);
  }

  /** Applies items in their order, consecutive documents in one transaction. */
  async #applyRead(source: SourceRow, read: readonly Reading<store.SyncItem, Work>[]): Promise<void> {
    let together: ItemWrite[] = [];
    const write = async () => {
      for (const group of groupWrites(together)) await this.#applyGroup(source, group);
      together = [];
    };
    for (const { item, work } of read) {
      const done = await work;
      const fits = together.every((one) => one.item.syncId === item.syncId && one.item.externalId !== item.externalId);
      if (done.kind !== 'write' || !fits) await write();
      if (done.kind === 'write') together.push({ ...withNewId(done.ready), item, old: done.replaces });
      else await this.#applyAlone(source, item, done);
    }
    await write();
  }

  /** Applies documents together, or each alone if one of them fails or has changed. */
  async #applyGroup(source: SourceRow, group: readonly ItemWrite[]): Promise<void> {
    if (group.length > 1)
      try {
        return await this.#applyTogether(source, group);
      } catch (error) {
        if (!(error instanceof ReadAgain) && !describeFailure(error)) throw error;
      }
    for (const { item, old, ...ready } of group)
      await this.#applyAlone(source, item, { kind: 'write', ready, replaces: old });
  }

  async #applyTogether(source: SourceRow, group: readonly ItemWrite[]): Promise<void> {
    const { embedder } = this.#deps;
    const { appId } = this.#key;
    await this.#commit(async (tx, index) => {
      const check = async ({ item, old }: ItemWrite) => {
        const isThere = store.deleteItem(tx, item);
        const now = await store.findByExternalId(tx, this.#key, item.externalId);
        if (!(await isThere) || now?.id !== old || (await this.#isOutdated(tx, item, now))) throw new ReadAgain();
      };
      await Promise.all(group.map(check));
      const onFlush = () => queueIndexWork(tx, this.#key);
      const written = await writeDocuments(tx, this.#key, index, group, onFlush);
      if (written.includes(undefined)) throw new ItemsLost();
      if (!embedder.local) await queueEmbedding(tx, { appId: source.appId });
      const mark = async ({ item, facts }: ItemWrite) => {
        const external = { id: item.externalId, order: item.externalOrder, seenBy: item.syncId };
        await Promise.all([
          store.setExternal(tx, appId, facts.id, external),
          store.deleteTombstone(tx, this.#key, item.externalId),
        ]);
      };
      await Promise.all(group.map(mark));
      const syncId = group[0]?.item.syncId ?? '';
      const stats = { ...emptyStats, ...(await store.lockSync(tx, appId, syncId))?.stats };
      stats.written += group.length;
      await store.setStats(tx, appId, syncId, stats);
    });
  }

  async #applyAlone(source: SourceRow, item: store.SyncItem, read: Work): Promise<void> {
    let work = read;
    for (let tries = 0; !(await this.#applyOrFail(source, item, work)); tries++) {
      if (tries === triesMax) throw new Error('The document of an item keeps changing.');
      work = await this.#read(source, item);
    }
  }

  async #read(source: SourceRow, item: store.SyncItem): Promise<Work> {
    const { db } = this.#deps;
    if (item.isDeletion) return { kind: 'delete' };
    try {
      const old = await store.findByExternalId(db, this.#key, item.externalId);
      if (await this.#isOutdated(db, item, old)) return { kind: 'outdated' };
      const input = await this.#readInput(item);
      if (old && isSame(old, item, input.bytes)) return { kind: 'unchanged', bytesHash: old.bytesHash };
      const ready = await readDocument(
        this.#deps,
        source,
        { ...input, documentId: old?.id ?? null },
        { signal: this.#signal },
      );
      return { kind: 'write', ready, replaces: old?.id };
    } catch (error) {
      return { kind: 'fail', error: this.#describe(item, error) };
    }
  }

  /** An error that a later attempt may not have is thrown; any other is the item's own. */
  #describe(item: store.SyncItem, error: unknown): IngestionError {
    const failure = describeFailure(error);
    if (failure) return failure;
    if (this.#signal.aborted || error instanceof ItemsLost || isTransient(error)) throw error;
    this.#deps.log.error({ err: error, source: item.sourceId, item: item.externalId }, 'An item of a sync failed');
    return { code: 'internal_error', message: 'An internal error occurred.' };
  }

  async #readInput({ title, metadata, sourceUrl, ...item }: store.SyncItem) {
    const { db, blobs } = this.#deps;
    const common = { documentId: null, title, metadata, sourceUrl };
    const { isText, filename, contentType } = item;
    if (item.fileId === null) {
      const bytes = await store.readItemContent(db, { ...item, title, metadata, sourceUrl });
      return { ...common, bytes, isText, filename, contentType, fileId: null };
    }
    const file = await findFile(db, item.appId, item.fileId);
    if (!file) throw new ParseError('extraction_failed', 'The file was deleted before it could be read.');
    const bytes = Buffer.from(await blobs.readAll(file.blobKey, documentBytesMax));
    return { ...common, bytes, isText: false, filename: file.filename, contentType: file.contentType, fileId: file.id };
  }

  async #isOutdated(
    db: Transaction | KnowledgeWorkDeps['db'],
    { externalId, externalOrder: order }: store.SyncItem,
    old: store.ExternalDocument | undefined,
  ): Promise<boolean> {
    if (order === null) return false;
    const newest = old ? old.externalOrder : await store.findTombstone(db, this.#key, externalId);
    return newest !== null && newest !== undefined && order < newest;
  }

  async #applyOrFail(source: SourceRow, item: store.SyncItem, work: Work): Promise<boolean> {
    try {
      return await this.#apply(source, item, work);
    } catch (error) {
      return this.#apply(source, item, { kind: 'fail', error: this.#describe(item, error) });
    }
  }

  /** Applies an item and deletes it. Returns false if it must be read again. */
  async #apply(source: SourceRow, item: store.SyncItem, work: Work): Promise<boolean> {
    return this.#commit(async (tx, index) => {
      // A person deleted the document, and with it what waited for it.
      if (!(await store.deleteItem(tx, item))) return true;
      const old = await store.findByExternalId(tx, this.#key, item.externalId);
      const outcome = (await this.#isOutdated(tx, item, old))
        ? 'outdated'
        : await this.#change(tx, index, source, item, work, old);
      if (outcome === undefined) throw new ReadAgain();
      const stats = { ...emptyStats, ...(await store.lockSync(tx, item.appId, item.syncId))?.stats };
      stats[outcome] += 1;
      if (work.kind === 'fail' && outcome === 'failed' && stats.errors.length < errorsMax)
        stats.errors = [...stats.errors, { external_id: item.externalId, ...work.error }];
      await store.setStats(tx, item.appId, item.syncId, stats);
      return true;
    }).catch((error: unknown) => {
      if (error instanceof ReadAgain) return false;
      throw error;
    });
  }

  async #change(
    tx: Transaction,
    index: IndexState,
    source: SourceRow,
    item: store.SyncItem,
    work: Work,
    old: store.ExternalDocument | undefined,
  ): Promise<Exclude<keyof store.SyncStats, 'errors'> | undefined> {
    const { appId } = this.#key;
    const external = { id: item.externalId, order: item.externalOrder, seenBy: item.syncId };
    switch (work.kind) {
      case 'fail':
        return 'failed';
      case 'outdated':
        // The newer version has disappeared.
        return undefined;
      case 'delete':
        if (item.externalOrder !== null && old)
          await store.insertTombstone(tx, this.#key, item.externalId, item.externalOrder);
        return old && (await removeDocument(tx, this.#key, old.id)) ? 'deleted' : 'unchanged';
      case 'unchanged':
        if (!old?.bytesHash.equals(work.bytesHash)) return undefined;
        if (canonicalJson(old.metadata) !== canonicalJson(withMarks(item.metadata, old)))
          await updateDocumentMetadata(tx, appId, old.id, { metadata: withMarks(item.metadata, old) });
        await store.setExternal(tx, appId, old.id, external);
        return 'unchanged';
      case 'write': {
        if (old?.id !== work.replaces) return undefined;
        const { facts } = work.ready;
        const { embedder } = this.#deps;
        const onFlush = () => queueIndexWork(tx, this.#key);
        const [written] = await writeDocuments(tx, this.#key, index, [work.ready], onFlush);
        if (!written) throw new ItemsLost();
        if (!embedder.local) await queueEmbedding(tx, { appId: source.appId });
        await store.setExternal(tx, appId, facts.id, external);
        await store.deleteTombstone(tx, this.#key, item.externalId);
        return 'written';
      }
    }
  }

  /** Deletes what a full sync did not see, then ends the sync. */
  async #complete(sync: store.SyncRow): Promise<void> {
    for (;;) {
      const isDone = await this.#commit(async (tx) => {
        const unseen =
          sync.mode === 'full' ? await store.listUnseen(tx, this.#key, sync.id, deletionsPerTransaction) : [];
        const stats = { ...emptyStats, ...(await store.lockSync(tx, sync.appId, sync.id))?.stats };
        for (const id of unseen) if (await removeDocument(tx, this.#key, id)) stats.deleted += 1;
        await store.setStats(tx, sync.appId, sync.id, stats);
        if (unseen.length > 0) return false;
        await store.endSync(tx, sync.appId, sync.id, 'succeeded');
        return true;
      });
      if (isDone) return;
    }
  }

  /** Runs a step in a transaction that commits only while this process has the items. */
  #commit<T>(step: (tx: Transaction, index: IndexState) => Promise<T>): Promise<T> {
    this.#signal.throwIfAborted();
    return this.#deps.db.begin(async (tx) => {
      const index = await lockIndex(tx, this.#key);
      if (!index || !(await store.lockItems(tx, this.#key, this.#holder))) throw new ItemsLost();
      return step(tx, index);
    }) as Promise<T>;
  }
}

/** A document of an item, ready to be written; `old` is the id of the document that it replaces. */
type ItemWrite = PreparedInput & { item: store.SyncItem; old: string | undefined };

/** Rolls the transaction of an item back. */
class ReadAgain extends Error {}

/** Whether an item changes nothing but metadata, so that its text need not be indexed again. */
function isSame(old: store.ExternalDocument, item: store.SyncItem, bytes: Buffer): boolean {
  const isTitled = item.title === null || item.title === old.title;
  return isTitled && item.sourceUrl === old.sourceUrl && old.bytesHash.equals(hash('sha256', bytes, 'buffer'));
}

/** The metadata of an item, with what the server adds about the text. */
function withMarks(metadata: Record<string, unknown> | null, old: store.ExternalDocument): Record<string, unknown> {
  return { ...metadata, ...('truncated' in old.metadata ? { truncated: old.metadata.truncated } : {}) };
}
