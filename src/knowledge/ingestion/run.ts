import { hash } from 'node:crypto';
import { EmbeddingError } from '../../content/embed/embedder.ts';
import { FetchError } from '../../content/fetch/errors.ts';
import { ParseError } from '../../content/parse/types.ts';
import type { Transaction } from '../../db/database.ts';
import { findFile } from '../../files/store.ts';
import { defined } from '../../lib/defined.ts';
import { findDocumentByBytes, updateDocumentMetadata } from '../documents/store.ts';
import { embedStoredDocuments, groupWrites, writeDocuments } from '../index/indexing.ts';
import { type IndexState, lockIndex } from '../index/store.ts';
import { findSourceById, type SourceRow } from '../sources/store.ts';
import { type KnowledgeWorkDeps, queueEmbedding, queueIndexWork } from './deps.ts';
import { FollowersChanged, isPush, takeFollowers, takeRead } from './followers.ts';
import { ItemContents } from './item-contents.ts';
import {
  ChangedMeanwhile,
  DocumentDeleted,
  describeFailure,
  documentBytesMax,
  type Input,
  type PreparedInput,
  prepareAgain,
  readDocument,
  requireNext,
  withNewId,
} from './prepare.ts';
import type { PushTurn } from './push-turn.ts';
import { type Reading, readAhead, writtenMax } from './read-ahead.ts';
import { addError, addWritten, emptyStats, type Stats } from './stats.ts';
import type { IngestionError, IngestionRow, ItemRow } from './store.ts';
import * as store from './store.ts';

const progressIntervalMs = 1_000;

/** Another process now works on the ingestion, or it was deleted with its source. */
export class LeaseLost extends Error {
  constructor() {
    super('This process no longer holds the ingestion.');
    this.name = 'LeaseLost';
  }
}

/** A pull or a restore. Returns its failure, if any. */
type PullStep = (run: IngestionRun, source: SourceRow) => Promise<IngestionError | undefined>;

/** One ingestion that this process works on. */
export class IngestionRun {
  /** Its embedder is that of the source, once the work begins. */
  deps: KnowledgeWorkDeps;
  readonly signal: AbortSignal;
  readonly stats: Stats = emptyStats();
  readonly #ingestion: IngestionRow;
  readonly #holder: string;
  /** The turn of the job that does the work; undefined if a request does it. */
  readonly #turn: PushTurn<ItemWork> | undefined;
  readonly #documents: string[] = [];
  readonly #notes: Record<string, unknown> = {};
  #progressMs = 0;

  constructor(
    deps: KnowledgeWorkDeps,
    ingestion: IngestionRow,
    { holder, signal, turn }: { holder: string; signal: AbortSignal; turn: PushTurn<ItemWork> | undefined },
  ) {
    this.deps = deps;
    this.signal = signal;
    this.#ingestion = ingestion;
    this.#holder = holder;
    // A restore records what it did with each document, and continues to count after a crash.
    if (ingestion.kind === 'restore') Object.assign(this.stats, ingestion.stats);
    this.#turn = turn;
  }

  /** Runs the ingestion to its end; `pull` does the pull itself and returns its failure, if any. */
  async work(pull: PullStep): Promise<void> {
    const { appId, sourceId, kind } = this.#ingestion;
    const source = await findSourceById(this.deps.db, appId, sourceId);
    if (!source) throw new LeaseLost();
    if (source.embedder) this.deps = { ...this.deps, embedder: await this.deps.embedderOf(source) };
    if (kind === 'pull' || kind === 'restore') {
      const error = await pull(this, source);
      if (error) return this.fail(error);
      return this.#succeed(this.#notes);
    }
    return this.#workItems(source);
  }

  get id(): string {
    return this.#ingestion.id;
  }

  /** What a restore brings back, and when it started. */
  get restore(): { metadata: Record<string, unknown>; startedAt: Date } | undefined {
    const { kind, metadata, startedAt, createdAt } = this.#ingestion;
    return kind === 'restore' ? { metadata, startedAt: startedAt ?? createdAt } : undefined;
  }

