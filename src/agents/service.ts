import type { Static } from 'typebox';
import type { Database, Db } from '../db/database.ts';
import { refuseDuplicate } from '../db/unique.ts';
import { deleteOwner } from '../deletions/service.ts';
import type { FileService, PictureInput } from '../files/service.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { AppError, found, invalidField } from '../lib/errors.ts';
import { looksLikeId, newUuid } from '../lib/ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import { fieldId, findAgentByKey, findNamedOwners, getPathAgent, requireCreateFor } from '../tenancy/references.ts';
import { mayChangeOwned } from '../tenancy/visible.ts';
import type { agentCreateSchema, agentUpdateSchema } from './schema.ts';
import * as store from './store.ts';

export type AgentService = ReturnType<typeof createAgentService>;

export function createAgentService({ db, files }: { db: Database; files: FileService }) {
  return {
    get: (caller: Caller, idOrKey: string) => getAgent(db, caller, idOrKey),

    async create(caller: Caller, input: Static<typeof agentCreateSchema>): Promise<store.AgentRow> {
      const owner = await resolveOwner(db, caller, input);
      await checkLookupKey(db, caller, input.lookup_key);
      const id = newUuid();
      const agent = { id, orgId: owner.orgId, profilePictureFileId: null };
      await uniqueLookupKey(() =>
        beginWithPicture(files, caller, agent, input.profile_picture, (tx) =>
          store.insertAgent(tx, caller, {
            id,
            ...owner,
            name: input.name,
            lookupKey: input.lookup_key ?? null,
            description: input.description ?? null,
            identity: input.identity ?? null,
            defaultModel: input.model ?? null,
            email: input.email ?? null,
            phoneNumber: input.phone_number ?? null,
            originator: input.originator ?? null,
            metadata: input.metadata ?? {},
          }),
        ),
      );
      return found(await store.findAgent(db, caller, id));
    },

    async list(
      caller: Caller,
      page: PageRequest,
      query: { search?: string | undefined; user?: string | undefined; org?: string | undefined },
    ): Promise<[store.AgentRow[], number]> {
      return store.listAgents(db, caller, page, {
        search: query.search,
        userId: fieldId('user', 'user', query.user),
        orgId: fieldId('org', 'org', query.org),
      });
    },

    async update(caller: Caller, idOrKey: string, input: Static<typeof agentUpdateSchema>): Promise<store.AgentRow> {
      const agent = await getChangeable(db, caller, idOrKey, 'update');
      await checkLookupKey(db, caller, input.lookup_key, agent.id);
      await uniqueLookupKey(() =>
        beginWithPicture(files, caller, agent, input.profile_picture, (tx) =>
          store.updateAgent(tx, caller, agent.id, {
            name: input.name,
            lookupKey: input.lookup_key,
            description: input.description,
            identity: input.identity,
            defaultModel: input.model,
            email: input.email,
            phoneNumber: input.phone_number,
            originator: input.originator,
            metadata: input.metadata,
          }),
        ),
      );
      return found(await store.findAgent(db, caller, agent.id));
    },

    async remove(caller: Caller, idOrKey: string): Promise<void> {
      const agent = await getChangeable(db, caller, idOrKey, 'delete');
      await deleteOwner(db, caller, 'agent', agent.id);
    },
  };
}

async function getAgent(db: Database, caller: Caller, idOrKey: string): Promise<store.AgentRow> {
  const { id } = await getPathAgent(db, caller, idOrKey);
  return found(await store.findAgent(db, caller, id));
}

async function getChangeable(
  db: Database,
  caller: Caller,
  idOrKey: string,
  change: 'update' | 'delete',
): Promise<store.AgentRow> {
  const agent = await getAgent(db, caller, idOrKey);
  const self = caller.kind === 'agent' && caller.agentId === agent.id;
  if (!self && !mayChangeOwned(caller, { ...agent, agentId: null }, change))
    throw new AppError('forbidden', 'You may see this agent, but not change it.');
  return agent;
}

/**
 * Writes the agent and its picture in one transaction: null removes the picture, undefined keeps it. A new picture is a
 * new file. The old file is deleted, and with it its capability URL.
 */
function beginWithPicture(
  files: FileService,
  caller: Caller,
  agent: { id: string; orgId: string | null; profilePictureFileId: string | null },
  picture: PictureInput | null | undefined,
  write: (tx: Db) => Promise<void>,
): Promise<void> {
  const { id, orgId, profilePictureFileId: old } = agent;
  return files.beginWithPicture(caller, 'profile_picture', picture, async (tx, save) => {
    await write(tx);
    if (picture === undefined || (picture === null && old === null)) return;
    await store.setPicture(tx, caller, id, await save({ orgId, teamId: null, userId: null, agentId: id }));
    if (old !== null) await files.remove(tx, caller.appId, old);
  });
}

/** The owner named in the body. Without one, a user owns the agent; with a key, the app does. */
async function resolveOwner(
  db: Database,
  caller: Caller,
  input: Static<typeof agentCreateSchema>,
): Promise<store.AgentOwner> {
  if (input.team !== undefined && input.user !== undefined)
    throw invalidField('user', 'give either team or user, not both');
  const named = await findNamedOwners(db, caller, input);
  const unnamed = !named.team && !named.user && !named.org;
  const userId = named.user?.id ?? (unnamed && caller.kind === 'user' ? caller.userId : null);
  const own = caller.kind === 'user' && userId === caller.userId ? caller.orgId : undefined;
  const owner = {
    orgId: named.org?.id ?? named.team?.orgId ?? named.user?.orgId ?? own ?? null,
    teamId: named.team?.id ?? null,
    userId,
  };
  requireCreateFor(caller, { ...owner, agentId: null });
  return owner;
}

const duplicateKey = { field: 'lookup_key', message: 'Another agent already uses this lookup key.' };

/** 422 for a lookup key that looks like an id, or that another agent visible to the caller already uses. */
async function checkLookupKey(
  db: Database,
  caller: Caller,
  lookupKey: string | undefined,
  own?: string,
): Promise<void> {
  if (lookupKey === undefined) return;
  if (looksLikeId(lookupKey)) throw invalidField('lookup_key', 'must not look like an id');
  const other = await findAgentByKey(db, caller, lookupKey);
  if (other && other.id !== own)
    throw new AppError('already_exists', duplicateKey.message, {
      fields: [{ field: duplicateKey.field, message: 'is taken' }],
    });
}

/** The same check for an agent that a concurrent request creates. */
function uniqueLookupKey<T>(write: () => Promise<T>): Promise<T> {
  return refuseDuplicate('agents_lookup_key', duplicateKey, write);
}
