import type { Static } from 'typebox';
import type { Db } from '../../db/database.ts';
import { AppError, found, invalidField } from '../../lib/errors.ts';
import { newUuid } from '../../lib/ids.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { checkLookupKey, refuseDuplicateKey } from '../../tenancy/lookup-keys.ts';
import { fieldId, findNamedOwners, requireCreateFor, unknownReference } from '../../tenancy/references.ts';
import type { Owned } from '../../tenancy/visible.ts';
import { insertIndex } from '../index/store.ts';
import { creatableKinds, findCreatableKind } from '../kinds/index.ts';
import type { sourceCreateSchema } from '../schema.ts';
import type { SourceDeps } from './change.ts';
import { checkConfiguration, dueAt } from './configuration.ts';
import { nextCredentials } from './credentials.ts';
import * as store from './store.ts';

export type SourceCreation = {
  /** @param ownedBy the owner, if the input does not name it */
  create(db: Db, caller: Caller, input: Static<typeof sourceCreateSchema>, ownedBy?: Owned): Promise<store.SourceView>;
};

export function createSourceCreation({ clock, secrets, checkUrl, embedding }: SourceDeps): SourceCreation {
  return {
    async create(db, caller, input, ownedBy) {
      const kind = findCreatableKind(input.type);
      if (kind === undefined)
        throw invalidField('type', `must be one of ${creatableKinds.map(({ type }) => type).join(', ')}`);
      checkLookupKey(caller, input.lookup_key);
      const owned = ownedBy ?? (await resolveOwner(db, caller, input));
      const payload = input.payload ?? null;
      if (payload) await checkConfiguration(db, caller, { type: input.type, payload }, checkUrl);
      const parentSourceId = await optionalReference('parent_source', input.parent_source, async (text) => {
        const id = fieldId('source', 'parent_source', text);
        return (await store.sourceExists(db, caller, id)) ? id : undefined;
      });
      const threadId = await optionalReference('thread', input.thread, async (text) => {
        const id = fieldId('thread', 'thread', text);
        return (await store.threadExists(db, caller, id)) ? id : undefined;
      });
      const state = input.state ?? 'active';
      const credentials = nextCredentials(secrets, kind, payload, input.credentials);
      const embedder = input.embedder === undefined ? undefined : await embedding.require(caller, input.embedder);
      const write = async (tx: Db) => {
        const row = await store.insertSource(tx, caller, {
          ...owned,
          ...credentials,
          id: newUuid(),
          type: input.type,
          state,
          payload,
          metadata: input.metadata ?? null,
          threadId,
          parentSourceId,
          lookupKey: input.lookup_key ?? null,
          installationId: null,
          nextPullAt: dueAt(input.type, state, payload, clock.now()),
          versionRetentionDays: input.version_retention_days ?? null,
        });
        const key = { appId: row.appId, sourceId: row.id };
        await insertIndex(tx, key);
        if (input.embedder === undefined || embedder === undefined) return row;
        await embedding.nameFirst(tx, key, input.embedder, embedder);
        return found(await store.findSource(tx, caller, row.id));
      };
      return refuseDuplicateKey('knowledge_sources_lookup_key', 'source', () => db.begin(write));
    },
  };
}

async function optionalReference(
  field: string,
  text: string | undefined,
  find: (text: string) => Promise<string | undefined>,
): Promise<string | null> {
  if (text === undefined) return null;
  const id = await find(text);
  if (id === undefined) throw unknownReference(field);
  return id;
}

/** Resolves the owner: exactly one of team, user, agent and org. The organisation is that of the owner. */
async function resolveOwner(db: Db, caller: Caller, input: Static<typeof sourceCreateSchema>): Promise<Owned> {
  const members = (['team', 'user', 'agent', 'org'] as const).filter((member) => input[member] !== undefined);
  if (members.length !== 1) {
    const message =
      members.length === 0 ? 'exactly one of team, user, agent and org is required' : 'only one owner is allowed';
    const wrong = members.length === 0 ? (['team', 'user', 'agent', 'org'] as const) : members;
    throw new AppError('invalid_parameters', `The owner: ${message}.`, {
      fields: wrong.map((field) => ({ field, message })),
    });
  }
  const named = await findNamedOwners(db, caller, input);
  const owned: Owned = {
    orgId: named.org?.id ?? named.agent?.orgId ?? named.team?.orgId ?? named.user?.orgId ?? null,
    teamId: named.team?.id ?? null,
    userId: named.user?.id ?? null,
    agentId: named.agent?.id ?? null,
  };
  requireCreateFor(caller, owned, named.agent);
  return owned;
}
