import { type Database, production } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { addJob } from '../jobs/queue.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Ledger } from '../ledger/seal.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError, found } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import { pathId } from '../tenancy/references.ts';
import * as store from './store.ts';

export function createSandboxes({ db, clock, ledger }: { db: Database; clock: Clock; ledger: Ledger }) {
  return {
    createSandbox(caller: Caller, name: string): Promise<store.SandboxRow> {
      requireProduction(caller);
      return store.insertSandbox(db, caller.appId, newUuid(), name);
    },

    listSandboxes: (caller: Caller, page: PageRequest) => {
      requireProduction(caller);
      return store.listSandboxes(db, caller.appId, page);
    },

    async getSandbox(caller: Caller, id: string): Promise<store.SandboxRow> {
      requireProduction(caller);
      return found(await store.findSandbox(db, caller.appId, pathId('sandbox', id)));
    },

    async updateSandbox(caller: Caller, id: string, name: string | undefined): Promise<store.SandboxRow> {
      requireProduction(caller);
      return found(await store.updateSandbox(db, caller.appId, pathId('sandbox', id), name));
    },

    async removeSandbox(caller: Caller, id: string): Promise<void> {
      requireProduction(caller);
      const sandboxId = found(await store.findSandbox(db, caller.appId, pathId('sandbox', id))).id;
      if (sandboxId !== production)
        await ledger.noteDeletion({ appId: caller.appId, sandboxId }, { kind: 'sandbox', id: sandboxId });
      await db.begin(async (tx) => {
        found(await store.removeSandbox(tx, caller.appId, sandboxId, clock.now()));
        await addJob(tx, taskNames.purgeSandboxes, {}, { key: taskNames.purgeSandboxes });
      });
    },
  };
}

/** 403 inside a sandbox: sandboxes are managed from production, and cannot see each other. */
function requireProduction(caller: Scope): void {
  if (caller.sandboxId !== production)
    throw new AppError('forbidden', 'Sandboxes are managed from production, not from inside a sandbox.');
}
