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
import type { VisibleSource } from '../sources/find.ts';
import type { SourceService } from '../sources/service.ts';
import type { SourceRow } from '../sources/store.ts';
import { cancelIngestion } from './cancel.ts';
import { createInternalIngestions, type InternalIngestions } from './internal.ts';
import { checkMode, exactlyOneError, type PushInput, type ReplacedDocument, readMode, readPush } from './push.ts';
import { createIngestionStarts, type StartDeps } from './start.ts';
import type { IngestionView, NewItem } from './store.ts';
import * as store from './store.ts';

type IngestDeps = StartDeps & { db: Database; sources: SourceService; permissions: Permissions };

export type IngestService = InternalIngestions & {
  /**
   * Ingests one content or file, or starts a pull.
   * @param isInline whether small contents are processed here. Otherwise, and always within a transaction, a job does
   */
  ingest(
    db: Db,
    caller: Caller,
    id: string,
    input: Static<typeof ingestSchema>,
    isInline?: boolean,
  ): Promise<IngestionView>;
  /** Ingests many contents in one ingestion, in order, each with its own result. */
  ingestBatch(caller: Caller, id: string, input: Static<typeof ingestBatchSchema>): Promise<IngestionView>;
  /** Replaces a document's content. The caller must have checked the permission. */
  replaceDocument(
    caller: Caller,
    source: VisibleSource,
    document: ReplacedDocument,
    input: PushInput,
  ): Promise<IngestionView>;
  /** Starts to bring back a version of a document, or all of a source as it was. The caller must have checked who may. */
  restore(caller: Caller, source: SourceRow, metadata: Record<string, unknown>): Promise<IngestionView>;
  /** Cancels an ingestion: its pending items fail as cancelled. One that has ended stays unchanged. */
  cancel(db: Db, appId: string, id: string): Promise<void>;
  get(caller: Caller, id: string): Promise<IngestionView>;
  list(caller: Caller, sourceId: string, page: PageRequest): Promise<[IngestionView[], number]>;
};

export function createIngestService(deps: IngestDeps): IngestService {
  const { db, sources, permissions } = deps;
  const starts = createIngestionStarts(deps);
  const { start } = starts;

  return {
    ...createInternalIngestions(db, starts),
    cancel: cancelIngestion,

    async ingest(db, caller, id, input, isInline = true) {
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
    },

    async ingestBatch(caller, id, input) {
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

    async replaceDocument(caller, source, document, input) {
      const item = await readPush(permissions, db, caller, source, input, { document });
      try {
        return await start(db, caller, { source, kind: 'replace', items: [item], onActive: 'queue' });
      } catch (error) {
        // The document has just been deleted with its source; the request names only the document.
        if (brokenReference(error)?.column === 'source_id') throw notFound();
        throw error;
      }
    },

    restore: (caller, source, metadata) =>
      start(db, caller, { source, kind: 'restore', items: [], onActive: 'queue', metadata }),

    async get(caller, id) {
      return found(await store.findIngestion(db, caller, pathId('ingestion', id)));
    },

    async list(caller, sourceId, page) {
      const source = await sources.get(db, caller, sourceId);
      return store.listIngestions(db, caller, source.id, page);
    },
  };
}
