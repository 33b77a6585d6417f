import { EmbeddingError } from '../../content/embed/embedder.ts';
import { ParseError } from '../../content/parse/types.ts';
import type { Transaction } from '../../db/database.ts';
import { findFile } from '../../files/store.ts';
import { defined } from '../../lib/defined.ts';
import { findDocumentByBytes, updateDocumentMetadata } from '../documents/store.ts';
import { embedStoredDocument, writeDocument } from '../index/indexing.ts';
import { findSourceById, type SourceRow } from '../sources/store.ts';
import { type KnowledgeWorkDeps, queueEmbedding, queueIndexWork } from './deps.ts';
import {
  DocumentDeleted,
  describeFailure,
  documentBytesMax,
  hashBytes,
  type Input,
  type PreparedInput,
  readDocument,
} from './prepare.ts';
import { addError, addWritten, emptyStats, type Stats } from './stats.ts';
import type { IngestionError, IngestionRow, ItemRow } from './store.ts';
import * as store from './store.ts';

/** Documents of a batch that are read ahead while another one is written. */
const parseAhead = 4;
const progressIntervalMs = 1_000;

/** Another process now works on the ingestion, or it was deleted with its source. */
export class LeaseLost extends Error {
  constructor() {
    super('This process no longer holds the ingestion.');
    this.name = 'LeaseLost';
  }
}

type PullStep = (run: IngestionRun, source: SourceRow) => Promise<IngestionError | undefined>;

/** One ingestion that this process works on. */
export class IngestionRun {
  readonly deps: KnowledgeWorkDeps;
  readonly signal: AbortSignal;
  readonly stats: Stats = emptyStats();
  readonly #ingestion: IngestionRow;
  readonly #holder: string;
  readonly #documents: string[] = [];
  #progressMs = 0;

  constructor(deps: KnowledgeWorkDeps, ingestion: IngestionRow, holder: string, signal: AbortSignal) {
    this.deps = deps;
    this.signal = signal;
    this.#ingestion = ingestion;
    this.#holder = holder;
  }

  /** Runs the ingestion to its end; `pull` does the pull itself and returns its failure, if any. */
  async work(pull: PullStep): Promise<void> {
    const { appId, sourceId, kind } = this.#ingestion;
    const source = await findSourceById(this.deps.db, appId, sourceId);
    if (!source) throw new LeaseLost();
    if (kind === 'pull') {
      const error = await pull(this, source);
      if (error) return this.fail(error);
      return this.#succeed({});
    }
    return this.#workItems(source);
  }

  async fail(error: IngestionError): Promise<void> {
    await this.#finish('failed', error, {});
  }

