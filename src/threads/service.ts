import type { Database } from '../db/database.ts';
import { invalidField, notFound } from '../errors.ts';
import type { PageRequest } from '../http/pages.ts';
import { newUuid } from '../ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import { findNamedOwners, type OwnerInput, pathId } from '../tenancy/references.ts';
import * as store from './store.ts';

export type ThreadService = ReturnType<typeof createThreadService>;

export function createThreadService({ db }: { db: Database }) {
  async function get(caller: Caller, id: string): Promise<store.ThreadRow> {
    const row = await store.findThread(db, caller, pathId('thread', id));
    if (!row) throw notFound();
    return row;
  }

  return {
    get,

    /** At most one of user, team and agent owns a thread; its org is the one named, else the owner's. */
    async create(caller: Caller, input: OwnerInput & { title?: string | undefined }): Promise<store.ThreadRow> {
      const owners = (['user', 'team', 'agent'] as const).filter((member) => input[member] !== undefined);
      if (owners[1] !== undefined) throw invalidField(owners[1], 'give at most one of user, team and agent');
      const named = await findNamedOwners(db, caller, input);
      return store.insertThread(db, caller, {
        id: newUuid(),
        title: input.title ?? null,
        orgId: named.org?.id ?? named.agent?.orgId ?? named.team?.orgId ?? named.user?.orgId ?? null,
        teamId: named.team?.id ?? null,
        userId: named.user?.id ?? null,
        agentId: named.agent?.id ?? null,
      });
    },

    list: (caller: Caller, page: PageRequest) => store.listThreads(db, caller, page),

    async update(caller: Caller, id: string, title: string | undefined): Promise<store.ThreadRow> {
      const row = await store.updateThread(db, caller, pathId('thread', id), title);
      if (!row) throw notFound();
      return row;
    },

    async remove(caller: Caller, id: string): Promise<void> {
      if (!(await store.deleteThread(db, caller, pathId('thread', id)))) throw notFound();
    },
  };
}
