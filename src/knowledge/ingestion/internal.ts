import type { Database, Db } from '../../db/database.ts';
import type { SourceRow } from '../sources/store.ts';
import { emptyItem } from './content.ts';
import type { IngestionStarts, NewIngestion } from './start.ts';
import type { IngestionRow, NewItem } from './store.ts';

/** A file to ingest, as a new document or in place of one. */
type FileItem = { file: string; documentId: string | null; metadata?: Record<string, unknown> | undefined };

/** Ingestions that the server itself starts, for callers that have checked who may. */
export type InternalIngestions = {
  /** Ingests bytes that the server itself received, queued behind an active ingestion. */
  ingestInternal(source: SourceRow, item: NewItem, also?: NewIngestion['also']): Promise<IngestionRow>;
  /** Ingests the same bytes into several sources: all of them store the bytes, or none does. */
  ingestIntoAll(targets: SourceRow[], item: NewItem): Promise<void>;
  /** Starts an ingestion of visible files, behind an active one. The metadata of the ingestion lists the files. */
  ingestFiles(db: Db, source: SourceRow, kind: 'push' | 'batch', files: readonly FileItem[]): Promise<IngestionRow>;
  /** Starts an automatic pull, unless another ingestion is active, which is returned then. */
  pullDue(db: Db, source: SourceRow): Promise<IngestionRow>;
};

export function createInternalIngestions(
  db: Database,
  { begin, isSmall, runInline }: IngestionStarts,
): InternalIngestions {
  return {
    async ingestInternal(source, item, also) {
      const inline = isSmall([item]);
      const given = { source, kind: 'push', items: [item], onActive: 'queue', also } as const;
      const { ingestion } = await begin(db, given, { inline, shares: inline && also === undefined });
      if (inline && !ingestion.queued) await runInline([ingestion]);
      return ingestion;
    },

    async ingestIntoAll(targets, item) {
      const inline = isSmall([item]);
      const begun = await db.begin(async (tx) => {
        const ingestions: IngestionRow[] = [];
        for (const source of targets) {
          const given = { source, kind: 'push', items: [item], onActive: 'queue' } as const;
          ingestions.push((await begin(tx, given, { inline })).ingestion);
        }
        return ingestions;
      });
      if (inline) await runInline(begun.filter(({ queued }) => !queued));
    },

    async ingestFiles(db, source, kind, files) {
      const items = files.map(({ file, documentId, metadata = null }) => {
        return { ...emptyItem, documentId, metadata, fileId: file };
      });
      const metadata = { files: files.map(({ file }) => file) };
      return (await begin(db, { source, kind, items, onActive: 'queue', metadata })).ingestion;
    },

    async pullDue(db, source) {
      return (await begin(db, { source, kind: 'pull', items: [], onActive: 'return' })).ingestion;
    },
  };
}