  /** Stores the stats of a step in its transaction. */
  async recordStep(tx: Transaction, stats: Stats): Promise<void> {
    await store.setStats(tx, this.#ingestion.appId, this.#ingestion.id, stats);
  }

  /** Whether a person has confirmed that this pull may delete most of the source. */
  get mayDelete(): boolean {
    return this.#ingestion.metadata.confirm_deletions === true;
  }

  /** Adds to the metadata with which the ingestion ends. */
  note(metadata: Record<string, unknown>): void {
    Object.assign(this.#notes, metadata);
  }

  /** A failure to reach what is pulled, as the ingestion reports it; undefined for any other error. */
  describeRead(error: unknown): IngestionError | undefined {
    if (!(error instanceof FetchError) || this.signal.aborted) return undefined;
    return { code: error.code, message: error.message };
  }

  async fail(error: IngestionError): Promise<void> {
    await this.#finish('failed', error, {});
  }

  /** Runs a step in a transaction that commits only while this process holds the ingestion, with the index locked. */
  async commit<T>(step: (tx: Transaction, index: IndexState) => Promise<T>): Promise<T> {
    const { appId, id, sourceId } = this.#ingestion;
    this.signal.throwIfAborted();
    return this.deps.db.begin(async (tx) => {
      const [index, isHeld] = await Promise.all([
        lockIndex(tx, { appId, sourceId }),
        store.lockLease(tx, appId, id, this.#holder),
      ]);
      if (!index || !isHeld) throw new LeaseLost();
      return step(tx, index);
    }) as Promise<T>;
  }

  /** Reads and chunks the input, and embeds it if the embedder is in this process. Throws ParseError. */
  async prepare(source: SourceRow, input: Input, signal = this.signal): Promise<PreparedInput> {
    return readDocument(this.deps, source, input, {
      signal,
      onProgress: (done, total) => this.#recordProgress(done, total),
    });
  }

  /** Writes prepared documents, whose ids all differ, and runs `also` in the same transaction. */
  async write(
    source: SourceRow,
    ready: readonly PreparedInput[],
    also?: (tx: Transaction) => Promise<void>,
  ): Promise<void> {
    const key = { appId: source.appId, sourceId: source.id };
    const results = await this.commit(async (tx, index) => {
      const written = await writeDocuments(tx, key, index, ready, () => queueIndexWork(tx, key));
      if (written.includes(undefined)) throw new DocumentDeleted();
      await also?.(tx);
      return written;
    });
    for (const [i, one] of ready.entries()) {
      if (results[i]?.embedded === false) this.#documents.push(one.facts.id);
      addWritten(this.stats, one);
    }
  }

  /** Whether the document of a pulled file was deleted since the pull began. */
  async wasDeleted(tx: Transaction): Promise<boolean> {
    return (await store.listPullRemovals(tx, this.#ingestion.appId, this.#ingestion.id, [''])).size > 0;
  }

  /** Shows the pages read so far in the stats of the ingestion, because a long document takes minutes. */
  #recordProgress(done: number, total: number): void {
    const now = performance.now();
    if (now - this.#progressMs < progressIntervalMs) return;
    this.#progressMs = now;
    const { appId, id } = this.#ingestion;
    const stats = { ...this.stats, progress: { pages_read: done, pages_total: total } };
    this.commit((tx) => store.setStats(tx, appId, id, stats)).catch((error: unknown) => {
      if (!(error instanceof LeaseLost) && !this.signal.aborted)
        this.deps.log.warn({ err: error, ingestion: id }, 'The progress of an ingestion was not recorded');
    });
  }

  async #workItems(source: SourceRow): Promise<void> {
    const { db } = this.deps;
    const items = await store.listItems(db, source.appId, this.#ingestion.id);
    const pending = items.filter((item) => item.state === 'pending');
    const [only] = items.length === 1 ? pending : [];
    let first: ItemReading | undefined;
    if (this.#turn && this.#ingestion.kind === 'push' && only && isPush(only)) {
      [first] = this.#turn.read(source, [only], (item, signal) => this.#readItem(source, item, { signal }));
      this.#turn.drop([only]);
      if (first && (await this.#writeWithFollowers(source, this.#turn, first))) return;
    }
    const contents = new ItemContents(db, pending);
    const read = (item: ItemRow) => first?.work ?? this.#readItem(source, item, { contents });
    for await (const group of readAhead(this.deps.parser, pending, read)) await this.#writeItems(source, group);
    await this.#endItems(await store.listItems(db, source.appId, this.#ingestion.id));
  }

  /**
   * Ends this ingestion together with the pushes that wait behind it, in one transaction. Returns false if it must be
   * written alone: none waits, or one of the documents fails.
   */
  async #writeWithFollowers(source: SourceRow, turn: PushTurn<ItemWork>, first: ItemReading): Promise<boolean> {
    if (!this.deps.embedder.local) return false;
    const { appId, sourceId } = this.#ingestion;
    // Those of the next group are read while this one is written.
    const count = (turn.mayContinue ? 2 : 1) * writtenMax - 1;
    const followers = takeFollowers(await store.listFollowers(this.deps.db, appId, sourceId, count));
    if (followers.length === 0) return false;
    const contents = new ItemContents(this.deps.db, followers);
    const readings = turn.read(source, followers, (item, signal) => this.#readItem(source, item, { contents, signal }));
    try {
      await first.work;
      const works = await takeRead([first, ...readings.slice(0, writtenMax - 1)].map(({ work }) => work));
      const [group = []] = groupWrites(takeWrites([first.item, ...followers], works));
      if (group.length < 2) return false;
      await this.#endTogether(source, turn, group);
      return true;
    } catch (error) {
      if (error instanceof FollowersChanged || describeFailure(error)) return false;
      throw error;
    }
  }

  async #endTogether(source: SourceRow, turn: PushTurn<ItemWork>, group: readonly ItemWrite[]): Promise<void> {
    const { appId, id } = this.#ingestion;
    const followers = group.map(({ item }) => item.ingestionId).filter((other) => other !== id);
    let next: string | undefined;
    await this.write(source, group, async (tx) => {
      if (!(await store.lockFollowers(tx, appId, followers))) throw new FollowersChanged();
      const outcomes = group.map((write) => {
        const stats = emptyStats();
        addWritten(stats, write);
        return { id: write.item.ingestionId, metadata: itemMetadata({ result: resultOf(write) }), stats };
      });
      await store.endPushes(tx, appId, outcomes);
      next = await this.#promoteNext(tx);
    });
    turn.drop(group.map(({ item }) => item));
    turn.continueWith(next);
  }

  async #readItem(
    source: SourceRow,
    item: ItemRow,
    { contents, signal }: { contents?: ItemContents; signal?: AbortSignal } = {},
  ): Promise<ItemWork> {
    const { db } = this.deps;
    // The text is read when it is written: what is queued before may change it.
    if (item.fileId === null && item.size === null) return { kind: 'keep' };
    try {
      const input = await this.#readInput(source, item, contents ?? new ItemContents(db, [item]));
      if (item.dedupe) {
        const bytesHash = hash('sha256', input.bytes, 'buffer');
        const reused = await findDocumentByBytes(db, source.appId, source.id, bytesHash, item.aclId);
        if (reused !== undefined) return { kind: 'reuse', documentId: reused };
      }
      return { kind: 'write', ready: await this.prepare(source, input, signal) };
    } catch (error) {
      const failure = describeFailure(error);
      if (!failure) throw error;
      return { kind: 'fail', error: failure };
    }
  }

  async #readInput(source: SourceRow, item: ItemRow, contents: ItemContents): Promise<Input> {
    const { db, blobs } = this.deps;
    const common = {
      documentId: item.documentId,
      title: item.title,
      metadata: item.metadata,
      aclId: item.hasAcl ? item.aclId : undefined,
    };
    if (item.fileId === null) {
      const bytes = await contents.read(item);
      return {
        ...common,
        bytes,
        isText: item.isText,
        filename: item.filename,
        contentType: item.contentType,
        fileId: null,
      };
    }
    const file = await findFile(db, source.appId, item.fileId);
    if (!file) throw new ParseError('extraction_failed', 'The file was deleted before it could be read.');
    const bytes = Buffer.from(await blobs.readAll(file.blobKey, documentBytesMax));
    return { ...common, bytes, isText: false, filename: file.filename, contentType: file.contentType, fileId: file.id };
  }

  /** Writes items in their order, consecutive new texts in one transaction. */
  async #writeItems(source: SourceRow, read: readonly ItemReading[]): Promise<void> {
    let together: ItemWrite[] = [];
    const write = async () => {
      for (const group of groupWrites(together)) await this.#writeGroup(source, group);
      together = [];
    };
    for (const { item, work } of read) {
      const done = await work;
      // Of two equal contents, the second finds the first only after its commit.
      const { bytesHash } = done.kind === 'write' ? done.ready.facts : {};
      const isTwin = item.dedupe && together.some(({ facts }) => bytesHash?.equals(facts.bytesHash));
      if (done.kind !== 'write' || isTwin) await write();
      if (done.kind !== 'write') await this.#writeItemOrFail(source, item, done);
      else if (item.dedupe && (await this.#reuseTwin(source, item, done.ready))) continue;
      else together.push({ ...withNewId(done.ready), item });
    }
    await write();
  }

  /** Writes documents together, or each alone if one of them fails. */
  async #writeGroup(source: SourceRow, group: readonly ItemWrite[]): Promise<void> {
    if (group.length > 1)
      try {
        return await this.#writeTexts(source, group);
      } catch (error) {
        if (!describeFailure(error)) throw error;
      }
    for (const one of group) await this.#writeItemOrFail(source, one.item, { kind: 'write', ready: one });
  }

  /** Writes an item. A document that exceeds the app's quota fails without its batch. */
  async #writeItemOrFail(source: SourceRow, item: ItemRow, work: ItemWork): Promise<void> {
    try {
      await this.#writeItem(source, item, work);
    } catch (error) {
      const failure = describeFailure(error);
      if (!failure) throw error;
      await this.#writeItem(source, item, { kind: 'fail', error: failure });
    }
  }

  async #writeItem(source: SourceRow, item: ItemRow, work: ItemWork): Promise<void> {
    switch (work.kind) {
      case 'fail':
        return this.commit((tx) => store.finishItem(tx, item, 'failed', { error: work.error }));
      case 'keep':
        return this.#writeAgain(source, item);
      case 'reuse':
        return this.#reuse(source, item, work.documentId);
      case 'write':
        if (item.dedupe && (await this.#reuseTwin(source, item, work.ready))) return;
        return this.#writeTexts(source, [{ ...work.ready, item }]);
    }
  }

  /** Uses a document with the same bytes that has been written since the item was read. */
  async #reuseTwin(source: SourceRow, item: ItemRow, { facts }: PreparedInput): Promise<boolean> {
    const twin = await findDocumentByBytes(this.deps.db, source.appId, source.id, facts.bytesHash, item.aclId);
    if (twin === undefined) return false;
    await this.#writeItemOrFail(source, item, { kind: 'reuse', documentId: twin });
    return true;
  }

  async #writeTexts(source: SourceRow, writes: readonly ItemWrite[]): Promise<void> {
    const { kind, appId, id } = this.#ingestion;
    await this.write(source, writes, async (tx) => {
      if (kind === 'replace')
        for (const { item } of writes) if (item.hasAcl) await store.setIngestionAcl(tx, appId, id, item.aclId);
      const results = writes.map((write) => ({ ordinal: write.item.ordinal, result: resultOf(write) }));
      await store.finishItems(tx, appId, id, results);
    });
  }

  /** Writes the text that the document has with another title or other metadata. */
  async #writeAgain(source: SourceRow, item: ItemRow): Promise<void> {
    const { documentId, title, metadata } = item;
    if (documentId === null) throw new Error('An item without contents names a document.');
    try {
      const { ready, version } = await prepareAgain(this.deps, source, { documentId, title, metadata }, this.signal);
      const result = resultOf(ready);
      await this.write(source, [ready], async (tx) => {
        await requireNext(tx, source.appId, documentId, version);
        await store.finishItem(tx, item, 'done', result);
      });
    } catch (error) {
      // A program that synchronises has just written another text.
      if (error instanceof ChangedMeanwhile) return this.#writeAgain(source, item);
      throw error;
    }
  }

  /** Uses a document with the same bytes, or writes another one if its readers have changed meanwhile. */
  async #reuse(source: SourceRow, item: ItemRow, documentId: string): Promise<void> {
    const change = { title: item.title ?? undefined, metadata: item.metadata ?? undefined };
    const reused = await this.commit(async (tx) => {
      if (!(await updateDocumentMetadata(tx, source.appId, documentId, change, item.aclId))) return false;
      await store.finishItem(tx, item, 'done', { document: documentId, reused: true });
      return true;
    });
    if (!reused) await this.#writeItem(source, item, await this.#readItem(source, item));
  }

