import type { Static } from 'typebox';
import type { Database, Transaction } from '../db/database.ts';
import { deleteOwner } from '../deletions/service.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { found } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import { findNamedOwners, pathId, unknownReference } from '../tenancy/references.ts';
import type { installationCreateSchema } from './schema.ts';
import * as store from './store.ts';

/** Additional work in the transaction of a new installation, such as creating its source. */
type OnInstalled = (
  tx: Transaction,
  installation: store.InstallationRow,
  agent: { id: string; orgId: string | null },
) => Promise<void>;

export type InstallationService = ReturnType<typeof createInstallationService>;

export function createInstallationService({ db, onInstalled }: { db: Database; onInstalled?: OnInstalled }) {
  async function get(caller: Caller, id: string): Promise<store.InstallationRow> {
    return found(await store.findInstallation(db, caller, pathId('installation', id)));
  }

  return {
    get,

    async create(caller: Caller, input: Static<typeof installationCreateSchema>): Promise<store.InstallationRow> {
      const { agent } = await findNamedOwners(db, caller, { agent: input.agent });
      if (!agent) throw unknownReference('agent');
      return db.begin(async (tx) => {
        const row = await store.insertInstallation(tx, caller, { id: newUuid(), agentId: agent.id, kind: input.kind });
        await onInstalled?.(tx, row, agent);
        return row;
      });
    },

    list: (caller: Caller, page: PageRequest) => store.listInstallations(db, caller, page),

    async remove(caller: Caller, id: string): Promise<void> {
      found(await deleteOwner(db, caller, 'installation', pathId('installation', id)));
    },
  };
}
