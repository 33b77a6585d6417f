import type { Static } from 'typebox';
import { type Database, isForeignKeyViolation, production } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError, found, invalidField } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import { fieldId, pathId, unknownReference } from '../tenancy/references.ts';
import { digest, generateCredential } from '../tenancy/secrets.ts';
import type { keyCreateSchema } from './schema.ts';
import * as store from './store.ts';

const dayMs = 24 * 60 * 60 * 1_000;

export function createKeys({ db, clock }: { db: Database; clock: Clock }) {
  /** The sandbox of a new key: that of its creator. A creator in production may name one. */
  async function chooseKeySandbox(caller: Caller, named: string | undefined): Promise<string> {
    if (named === undefined) return caller.sandboxId;
    const id = fieldId('sandbox', 'sandbox', named);
    const inside = caller.sandboxId !== production && id !== caller.sandboxId;
    if (inside || !(await store.findSandbox(db, caller.appId, id))) throw unknownReference('sandbox');
    return id;
  }

  return {
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
      const { expires_in_days: days } = input;
      const fullKey = generateCredential(input.type === 'secret' ? 'sk' : 'pk');
      const key = {
        appId: caller.appId,
        id: newUuid(),
        sandboxId,
        type: input.type,
        name: input.name ?? null,
        hint: fullKey.slice(0, 8),
        digest: digest(fullKey),
        expiresAt: days === undefined ? null : new Date(clock.now().getTime() + days * dayMs),
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
