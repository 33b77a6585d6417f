import { found } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import type { ResponseEvents } from './events.ts';
import { createPlanner, type Plan, type ResponseDeps } from './plan.ts';
import { searchCallItem } from './present.ts';
import { type OpenAiResponse, type ResponseInput, responseLimits } from './schema.ts';
import * as store from './store.ts';
import { createStoredResponses, requireRoomFor } from './stored.ts';
import { Writing } from './writing.ts';

const dayMs = 24 * 3_600 * 1_000;

/** Whom a response is written for. */
type ResponseReader = {
  signal: AbortSignal;
  /** Called with the documents that the response rests on. */
  onFound(documentIds: readonly string[]): void;
  /** Undefined for a reader who waits for the whole response. */
  events: ResponseEvents | undefined;
};

/** Responses of a model for OpenAI's clients, some of which rest on a search of vector stores. */
export function createResponseService(deps: ResponseDeps) {
  const { db, clock } = deps;
  const stored = createStoredResponses(deps);
  const { get } = stored;
  const plan = createPlanner(deps, stored);

  async function keep(
    caller: Caller,
    { id, input, previous, documentIds }: Plan,
    response: OpenAiResponse,
  ): Promise<void> {
    const createdAt = clock.now();
    await db.begin(async (tx) => {
      await requireRoomFor(tx, caller);
      await store.insertResponse(tx, {
        ...{ appId: caller.appId, sandboxId: caller.sandboxId, id, input, response, createdAt },
        userId: caller.kind === 'user' ? caller.userId : null,
        previousId: previous.at(-1)?.id ?? null,
        documentIds,
        expiresAt: new Date(createdAt.getTime() + responseLimits.daysKept * dayMs),
      });
    });
  }

  return {
    get,

    /** Writes a response, and stores it unless the caller declines. */
    async create(caller: Caller, given: ResponseInput, reader: ResponseReader): Promise<OpenAiResponse> {
      const planned = await plan(caller, given);
      const { draft, shown, passages, query, documentIds } = planned;
      const { events } = reader;
      reader.onFound(documentIds);
      const call = query === undefined ? undefined : searchCallItem(planned.id, query, shown);
      await events?.begin(draft);
      if (call !== undefined) await events?.search(call);
      const writing = new Writing(planned, events);
      const asks = call === undefined || passages.length > 0;
      const written = asks ? await writing.run(deps, caller, given, reader.signal) : undefined;
      const response = await writing.finish(written, call);
      if (given.store !== false) await keep(caller, planned, response);
      await events?.finish(response);
      return response;
    },

    async remove(caller: Caller, id: string): Promise<string> {
      const row = await get(caller, id);
      found(await store.deleteResponse(db, caller, row.id));
      return row.id;
    },
  };
}
