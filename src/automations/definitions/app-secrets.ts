import type { Database } from '../../db/database.ts';
import { found, notFound } from '../../lib/errors.ts';
import type { Scope } from '../../tenancy/caller.ts';
import { requireRoom } from '../../tenancy/room.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import * as store from './store.ts';

/** Every run reads all secrets. */
const secretsMax = 500;

/** The values of `$secrets` in graphs. */
export function createAppSecrets({ db, secrets }: { db: Database; secrets: Secrets }) {
  return {
    async putSecret(caller: Scope, name: string, value: string): Promise<store.SecretRow> {
      if (!/^[A-Za-z_][A-Za-z0-9_]{0,99}$/.test(name)) throw notFound();
      const wrapped = secrets.wrap(Buffer.from(value));
      return db.begin(async (tx) => {
        const message = `An app or a sandbox has at most ${secretsMax} secrets. Delete one first.`;
        const room = { things: 'secrets', max: secretsMax, message };
        await requireRoom(tx, caller, room, () => store.countOtherSecrets(tx, caller, name));
        return store.upsertSecret(tx, caller, name, wrapped);
      });
    },

    listSecrets: (caller: Scope) => store.listSecrets(db, caller),

    async removeSecret(caller: Scope, name: string): Promise<void> {
      found(await store.deleteSecret(db, caller, name));
    },
  };
}
