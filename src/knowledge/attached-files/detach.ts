import type { Database, Transaction } from '../../db/database.ts';
import { formatId } from '../../lib/ids.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { pathId } from '../../tenancy/references.ts';
import { removeDocument } from '../index/indexing.ts';
import type { SourceKey } from '../index/store.ts';
import type { IngestService } from '../ingestion/service.ts';
import type { VisibleSource } from '../sources/find.ts';
import type { SourceService } from '../sources/service.ts';
import { attachedId, changeAttachments, forgetFailed, getAttachment, inProgress } from './change.ts';
import * as store from './store.ts';

const sourcesAtOnce = 100;
const firstUuid = '00000000-0000-0000-0000-000000000000';

type DetachDeps = { db: Database; sources: SourceService; ingestions: IngestService };

/** How files leave sources. */
export function createDetaching({ db, sources, ingestions }: DetachDeps) {
  /** Removes the documents of a file and its failed attempts. Returns how many there were. */
  async function removeFile(tx: Transaction, caller: Caller, key: SourceKey, file: string): Promise<number> {
    const documents = await store.listAttachedDocuments(tx, caller, key, file);
    for (const document of documents) await removeDocument(tx, key, document);
    return documents.length + (await forgetFailed(tx, ingestions, key, [file]));
  }

  return {
    /** Removes the documents of a file from the source; the file stays. 409 while it is being processed. */
    detach: (caller: Caller, source: VisibleSource, id: string): Promise<void> =>
      changeAttachments(db, source, async (tx, key) => {
        const file = attachedId(id);
        const { status } = await getAttachment(tx, caller, key, file);
        if (status === 'in_progress') throw inProgress();
        // The file failed in a batch that is still active.
        if ((await removeFile(tx, caller, key, file)) === 0) throw inProgress();
      }),

    /** Detaches a file from every source that the caller may change. */
    async detachEverywhere(caller: Caller, id: string): Promise<void> {
      const file = pathId('file', id);
      let after = firstUuid;
      for (;;) {
        const ids = await store.listSourcesOfFile(db, caller, file, after, sourcesAtOnce);
        for (const sourceId of ids) {
          const source = await sources.findForChange(db, caller, formatId('source', sourceId));
          if (source === undefined) continue;
          await changeAttachments(db, source, (tx, key) => removeFile(tx, caller, key, file));
        }
        const last = ids.at(-1);
        if (last === undefined || ids.length < sourcesAtOnce) return;
        after = last;
      }
    },
  };
}