  /**
   * Ends the ingestion by its stored items, so that the outcome is complete even if another process did some of them.
   */
  async #endItems(items: ItemRow[]): Promise<void> {
    const done = items.filter((item) => item.state === 'done');
    const sum = (member: string) => done.reduce((total, item) => total + numberOf(item.result?.[member]), 0);
    Object.assign(this.stats, {
      documents: done.length,
      chunks: sum('chunks'),
      bytes: sum('bytes'),
      pages: sum('pages'),
    });
    for (const item of items)
      if (item.state === 'failed')
        addError(this.stats, { item: item.ordinal, ...(item.result?.error as IngestionError) });
    const single = this.#ingestion.kind === 'batch' ? undefined : items[0];
    const metadata = single
      ? itemMetadata(single)
      : { items: items.map((item) => ({ index: item.ordinal, ...itemMetadata(item) })) };
    if (done.length > 0 || items.length === 0) return this.#succeed(metadata);
    const [first] = this.stats.errors;
    const error = first ?? { code: 'internal_error', message: 'Nothing could be ingested.' };
    return this.#finish('failed', { code: error.code, message: error.message }, metadata);
  }

  /** Computes vectors of an external embedder last. Until then, full-text search finds the documents. */
  async #succeed(metadata: Record<string, unknown>): Promise<void> {
    const { db, embedder, log } = this.deps;
    let pending = false;
    const { appId, sourceId } = this.#ingestion;
    for (const id of this.#documents) {
      try {
        await embedStoredDocuments(db, embedder, { appId, sourceId }, [id], this.signal);
      } catch (error) {
        if (!(error instanceof EmbeddingError)) throw error;
        log.warn({ err: error, ingestion: this.#ingestion.id }, 'The embedder failed; vectors will be added later');
        pending = true;
        await queueEmbedding(db, { appId: this.#ingestion.appId }, 5_000);
        break;
      }
    }
    await this.#finish('succeeded', null, pending ? { ...metadata, embedding: 'pending' } : metadata);
  }

  async #finish(
    status: 'succeeded' | 'failed',
    error: IngestionError | null,
    metadata: Record<string, unknown>,
  ): Promise<void> {
    const { appId, id } = this.#ingestion;
    const next = await this.commit(async (tx) => {
      await store.finishIngestion(tx, appId, id, { status, error, metadata, stats: this.stats });
      return this.#promoteNext(tx);
    });
    this.#turn?.continueWith(next);
  }

  /** Makes the next ingestion of the source active. Returns it if this job runs it next. */
  async #promoteNext(tx: Transaction): Promise<string | undefined> {
    const { appId, sourceId } = this.#ingestion;
    const next = await store.promoteQueued(tx, appId, sourceId);
    const mayContinue = this.#turn?.mayContinue;
    return next !== undefined && (await this.deps.launch(tx, appId, sourceId, next, mayContinue)) ? next : undefined;
  }
}

