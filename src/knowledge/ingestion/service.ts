import { setTimeout as wait } from 'node:timers/promises';
import type { Static } from 'typebox';
import { brokenReference, type Database, type Db, isInUnit, type Transaction } from '../../db/database.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import { AppError, found, invalidField, notFound } from '../../lib/errors.ts';
import { newUuid } from '../../lib/ids.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { requireQuotaLeft } from '../../tenancy/quotas.ts';
import { pathId } from '../../tenancy/references.ts';
import { findCreatableKind, listMissingForPull } from '../kinds/index.ts';
import type { aclSchema } from '../permissions/schema.ts';
import type { Permissions } from '../permissions/service.ts';
import type { ingestBatchSchema, ingestSchema, pushSchema } from '../schema.ts';
import { checkMetadata, type SourceService, type VisibleSource } from '../sources/service.ts';
import type { SourceRow } from '../sources/store.ts';
import { readContent, requireDocumentFile } from './content.ts';
import { itemMetadata } from './run.ts';
import type { IngestionRow, IngestionView, NewItem } from './store.ts';
import * as store from './store.ts';
import { type KnowledgeWork, leaseSeconds } from './workflow.ts';

/** A pushed document, alone or in a batch, or a replacement. */
export type PushInput = Static<typeof pushSchema> & { acl?: Static<typeof aclSchema> | null | undefined };
type OnActive = NonNullable<Static<typeof ingestSchema>['on_active']>;

const inlineBytesDefault = 256 * 1024;
const inlineWaitMs = 2_000;
const insertTriesMax = 10;

/** A file to ingest, as a new document or in place of one. */
type FileItem = { file: string; documentId: string | null; metadata?: Record<string, unknown> | undefined };

/** Additional writes in the transaction of a new ingestion. */
type AlsoWrite = (tx: Transaction, ingestion: IngestionRow) => Promise<void>;

type IngestDeps = {
  db: Database;
  sources: SourceService;
  permissions: Permissions;
  work: KnowledgeWork;
  /** Receives the errors of work that outlives its request. */
  onError: (error: unknown) => void;
  /** Pushed contents of up to this size are processed within the request; 0 for none. */
  inlineBytesMax?: number;
};

export type IngestService = ReturnType<typeof createIngestService>;