  /** Runs a step in a transaction that commits only while this process holds the ingestion. */
  async commit<T>(step: (tx: Transaction) => Promise<T>): Promise<T> {
    const { appId, id } = this.#ingestion;
    this.signal.throwIfAborted();
    return this.deps.db.begin(async (tx) => {
      if (!(await store.lockLease(tx, appId, id, this.#holder))) throw new LeaseLost();
      return step(tx);
    }) as Promise<T>;
  }

  /** Reads and chunks the input, and embeds it if the embedder is in this process. Throws ParseError. */
  async prepare(source: SourceRow, input: Input): Promise<PreparedInput> {
    const { signal } = this;
    return readDocument(this.deps, source, input, {
      signal,
      onProgress: (done, total) => this.#recordProgress(done, total),
    });
  }

  /** Writes a prepared document and runs `also` in the same transaction. */
  async write(source: SourceRow, ready: PreparedInput, also?: (tx: Transaction) => Promise<void>): Promise<void> {
    const key = { appId: source.appId, sourceId: source.id };
    const { embedder, addJob } = this.deps;
    const result = await this.commit(async (tx) => {
      const written = await writeDocument(
        tx,
        key,
        ready.facts,
        ready.prepared,
        ready.vectors,
        embedder.model,
        ready.replaces,
      );
      if (!written) throw new DocumentDeleted();
      if (written.flushed) await queueIndexWork(tx, addJob, key);
      await also?.(tx);
      return written;
    });
    if (!result.embedded) this.#documents.push(ready.facts.id);
    addWritten(this.stats, ready, embedder.local);
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
    const ahead: Promise<ItemWork>[] = [];
    for (let i = 0; i < pending.length; i++) {
      while (ahead.length < parseAhead && i + ahead.length < pending.length) {
        const item = pending[i + ahead.length];
        if (!item) break;
        const work = this.#readItem(source, item);
        // A rejection is handled once it is awaited, and must not count as unhandled before.
        work.catch(() => {});
        ahead.push(work);
      }
      const item = pending[i];
      const work = await ahead.shift();
      if (item && work) await this.#writeItemOrFail(source, item, work);
    }
    await this.#endItems(await store.listItems(db, source.appId, this.#ingestion.id));
  }

  async #readItem(source: SourceRow, item: ItemRow): Promise<ItemWork> {
    const { db } = this.deps;
    try {
      const input = await this.#readInput(source, item);
      if (item.dedupe) {
        const reused = await findDocumentByBytes(db, source.appId, source.id, hashBytes(input.bytes));
        if (reused !== undefined) return { kind: 'reuse', documentId: reused };
      }
      return { kind: 'write', ready: await this.prepare(source, input) };
    } catch (error) {
      const failure = describeFailure(error);
      if (!failure) throw error;
      return { kind: 'fail', error: failure };
    }
  }

  async #readInput(source: SourceRow, item: ItemRow): Promise<Input> {
    const { db, blobs } = this.deps;
    const common = {
      documentId: item.documentId,
      title: item.title,
      metadata: item.metadata,
    };
    if (item.fileId === null) {
      const bytes = (await store.readItemContent(db, item)) ?? Buffer.alloc(0);
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
      case 'reuse':
        return this.commit(async (tx) => {
          await updateDocumentMetadata(tx, source.appId, work.documentId, {
            ...(item.title === null ? {} : { title: item.title }),
            ...(item.metadata === null ? {} : { metadata: item.metadata }),
          });
          await store.finishItem(tx, item, 'done', { document: work.documentId, reused: true });
        });
      case 'write': {
        const { facts, prepared, bytes, pages, ocr } = work.ready;
        // For two equal contents in one batch, the second finds the first only here.
        const twin = item.dedupe
          ? await findDocumentByBytes(this.deps.db, source.appId, source.id, facts.bytesHash)
          : undefined;
        if (twin !== undefined) return this.#writeItem(source, item, { kind: 'reuse', documentId: twin });
        return this.write(source, work.ready, (tx) =>
          store.finishItem(tx, item, 'done', {
            document: facts.id,
            reused: false,
            chunks: prepared.chunks.length,
            bytes,
            pages,
            ...defined({ ocr }),
          }),
        );
      }
    }
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
    const { db, embedder, log, addJob } = this.deps;
    let pending = false;
    for (const id of this.#documents) {
      try {
        await embedStoredDocument(db, embedder, this.#ingestion.appId, id, this.signal);
      } catch (error) {
        if (!(error instanceof EmbeddingError)) throw error;
        log.warn({ err: error, ingestion: this.#ingestion.id }, 'The embedder failed; vectors will be added later');
        pending = true;
        await queueEmbedding(db, addJob, this.#ingestion.appId, new Date(Date.now() + 5_000));
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
    const { appId, id, sourceId } = this.#ingestion;
    await this.commit(async (tx) => {
      await store.finishIngestion(tx, appId, id, { status, error, metadata, stats: this.stats });
      const next = await store.promoteQueued(tx, appId, sourceId);
      if (next !== undefined) await this.deps.launch(tx, appId, sourceId, next);
    });
  }
}

type ItemWork =
  | { kind: 'write'; ready: PreparedInput }
  | { kind: 'reuse'; documentId: string }
  | { kind: 'fail'; error: IngestionError };

/** An item in the metadata of its ingestion. */
export function itemMetadata(item: ItemRow): Record<string, unknown> {
  const { document, reused, error, ocr } = item.result ?? {};
  if (error !== undefined) return { error };
  return { document, document_reused: reused === true, ...defined({ ocr }) };
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
