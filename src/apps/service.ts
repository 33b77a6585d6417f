import type { Static } from 'typebox';
import { type Database, type Db, isForeignKeyViolation, production } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Ledger } from '../ledger/seal.ts';
import type { Clock } from '../lib/clock.ts';
import { defined } from '../lib/defined.ts';
import { AppError, found, invalidField } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { Caller, DeveloperCaller, DeveloperIdentity, Scope } from '../tenancy/caller.ts';
import { fieldId, pathId, unknownReference } from '../tenancy/references.ts';
import { checkRetention } from '../tenancy/run-retention.ts';
import { digest, generateCredential, type Secrets } from '../tenancy/secrets.ts';
import { setOwnLimits } from '../usage/service.ts';
import { generateCapabilityKey } from './bootstrap.ts';
import type { appUpdateSchema, keyCreateSchema } from './schema.ts';
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

type AppDeps = {
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
export function createAppService({ db, secrets, clock, ledger, placement, disconnectAssistants }: AppDeps) {
  /** The sandbox of a new key: that of its creator. A creator in production may name one. */
  async function chooseKeySandbox(caller: Caller, named: string | undefined): Promise<string> {
    if (named === undefined) return caller.sandboxId;
    const id = fieldId('sandbox', 'sandbox', named);
    const inside = caller.sandboxId !== production && id !== caller.sandboxId;
    if (inside || !(await store.findSandbox(db, caller.appId, id))) throw unknownReference('sandbox');
    return id;
  }

  const expiryAfter = (days: number | undefined) =>
    days === undefined ? null : new Date(clock.now().getTime() + days * dayMs);

  return {
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
      found(await store.deleteSandbox(db, caller.appId, sandboxId));
    },

    /** Returns the row and the key itself, which is shown only here. */
    async createKey(
      caller: Caller,
      input: Static<typeof keyCreateSchema>,
    ): Promise<store.KeyRow & { fullKey: string }> {
      if (caller.kind === 'server' && caller.scopes !== undefined)
        throw new AppError(
          'forbidden',
          'A key with scopes cannot create keys. Use a key without scopes, or a developer token.',
        );
      if (input.type === 'publishable' && input.scopes !== undefined)
        throw invalidField('scopes', 'only secret keys can have scopes');
      const sandboxId = await chooseKeySandbox(caller, input.sandbox);
      const fullKey = generateCredential(input.type === 'secret' ? 'sk' : 'pk');
      const key = {
        appId: caller.appId,
        id: newUuid(),
        sandboxId,
        type: input.type,
        name: input.name ?? null,
        hint: fullKey.slice(0, 8),
        digest: digest(fullKey),
        expiresAt: expiryAfter(input.expires_in_days),
        scopes: input.scopes ?? null,
      };
      try {
        return { ...(await store.insertKey(db, key)), fullKey };
      } catch (error) {
        // Only a sandbox named in the body may be missing; that of the credential exists.
        if (input.sandbox !== undefined && isForeignKeyViolation(error)) throw unknownReference('sandbox');
        throw error;
      }
    },

    listKeys: (caller: Caller, page: PageRequest) => store.listKeys(db, caller, page),

    async getKey(caller: Caller, id: string): Promise<store.KeyRow> {
      return found(await store.findKey(db, caller, pathId('key', id)));
    },

    async revokeKey(caller: Caller, id: string): Promise<void> {
      found(await store.revokeKey(db, caller, pathId('key', id)));
    },
  };
}

const dayMs = 24 * 60 * 60 * 1_000;

/** 403 inside a sandbox: sandboxes are managed from production, and cannot see each other. */
function requireProduction(caller: Scope): void {
  if (caller.sandboxId !== production)
    throw new AppError('forbidden', 'Sandboxes are managed from production, not from inside a sandbox.');
}
