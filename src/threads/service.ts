import type { Static } from 'typebox';
import type { Database } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError, found, invalidField } from '../lib/errors.ts';
import { formatId, newUuid } from '../lib/ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import { findAgent, findNamedOwners, pathId } from '../tenancy/references.ts';
import { mayChangeOwned } from '../tenancy/visible.ts';
import type { messageSchema, threadCreateSchema } from './schema.ts';
import * as store from './store.ts';

export type ThreadService = ReturnType<typeof createThreadService>;

export type Message = {
  id: string;
  threadId: string;
  content: string;
  metadata: Record<string, unknown>;
  createdAt: Date;
};

/** Ingests a message posted to a thread. Throws when no source accepts it. */
type OnMessage = (caller: Caller, thread: store.ThreadRow, message: Message) => Promise<void>;

type ThreadDeps = { db: Database; clock: Clock; onMessage: OnMessage };

export function createThreadService({ db, clock, onMessage }: ThreadDeps) {
  async function get(caller: Caller, id: string): Promise<store.ThreadRow> {
    return found(await store.findThread(db, caller, pathId('thread', id)));
  }

  return {
    get,

    /** At most one of user, team and agent owns a thread. Its org is the one named, otherwise the owner's. */
    async create(caller: Caller, input: Static<typeof threadCreateSchema>): Promise<store.ThreadRow> {
      const owners = (['user', 'team', 'agent'] as const).filter((member) => input[member] !== undefined);
      if (owners[1] !== undefined) throw invalidField(owners[1], 'give at most one of user, team and agent');
      const named = await findNamedOwners(db, caller, input);
      return store.insertThread(db, caller, {
        id: newUuid(),
        title: input.title ?? null,
        orgId: named.org?.id ?? named.agent?.orgId ?? named.team?.orgId ?? named.user?.orgId ?? null,
        teamId: named.team?.id ?? null,
        userId: named.user?.id ?? null,
        agentId: named.agent?.id ?? null,
      });
    },

    list: (caller: Caller, page: PageRequest) => store.listThreads(db, caller, page),

    async update(caller: Caller, id: string, title: string | undefined): Promise<store.ThreadRow> {
      return found(await store.updateThread(db, caller, pathId('thread', id), title));
    },

    async remove(caller: Caller, id: string): Promise<void> {
      found(await store.deleteThread(db, caller, pathId('thread', id)));
    },

    async postMessage(caller: Caller, id: string, input: Static<typeof messageSchema>): Promise<Message> {
      const thread = await get(caller, id);
      const agent = thread.agentId === null ? undefined : await findAgent(db, caller, thread.agentId);
      if (!mayChangeOwned(caller, thread, 'update', agent))
        throw new AppError('forbidden', 'You may read this thread, but not write to it.');
      const messageId = newUuid();
      const metadata = {
        ...input.metadata,
        thread: formatId('thread', thread.id),
        message: formatId('message', messageId),
        ...(caller.kind === 'user' ? { user: formatId('user', caller.userId) } : {}),
      };
      const { content } = input;
      const message = { id: messageId, threadId: thread.id, content, metadata, createdAt: clock.now() };
      await onMessage(caller, thread, message);
      return message;
    },
  };
}
