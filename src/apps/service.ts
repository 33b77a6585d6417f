import type { Static } from 'typebox';
import type { Database, Db } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Ledger } from '../ledger/seal.ts';
import type { Clock } from '../lib/clock.ts';
import { defined } from '../lib/defined.ts';
import { found } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { DeveloperCaller, DeveloperIdentity, Scope } from '../tenancy/caller.ts';
import { checkRetention } from '../tenancy/run-retention.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { setOwnLimits } from '../usage/service.ts';
import { generateCapabilityKey } from './bootstrap.ts';
import { createKeys } from './keys.ts';
import { createSandboxes } from './sandboxes.ts';
import type { appUpdateSchema } from './schema.ts';
import * as store from './store.ts';

export type AppService = ReturnType<typeof createAppService>;

/** Puts new apps into cells, and lists those of all cells. */
export type AppPlacement = {
  create(app: { id: string; developerId: string; name: string; capabilityKey: Buffer }): Promise<store.AppRow>;
  list(developerId: string, page: PageRequest): Promise<[store.AppRow[], number]>;
  /** The ids of a developer's apps, at most so many. */
  listIds(developerId: string, max: number): Promise<string[]>;
  rename(row: store.AppRow): Promise<void>;
};

export type AppDeps = {
  db: Database;
  secrets: Secrets;
  clock: Clock;
  ledger: Ledger;
  /** Undefined: every app is in this database. */
  placement: AppPlacement | undefined;
  /** Ends every connection of an assistant to this app. */
  disconnectAssistants(tx: Db, appId: string): Promise<void>;
};

/** Apps, their sandboxes and keys. */
export function createAppService(deps: AppDeps) {
  const { db, secrets, placement, disconnectAssistants } = deps;

  return {
    ...createSandboxes(deps),
    ...createKeys(deps),

    async create(developerId: string, name: string): Promise<store.AppRow> {
      const app = { id: newUuid(), developerId, name, capabilityKey: generateCapabilityKey(secrets) };
      return placement?.create(app) ?? db.begin((tx) => store.insertApp(tx, app));
    },

    list: ({ developerId }: DeveloperIdentity | DeveloperCaller, page: PageRequest) =>
      placement?.list(developerId, page) ?? store.listApps(db, developerId, page),

    async get(caller: Scope): Promise<store.AppRow> {
      return found(await store.findApp(db, caller.appId));
    },

    async update(caller: Scope, input: Static<typeof appUpdateSchema>): Promise<store.AppRow> {
      const { name, quotas = {}, run_retention: retention, assistants } = input;
      checkRetention('run_retention', retention);
      const row = await db.begin(async (tx) => {
        await setOwnLimits(tx, caller.appId, quotas);
        const updated = found(await store.updateApp(tx, caller.appId, defined({ name, retention, assistants })));
        if (!updated.assistants) await disconnectAssistants(tx, caller.appId);
        return updated;
      });
      await placement?.rename(row);
      return row;
    },
  };
}
