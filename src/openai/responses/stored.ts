import type { Db, Transaction } from '../../db/database.ts';
import type { Knowledge } from '../../knowledge/domain.ts';
import type { Clock } from '../../lib/clock.ts';
import { found, invalidField } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { fieldId, pathId, unknownReference } from '../../tenancy/references.ts';
import { requireRoom } from '../../tenancy/room.ts';
import { responseLimits } from './schema.ts';
import * as store from './store.ts';

export type StoredResponses = ReturnType<typeof createStoredResponses>;

/** Responses that were written before. */
export function createStoredResponses({ db, clock, knowledge }: { db: Db; clock: Clock; knowledge: Knowledge }) {
  /** Whether the caller may still read what the responses were written from. */
  function seesAll(caller: Caller, rows: readonly store.ResponseRow[]): Promise<boolean> {
    return knowledge.documents.seesAll(caller, [...new Set(rows.flatMap(({ documentIds }) => documentIds))]);
  }

  return {
    async get(caller: Caller, id: string): Promise<store.ResponseRow> {
      const row = found(await store.findResponse(db, caller, pathId('response', id), clock.now()));
      return found((await seesAll(caller, [row])) ? row : undefined);
    },

    /** The responses that one continues, the oldest first. */
    async readPrevious(caller: Caller, text: string): Promise<store.ResponseRow[]> {
      const field = 'previous_response_id';
      const chain = await store.listChain(db, caller, fieldId('response', field, text), clock.now());
      const [oldest] = chain;
      if (oldest === undefined || !(await seesAll(caller, chain))) throw unknownReference(field);
      if (chain.length > responseLimits.previousMax)
        throw invalidField(field, `continues more than ${responseLimits.previousMax} responses`);
      if (oldest.previousId !== null) throw invalidField(field, 'continues a response that is no longer stored');
      return chain;
    },
  };
}

/** 429 if the space or the user has as many stored responses as may be kept. */
export async function requireRoomFor(tx: Transaction, caller: Caller): Promise<void> {
  const refusal = 'Delete some, or send "store": false.';
  const message = `There are already ${responseLimits.storedMax} stored responses. ${refusal}`;
  await requireRoom(tx, caller, { things: 'responses', max: responseLimits.storedMax, message }, () =>
    store.countResponses(tx, caller),
  );
  if (caller.kind !== 'user') return;
  const own = { things: 'responses of a user', max: responseLimits.storedOfUserMax, of: caller.userId };
  const ownMessage = `You already have ${responseLimits.storedOfUserMax} stored responses. ${refusal}`;
  await requireRoom(tx, caller, { ...own, message: ownMessage }, () => store.countResponses(tx, caller, caller.userId));
}