export function createIngestService(deps: IngestDeps) {
  const { db, sources, permissions, work, onError, inlineBytesMax = inlineBytesDefault } = deps;

  /** Inserts the ingestion and its job in one transaction, or returns the ingestion that is already active. */
  async function begin(
    db: Db,
    caller: Caller | undefined,
    source: SourceRow,
    kind: IngestionRow['kind'],
    items: NewItem[],
    onActive: OnActive,
    inline: boolean,
    { also, metadata = {} }: { also?: AlsoWrite | undefined; metadata?: Record<string, unknown> } = {},
  ): Promise<{ ingestion: IngestionRow; isNew: boolean }> {
    let waits = onActive === 'queue';
    for (let tries = 0; tries < insertTriesMax; tries++) {
      const inserted = await db.begin(async (tx) => {
        const base = { appId: source.appId, id: newUuid(), sourceId: source.id, kind, metadata };
        let row = await store.insertIngestion(tx, { ...base, queued: false }, items);
        if (!row && waits && (await store.lockActive(tx, source.appId, source.id)))
          row = await store.insertIngestion(tx, { ...base, queued: true }, items);
        if (!row) return undefined;
        await also?.(tx, row);
        await store.insertItems(tx, source.appId, row.id, items);
        // The work is done below. The job is needed only if this process crashes.
        const runAt = inline ? new Date(Date.now() + (leaseSeconds + 1) * 1000) : undefined;
        if (!row.queued) await work.launchIngestion(tx, source, row, runAt);
        return row;
      });
      if (inserted) return { ingestion: inserted, isNew: true };
      // The active ingestion may have ended since.
      const active = waits ? undefined : await store.findActiveIngestion(db, source.appId, source.id, caller);
      if (!active) continue;
      // The caller must not learn of an ingestion whose documents they cannot see.
      if (!active.isVisible) {
        waits = true;
        continue;
      }
      if (onActive === 'error')
        throw new AppError('conflict', 'Another ingestion of this source is active.', {
          details: { status: active.status },
        });
      return { ingestion: active, isNew: false };
    }
    throw new AppError('unavailable', 'The source is too busy. Try again in a moment.', {
      headers: { 'retry-after': '1' },
    });
  }

  /** Starts an ingestion, processes small contents immediately, and returns its state afterwards. */
  async function start(
    db: Db,
    caller: Caller,
    source: SourceRow,
    kind: IngestionRow['kind'],
    items: NewItem[],
    onActive: OnActive,
    isInline = true,
    metadata: Record<string, unknown> = {},
  ): Promise<IngestionView> {
    const size = items.reduce((sum, item) => sum + (item.content?.length ?? inlineBytesMax + 1), 0);
    const inline = isInline && !isInUnit() && kind !== 'pull' && size <= inlineBytesMax;
    const { ingestion, isNew } = await begin(db, caller, source, kind, items, onActive, inline, { metadata });
    if (isNew && inline && !ingestion.queued) await runInline([ingestion]);
    const view = found(await store.findIngestion(db, caller, ingestion.id));
    return isNew ? view : { ...view, metadata: { ...view.metadata, already_active: true } };
  }

  /** Processes small contents, and stops waiting if that takes long. */
  async function runInline(ingestions: IngestionRow[]): Promise<void> {
    const working = ingestions.map(({ appId, id }) => work.runIngestion(appId, id).catch(onError));
    if (working.length > 0) await Promise.race([Promise.all(working), wait(inlineWaitMs, undefined, { ref: false })]);
  }

  const isSmall = (item: NewItem): boolean => !isInUnit() && (item.content?.length ?? 0) <= inlineBytesMax;

  /** `document` is the one to be replaced. The grants of a batch are those of the whole batch. */
  async function readPush(
    db: Db,
    caller: Caller,
    source: SourceRow,
    input: PushInput,
    { at = '', document, aclId }: { at?: string; document?: ReplacedDocument; aclId?: string | undefined } = {},
  ): Promise<NewItem> {
    checkMetadata(input.metadata, `${at}metadata`);
    const acl = input.acl == null ? aclId : await permissions.resolve(db, caller, source, input.acl);
    const readers = acl ?? (input.acl === null ? undefined : document?.aclId) ?? undefined;
    const common = {
      documentId: document?.id ?? null,
      aclId: acl ?? null,
      hasAcl: acl !== undefined || input.acl === null,
      title: input.title ?? document?.title ?? null,
      metadata: input.metadata ?? null,
      dedupe: input.dedupe ?? false,
    };
    const none = { content: null, isText: false, contentType: null, filename: null, fileId: null };
    if (input.content)
      return { ...common, ...none, ...(await readContent(input.content, `${at}content.data`, caller.appId)) };
    // The document keeps its text.
    if (input.file === undefined && document) return { ...common, ...none, title: input.title ?? null };
    const field = `${at}file`;
    const fileId = await requireDocumentFile(db, caller, input.file ?? '', field);
    if (readers !== undefined) await permissions.requireNoMoreReaders(db, source.appId, fileId, readers, field);
    return { ...common, ...none, fileId };
  }

  /**
   * @param isInline whether small contents are processed here. Otherwise, and always within a transaction, a job does.
   */
  async function ingest(
    db: Db,
    caller: Caller,
    id: string,
    input: Static<typeof ingestSchema>,
    isInline = true,
  ): Promise<IngestionView> {
    const source = await sources.getForChange(db, caller, id, 'update');
    const mode = readMode(input);
    checkMode(source, mode, input);
    if (mode === 'pull') await requireQuotaLeft(db, source, 'pages');
    // With `dedupe`, no new document may be necessary.
    else if (input.dedupe !== true) await requireQuotaLeft(db, source, 'documents');
    const items = mode === 'pull' ? [] : [await readPush(db, caller, source, input)];
    const confirmed = input.confirm_deletions === true;
    if (confirmed && mode !== 'pull') throw invalidField('confirm_deletions', 'is for pulls only');
    // A confirmation must not be lost in a pull that is already active.
    const onActive = input.on_active ?? (confirmed ? 'queue' : 'return');
    const metadata = confirmed ? { confirm_deletions: true } : {};
    return start(db, caller, source, mode === 'pull' ? 'pull' : 'push', items, onActive, isInline, metadata);
  }

  return {
    ingest,

    /** Ingests many contents in one ingestion, in order, each with its own result. */
    async ingestBatch(caller: Caller, id: string, input: Static<typeof ingestBatchSchema>): Promise<IngestionView> {
      const source = await sources.getForChange(db, caller, id, 'update');
      if (!findCreatableKind(source.type)?.pushable)
        throw invalidField('items', `cannot be pushed into a source of type ${source.type}`);
      await requireQuotaLeft(db, source, 'documents');
      const aclId = input.acl && (await permissions.resolve(db, caller, source, input.acl));
      const items: NewItem[] = [];
      for (const [i, item] of input.items.entries()) {
        if ((item.content === undefined) === (item.file === undefined))
          throw exactlyOneError(
            [`items.${i}.content`, `items.${i}.file`],
            'exactly one of content and file is required',
          );
        items.push(await readPush(db, caller, source, item, { at: `items.${i}.`, aclId }));
      }
      return start(db, caller, source, 'batch', items, input.on_active ?? 'return');
    },

    /** Replaces a document's content. The caller must have checked the permission. */
    async replaceDocument(
      caller: Caller,
      source: VisibleSource,
      document: ReplacedDocument,
      input: PushInput,
    ): Promise<IngestionView> {
      const item = await readPush(db, caller, source, input, { document });
      try {
        return await start(db, caller, source, 'replace', [item], 'queue');
      } catch (error) {
        // The document has just been deleted with its source; the request names only the document.
        if (brokenReference(error)?.column === 'source_id') throw notFound();
        throw error;
      }
    },

    /** Ingests bytes that the server itself received, queued behind an active ingestion. */
    async ingestInternal(source: SourceRow, item: NewItem, also?: AlsoWrite): Promise<IngestionRow> {
      const inline = isSmall(item);
      const { ingestion } = await begin(db, undefined, source, 'push', [item], 'queue', inline, { also });
      if (inline && !ingestion.queued) await runInline([ingestion]);
      return ingestion;
    },

    /** Ingests the same bytes into several sources: all of them store the bytes, or none does. */
    async ingestIntoAll(targets: SourceRow[], item: NewItem): Promise<void> {
      const inline = isSmall(item);
      const begun = await db.begin(async (tx) => {
        const ingestions: IngestionRow[] = [];
        for (const source of targets)
          ingestions.push((await begin(tx, undefined, source, 'push', [item], 'queue', inline)).ingestion);
        return ingestions;
      });
      if (inline) await runInline(begun.filter(({ queued }) => !queued));
    },

    /**
     * Starts an ingestion of files, behind an active one. The caller must have checked that the source may be changed
     * and the files are visible. The metadata of the ingestion lists the files.
     */
    async ingestFiles(
      db: Db,
      source: SourceRow,
      kind: 'push' | 'batch',
      files: readonly FileItem[],
    ): Promise<IngestionRow> {
      const items = files.map(({ file, documentId, metadata = null }) => ({
        documentId,
        metadata,
        fileId: file,
        content: null,
        isText: false,
        contentType: null,
        filename: null,
        title: null,
        dedupe: false,
      }));
      const metadata = { files: files.map(({ file }) => file) };
      const { ingestion } = await begin(db, undefined, source, kind, items, 'queue', false, { metadata });
      return ingestion;
    },

    /** Starts to bring back a version of a document, or all of a source as it was. The caller must have checked who may. */
    restore: (caller: Caller, source: SourceRow, metadata: Record<string, unknown>): Promise<IngestionView> =>
      start(db, caller, source, 'restore', [], 'queue', true, metadata),

    /** Cancels an ingestion: its pending items fail as cancelled. One that has ended stays unchanged. */
    async cancel(db: Db, appId: string, id: string): Promise<void> {
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
        if (next !== undefined) await work.launch(tx, appId, ingestion.sourceId, next);
      });
    },

    /** Starts an automatic pull, unless another ingestion is active, which is returned then. */
    async pullDue(source: SourceRow): Promise<IngestionRow> {
      return (await begin(db, undefined, source, 'pull', [], 'return', false)).ingestion;
    },

    async get(caller: Caller, id: string): Promise<IngestionView> {
      return found(await store.findIngestion(db, caller, pathId('ingestion', id)));
    },

    async list(caller: Caller, sourceId: string, page: PageRequest): Promise<[IngestionView[], number]> {
      const source = await sources.get(db, caller, sourceId);
      return store.listIngestions(db, caller, source.id, page);
    },
  };
}

