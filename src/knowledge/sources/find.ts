import type { Db } from '../../db/database.ts';
import { AppError, found } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { pathId } from '../../tenancy/references.ts';
import { type AgentOwners, administersOrgOf, type Change, mayChangeOwned } from '../../tenancy/visible.ts';
import * as store from './store.ts';

/** A source with the owners that decide who may change it. */
export type VisibleSource = store.SourceView & { agent: AgentOwners | undefined };

export async function getSource(db: Db, caller: Caller, id: string): Promise<VisibleSource> {
  return found(await store.findSource(db, caller, pathId('source', id)));
}

/** 404 if the source is not visible to the caller, 403 if the caller may not change it. */
export async function getForChange(db: Db, caller: Caller, id: string, change: Change): Promise<VisibleSource> {
  const source = await getSource(db, caller, id);
  const mayDelete = change === 'delete' && administersOrgOf(caller, source);
  if (!mayDelete && !mayChangeOwned(caller, source, change, source.agent))
    throw new AppError('forbidden', `You may see this source, but not ${change} it.`);
  return source;
}
