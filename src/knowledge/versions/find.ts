import type { Database } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { found, notFound } from '../../lib/errors.ts';
import { formatId } from '../../lib/ids.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { pathId } from '../../tenancy/references.ts';
import { findDocument } from '../documents/store.ts';
import type { SourceService } from '../sources/service.ts';
import { findSourceOfDeleted } from './store.ts';

export type FindDeps = { db: Database; clock: Clock; sources: SourceService };

/** The document, if the caller may read it. A deleted one is for those who may change its source. */
export async function findVersioned(
  { db, clock, sources }: FindDeps,
  caller: Caller,
  text: string,
): Promise<{ id: string; sourceId: string }> {
  const id = pathId('document', text);
  const live = await findDocument(db, caller, id);
  if (live) return { id, sourceId: live.sourceId };
  const sourceId = found(await findSourceOfDeleted(db, caller, id, clock.now()));
  if (!(await sources.findForChange(db, caller, formatId('source', sourceId)))) throw notFound();
  return { id, sourceId };
}