/** A document whose content is replaced. */
type ReplacedDocument = { id: string; title: string | null; aclId: string | null };

type Mode = 'content' | 'file' | 'pull';

/** Exactly one of content, file and pull; `pull: false` counts as absent. */
function readMode(input: Static<typeof ingestSchema>): Mode {
  const modes: Mode[] = [];
  if (input.content !== undefined) modes.push('content');
  if (input.file !== undefined) modes.push('file');
  if (input.pull === true) modes.push('pull');
  const [mode] = modes;
  if (mode === undefined || modes.length > 1)
    throw exactlyOneError(
      mode === undefined ? ['content', 'file', 'pull'] : modes,
      'exactly one of content, file and pull is required',
    );
  return mode;
}

function checkMode(source: SourceRow, mode: Mode, input: Static<typeof ingestSchema>): void {
  const kind = findCreatableKind(source.type);
  if (mode !== 'pull') {
    if (!kind?.pushable) throw invalidField(mode, `cannot be pushed into a source of type ${source.type}`);
    return;
  }
  if (input.dedupe === true) throw invalidField('dedupe', 'is for pushed content only');
  if (input.acl !== undefined) throw invalidField('acl', 'is for pushed content only');
  if (!kind?.pull) throw invalidField('pull', `a source of type ${source.type} has nothing to pull from`);
  const missing = listMissingForPull(kind, source.payload);
  if (missing.length > 0)
    throw invalidField('payload', `a pull requires ${missing.join(' and ')} in the source's payload`);
}

function exactlyOneError(fields: string[], message: string): AppError {
  return new AppError('invalid_parameters', `${fields.join(', ')}: ${message}`, {
    fields: fields.map((field) => ({ field, message })),
  });
}
