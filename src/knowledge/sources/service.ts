import type { Static } from 'typebox';
import type { Db } from '../../db/database.ts';
import type { Keyset } from '../../db/keyset.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import { found } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { fieldId, pathId, unknownReference } from '../../tenancy/references.ts';
import { mayChangeOwned } from '../../tenancy/visible.ts';
import { creatableKinds } from '../kinds/index.ts';
import type { sourceListQuery } from '../schema.ts';
import { createSourceChanges, type SourceDeps } from './change.ts';
import { createSourceCreation } from './create.ts';
import { credentialsSchemaOf } from './credentials.ts';
import { getForChange, getSource, type VisibleSource } from './find.ts';
import * as store from './store.ts';

export type SourceService = ReturnType<typeof createSourceService>;

export function createSourceService(deps: SourceDeps) {
  const { db } = deps;

  return {
    ...createSourceCreation(deps),
    ...createSourceChanges(deps),
    get: getSource,
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
      return store.listSources(
        db,
        caller,
        {
          search: query.search,
          name: query.name,
          type: query.type,
          teams: query.team?.map((text) => fieldId('team', 'team', text)),
          threads: query.thread?.map((text) => fieldId('thread', 'thread', text)),
          installation: fieldId('installation', 'installation', query.installation),
          agent: fieldId('agent', 'agent', query.agent),
          org: fieldId('org', 'org', query.org),
          lookupKey: query.lookup_key,
          ownerScope: query.owner_scope,
          withStatistics: query.include === 'statistics',
        },
        page,
      );
    },

    /** Undefined unless the source is visible to the caller, who may change it. */
    async findForChange(db: Db, caller: Caller, id: string): Promise<VisibleSource | undefined> {
      const source = await store.findSource(db, caller, pathId('source', id));
      return source && mayChangeOwned(caller, source, 'update', source.agent) ? source : undefined;
    },

    listByKeyset: (caller: Caller, type: string, keyset: Keyset) => store.listSourcesByKeyset(db, caller, type, keyset),

    async remove(caller: Caller, id: string): Promise<void> {
      const source = await getForChange(db, caller, id, 'delete');
      found(await store.deleteSource(db, caller, source.id));
    },
  };
}
