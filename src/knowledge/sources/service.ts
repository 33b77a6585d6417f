import type { Static } from 'typebox';
import type { Database, Db } from '../../db/database.ts';
import type { Keyset } from '../../db/keyset.ts';
import { findVisibleFile } from '../../files/store.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError, found, invalidField } from '../../lib/errors.ts';
import { newUuid } from '../../lib/ids.ts';
import { limits } from '../../lib/limits.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { checkLookupKey, refuseDuplicateKey } from '../../tenancy/lookup-keys.ts';
import { fieldId, findNamedOwners, pathId, requireCreateFor, unknownReference } from '../../tenancy/references.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import { type AgentOwners, administersOrgOf, type Change, mayChangeOwned, type Owned } from '../../tenancy/visible.ts';
import type { EmbeddingService } from '../embedding/service.ts';
import { insertIndex } from '../index/store.ts';
import { fileDocument, payloadFile } from '../kinds/file-document.ts';
import { checkPayload, creatableKinds, findCreatableKind } from '../kinds/index.ts';
import { nextRun, type Payload, type UrlCheck } from '../kinds/payload.ts';
import type { sourceCreateSchema, sourceListQuery, sourceUpdateSchema } from '../schema.ts';
import { credentialsSchemaOf, keepsCredentials, nextCredentials } from './credentials.ts';
import * as store from './store.ts';

type SourceDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  checkUrl: UrlCheck;
  embedding: Pick<EmbeddingService, 'require' | 'requireOperator' | 'nameFirst' | 'rename'>;
};

/** A source with the owners that decide who may change it. */
export type VisibleSource = store.SourceView & { agent: AgentOwners | undefined };

export type SourceService = ReturnType<typeof createSourceService>;

