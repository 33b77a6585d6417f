import type { Database, Db } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Clock } from '../lib/clock.ts';
import { found, invalidField } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { AliasRow } from '../llm/model-store.ts';
import type { OperatorModels } from '../llm/operator-models.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import { pathId } from '../tenancy/references.ts';
import { requireRoom } from '../tenancy/room.ts';
import { requireFreeName } from './names.ts';
import type { AliasCreate, AliasUpdate } from './schema.ts';
import * as store from './store.ts';

type AliasDeps = {
  db: Database;
  clock: Clock;
  operator: OperatorModels;
  /** Called when names of a space may stand for other models. */
  onChanged(tx: Db, scope: Scope): Promise<void>;
};

/** Aliases of production and of each sandbox. */
const room = { things: 'model aliases', max: 100 };

/** Names that stand for models of the app or of the operator. */
export function createAliases({ db, clock, operator, onChanged }: AliasDeps) {
  /** An alias lists models of the app and of the operator, no aliases. */
  async function requireModels(tx: Db, scope: Scope, models: readonly string[]): Promise<void> {
    const names = await store.listNames(tx, scope);
    for (const [index, model] of models.entries()) {
      const own = names.find(({ name }) => name === model)?.kind;
      if (own === 'alias' || (own === undefined && operator.aliases.has(model)))
        throw invalidField(`models.${index}`, 'is an alias, and aliases do not nest');
      if (own === undefined && !operator.models.has(model)) throw invalidField(`models.${index}`, 'names no model');
    }
  }

  return {
    async createAlias(caller: Caller, { name, models }: AliasCreate): Promise<AliasRow> {
      return db.begin(async (tx) => {
        await requireRoom(tx, caller, room, () => store.countAliases(tx, caller));
        await requireFreeName(tx, caller, name);
        await requireModels(tx, caller, models);
        return store.insertAlias(tx, caller, { id: newUuid(), name, models, now: clock.now() });
      });
    },

    listAliases: (caller: Caller, page: PageRequest) => store.listAliases(db, caller, page),

    async getAlias(caller: Caller, id: string): Promise<AliasRow> {
      return found(await store.findAlias(db, caller, pathId('modelAlias', id)));
    },

    async updateAlias(caller: Caller, id: string, change: AliasUpdate): Promise<AliasRow> {
      const alias = pathId('modelAlias', id);
      return db.begin(async (tx) => {
        found(await store.findAlias(tx, caller, alias));
        if (change.name !== undefined) await requireFreeName(tx, caller, change.name, alias);
        if (change.models !== undefined) await requireModels(tx, caller, change.models);
        await onChanged(tx, caller);
        return found(await store.updateAlias(tx, caller, alias, change, clock.now()));
      });
    },

    async removeAlias(caller: Caller, id: string): Promise<void> {
      found(await store.deleteAlias(db, caller, pathId('modelAlias', id)));
    },
  };
}