/** A document of the ingestion's item, ready to be written. */
type ItemWrite = PreparedInput & { item: ItemRow };

type ItemReading = Reading<ItemRow, ItemWork>;

export type ItemWork =
  | { kind: 'write'; ready: PreparedInput }
  | { kind: 'keep' }
  | { kind: 'reuse'; documentId: string }
  | { kind: 'fail'; error: IngestionError };

/** The documents of the first of these items, as far as they are to be written. */
function takeWrites(items: readonly ItemRow[], works: readonly ItemWork[]): ItemWrite[] {
  const writes: ItemWrite[] = [];
  for (const [i, work] of works.entries()) {
    const item = items[i];
    if (item === undefined || work.kind !== 'write') break;
    writes.push({ ...withNewId(work.ready), item });
  }
  return writes;
}

/** What an item records of its document. */
function resultOf({ facts, prepared, bytes, pages, ocr }: PreparedInput): Record<string, unknown> {
  return { document: facts.id, reused: false, chunks: prepared.chunks.length, bytes, pages, ...defined({ ocr }) };
}

/** An item in the metadata of its ingestion. */
export function itemMetadata(item: Pick<ItemRow, 'result'>): Record<string, unknown> {
  const { document, reused, error, ocr } = item.result ?? {};
  if (error !== undefined) return { error };
  return { document, document_reused: reused === true, ...defined({ ocr }) };
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
