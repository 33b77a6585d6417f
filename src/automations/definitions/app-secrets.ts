import type { Database } from '../../db/database.ts';
import { found, notFound } from '../../lib/errors.ts';
import type { Scope } from '../../tenancy/caller.ts';
import { requireRoom } from '../../tenancy/room.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import * as store from './store.ts';

/** Every run reads all secrets. */
const room = { things: 'secrets', max: 500 };

/** The values of `$secrets` in graphs. */
export type AppSecrets = {
  putSecret(caller: Scope, name: string, value: string): Promise<store.SecretRow>;
  listSecrets(caller: Scope): Promise<store.SecretRow[]>;
  removeSecret(caller: Scope, name: string): Promise<void>;
};

export function createAppSecrets({ db, secrets }: { db: Database; secrets: Secrets }): AppSecrets {
  return {
    async putSecret(caller, name, value) {
      if (!/^[A-Za-z_][A-Za-z0-9_]{0,99}$/.test(name)) throw notFound();
      const wrapped = secrets.wrap(Buffer.from(value));
      return db.begin(async (tx) => {
        await requireRoom(tx, caller, room, () => store.countOtherSecrets(tx, caller, name));
        return store.upsertSecret(tx, caller, name, wrapped);
      });
    },

    listSecrets: (caller) => store.listSecrets(db, caller),

    async removeSecret(caller, name) {
      found(await store.deleteSecret(db, caller, name));
    },
  };
}