export function createSourceService({ db, clock, secrets, checkUrl, embedding }: SourceDeps) {
  async function get(db: Db, caller: Caller, id: string): Promise<VisibleSource> {
    return found(await store.findSource(db, caller, pathId('source', id)));
  }

  /** 404 if the source is not visible to the caller, 403 if the caller may not change it. */
  async function getForChange(db: Db, caller: Caller, id: string, change: Change): Promise<VisibleSource> {
    const source = await get(db, caller, id);
    const mayDelete = change === 'delete' && administersOrgOf(caller, source);
    if (!mayDelete && !mayChangeOwned(caller, source, change, source.agent))
      throw new AppError('forbidden', `You may see this source, but not ${change} it.`);
    return source;
  }

  async function checkConfiguration(db: Db, caller: Caller, type: string, payload: Payload): Promise<void> {
    const kind = findCreatableKind(type);
    if (kind) checkPayload(kind, payload, checkUrl);
    const file = type === fileDocument.type ? payloadFile(payload) : undefined;
    if (typeof file !== 'string') return;
    const field = payload.file === undefined ? 'payload.file_id' : 'payload.file';
    if (!(await findVisibleFile(db, caller, fieldId('file', field, file)))) throw unknownReference(field);
  }

  /** The space of the vectors of an embedder that a source may name; null for the installation's. */
  async function requireEmbedder(caller: Caller, name: string | null): Promise<string | null> {
    if (name !== null) return (await embedding.require(caller, name)).model;
    embedding.requireOperator(caller);
    return null;
  }

  return {
    get,
    getForChange,

    /** The sources that a member of a body names. 422 on it unless all of them are visible to the caller. */
    async resolve(caller: Caller, field: string, texts: readonly string[]): Promise<string[]> {
      const ids = [...new Set(texts.map((text) => fieldId('source', field, text)))];
      if ((await store.countVisibleSources(db, caller, ids)) < ids.length) throw unknownReference(field);
      return ids;
    },

    kinds: () => ({
      data: creatableKinds.map((kind) => ({
        type: kind.type,
        label: kind.label,
        description: kind.description,
        payload_schema: kind.payload,
        ...(kind.credentials ? { credentials_schema: credentialsSchemaOf(kind.credentials.members) } : {}),
      })),
    }),

    async list(
      caller: Caller,
      query: Static<typeof sourceListQuery>,
      page: PageRequest,
    ): Promise<[store.ListedSource[], number]> {
      const id = (kind: 'installation' | 'agent' | 'org', text: string | undefined) =>
        text === undefined ? undefined : fieldId(kind, kind, text);
      return store.listSources(
        db,
        caller,
        {
          search: query.search,
          name: query.name,
          type: query.type,
          teams: query.team?.map((text) => fieldId('team', 'team', text)),
          threads: query.thread?.map((text) => fieldId('thread', 'thread', text)),
          installation: id('installation', query.installation),
          agent: id('agent', query.agent),
          org: id('org', query.org),
          lookupKey: query.lookup_key,
          ownerScope: query.owner_scope,
          withStatistics: query.include === 'statistics',
        },
        page,
      );
    },

    /** @param owned the owner, if the input does not name it. */
    async create(
      db: Db,
      caller: Caller,
      input: Static<typeof sourceCreateSchema>,
      ownedBy?: Owned,
    ): Promise<store.SourceView> {
      if (!findCreatableKind(input.type))
        throw invalidField('type', `must be one of ${creatableKinds.map(({ type }) => type).join(', ')}`);
      checkLookupKey(caller, input.lookup_key);
      checkMetadata(input.metadata);
      const owned = ownedBy ?? (await resolveOwner(db, caller, input));
      if (input.payload) await checkConfiguration(db, caller, input.type, input.payload);
      const parentSourceId = await optionalReference('parent_source', input.parent_source, async (text) => {
        const id = fieldId('source', 'parent_source', text);
        return (await store.sourceExists(db, caller, id)) ? id : undefined;
      });
      const threadId = await optionalReference('thread', input.thread, async (text) => {
        const id = fieldId('thread', 'thread', text);
        return (await store.threadExists(db, caller, id)) ? id : undefined;
      });
      const payload = input.payload ?? null;
      const state = input.state ?? 'active';
      const kind = findCreatableKind(input.type);
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
      return uniqueKey(() => db.begin(write));
    },

    /** Undefined unless the source is visible to the caller, who may change it. */
    async findForChange(db: Db, caller: Caller, id: string): Promise<VisibleSource | undefined> {
      const source = await store.findSource(db, caller, pathId('source', id));
      return source && mayChangeOwned(caller, source, 'update', source.agent) ? source : undefined;
    },

    listByKeyset: (caller: Caller, type: string, keyset: Keyset) => store.listSourcesByKeyset(db, caller, type, keyset),

    async update(caller: Caller, id: string, change: Static<typeof sourceUpdateSchema>): Promise<store.SourceView> {
      const source = await getForChange(db, caller, id, 'update');
      checkLookupKey(caller, change.lookup_key);
      checkMetadata(change.metadata);
      if (change.payload) await checkConfiguration(db, caller, source.type, change.payload);
      const state = change.state ?? source.state;
      const unchanged = change.payload === undefined && state === source.state;
      const { payload, metadata, lookup_key: lookupKey } = change;
      const nextPullAt = unchanged
        ? source.nextPullAt
        : dueAt(source.type, state, payload ?? source.payload, clock.now());
      const kind = findCreatableKind(source.type);
      const nextPayload = payload ?? source.payload;
      const kept = keepsCredentials(caller, source.payload, nextPayload) ? source : undefined;
      const credentials = nextCredentials(secrets, kind, nextPayload, change.credentials, kept);
      const { embedder, version_retention_days: versionRetentionDays } = change;
      const next = {
        ...{ payload, metadata, lookupKey, nextPullAt, versionRetentionDays, ...credentials },
        state: change.state,
      };
      const write = (db: Db) => uniqueKey(() => store.updateSource(db, caller, source.id, next));
      if (embedder === undefined) return found(await write(db));
      const space = await requireEmbedder(caller, embedder);
      return db.begin(async (tx) => {
        await embedding.rename(tx, { appId: source.appId, sourceId: source.id }, embedder, space);
        return found(await write(tx));
      });
    },

    async remove(caller: Caller, id: string): Promise<void> {
      const source = await getForChange(db, caller, id, 'delete');
      found(await store.deleteSource(db, caller, source.id));
    },
  };
}

function uniqueKey<T>(write: () => Promise<T>): Promise<T> {
  return refuseDuplicateKey('knowledge_sources_lookup_key', 'source', write);
}

/** When the next automatic pull is due; null for a paused source, a kind without pulls, or no schedule. */
export function dueAt(type: string, state: string, payload: Payload | null, now: Date): Date | null {
  if (state !== 'active' || findCreatableKind(type)?.pull === undefined) return null;
  return nextRun(payload?.schedule, now) ?? null;
}

export function checkMetadata(metadata: Record<string, unknown> | undefined, field = 'metadata'): void {
  if (metadata && Buffer.byteLength(JSON.stringify(metadata)) > limits.metadataBytesMax)
    throw invalidField(field, `is larger than ${limits.metadataBytesMax} bytes`);
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
