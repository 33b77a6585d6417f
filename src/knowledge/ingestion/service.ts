import type { Static } from 'typebox';
import { brokenReference, type Database, type Db } from '../../db/database.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import { found, invalidField, notFound } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { requireQuotaLeft } from '../../tenancy/quotas.ts';
import { pathId } from '../../tenancy/references.ts';
import { findCreatableKind } from '../kinds/index.ts';
import type { Permissions } from '../permissions/service.ts';
import type { ingestBatchSchema, ingestSchema } from '../schema.ts';
import type { SourceService, VisibleSource } from '../sources/service.ts';
import type { SourceRow } from '../sources/store.ts';
import { checkMode, exactlyOneError, type PushInput, type ReplacedDocument, readMode, readPush } from './push.ts';
import { itemMetadata } from './run.ts';
import { createIngestionStarts, type NewIngestion, type StartDeps } from './start.ts';
import type { IngestionRow, IngestionView, NewItem } from './store.ts';
import * as store from './store.ts';

/** A file to ingest, as a new document or in place of one. */
type FileItem = { file: string; documentId: string | null; metadata?: Record<string, unknown> | undefined };

type IngestDeps = StartDeps & { db: Database; sources: SourceService; permissions: Permissions };

export type IngestService = ReturnType<typeof createIngestService>;

export function createIngestService(deps: IngestDeps) {
  const { db, sources, permissions, work } = deps;
  const { begin, start, isSmall, runInline } = createIngestionStarts(deps);

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
    const items = mode === 'pull' ? [] : [await readPush(permissions, db, caller, source, input)];
    const confirmed = input.confirm_deletions === true;
    if (confirmed && mode !== 'pull') throw invalidField('confirm_deletions', 'is for pulls only');
    // A confirmation must not be lost in a pull that is already active.
    const onActive = input.on_active ?? (confirmed ? 'queue' : 'return');
    const metadata = confirmed ? { confirm_deletions: true } : {};
    const kind = mode === 'pull' ? 'pull' : 'push';
    return start(db, caller, { source, kind, items, onActive, metadata }, isInline);
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
        items.push(await readPush(permissions, db, caller, source, item, { at: `items.${i}.`, aclId }));
      }
      return start(db, caller, { source, kind: 'batch', items, onActive: input.on_active ?? 'return' });
    },

    /** Replaces a document's content. The caller must have checked the permission. */
    async replaceDocument(
      caller: Caller,
      source: VisibleSource,
      document: ReplacedDocument,
      input: PushInput,
    ): Promise<IngestionView> {
      const item = await readPush(permissions, db, caller, source, input, { document });
      try {
        return await start(db, caller, { source, kind: 'replace', items: [item], onActive: 'queue' });
      } catch (error) {
        // The document has just been deleted with its source; the request names only the document.
        if (brokenReference(error)?.column === 'source_id') throw notFound();
        throw error;
      }
    },

    /** Ingests bytes that the server itself received, queued behind an active ingestion. */
    async ingestInternal(source: SourceRow, item: NewItem, also?: NewIngestion['also']): Promise<IngestionRow> {
      const inline = isSmall([item]);
      const { ingestion } = await begin(db, { source, kind: 'push', items: [item], onActive: 'queue', also }, inline);
      if (inline && !ingestion.queued) await runInline([ingestion]);
      return ingestion;
    },

    /** Ingests the same bytes into several sources: all of them store the bytes, or none does. */
    async ingestIntoAll(targets: SourceRow[], item: NewItem): Promise<void> {
      const inline = isSmall([item]);
      const begun = await db.begin(async (tx) => {
        const ingestions: IngestionRow[] = [];
        for (const source of targets) {
          const given = { source, kind: 'push', items: [item], onActive: 'queue' } as const;
          ingestions.push((await begin(tx, given, inline)).ingestion);
        }
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
      return (await begin(db, { source, kind, items, onActive: 'queue', metadata })).ingestion;
    },

    /** Starts to bring back a version of a document, or all of a source as it was. The caller must have checked who may. */
    restore: (caller: Caller, source: SourceRow, metadata: Record<string, unknown>): Promise<IngestionView> =>
      start(db, caller, { source, kind: 'restore', items: [], onActive: 'queue', metadata }),

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
    async pullDue(db: Db, source: SourceRow): Promise<IngestionRow> {
      return (await begin(db, { source, kind: 'pull', items: [], onActive: 'return' })).ingestion;
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
