import type { Static, TSchema } from 'typebox';
import type { Db } from '../../db/database.ts';
import type { Keyset } from '../../db/pages.ts';
import { deleteOwner } from '../../deletions/service.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import { found } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { fieldId, pathId, unknownReference } from '../../tenancy/references.ts';
import { mayChangeOwned } from '../../tenancy/visible.ts';
import { creatableKinds } from '../kinds/index.ts';
import type { sourceListQuery } from '../schema.ts';
import { createSourceChanges, type SourceChanges, type SourceDeps } from './change.ts';
import { createSourceCreation, type SourceCreation } from './create.ts';
import { credentialsSchemaOf } from './credentials.ts';
import { getForChange, getSource, type VisibleSource } from './find.ts';
import * as store from './store.ts';

type SourceKindView = {
  type: string;
  label: string;
  description: string;
  payload_schema: TSchema;
  credentials_schema?: TSchema;
};

export type SourceService = SourceCreation &
  SourceChanges & {
    get: typeof getSource;
    getForChange: typeof getForChange;
    /** Undefined unless the source is visible to the caller, who may change it. */
    findForChange(db: Db, caller: Caller, id: string): Promise<VisibleSource | undefined>;
    /** The sources that a member of a body names. 422 on it unless all of them are visible to the caller. */
    resolve(caller: Caller, field: string, texts: readonly string[]): Promise<string[]>;
    kinds(): { data: SourceKindView[] };
    list(
      caller: Caller,
      query: Static<typeof sourceListQuery>,
      page: PageRequest,
    ): Promise<[store.ListedSource[], number]>;
    listByKeyset(caller: Caller, type: string, keyset: Keyset): ReturnType<typeof store.listSourcesByKeyset>;
    remove(caller: Caller, id: string): Promise<void>;
  };

export function createSourceService(deps: SourceDeps): SourceService {
  const { db } = deps;

  return {
    ...createSourceCreation(deps),
    ...createSourceChanges(deps),
    get: getSource,
    getForChange,

    async resolve(caller, field, texts) {
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

    async list(caller, query, page) {
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

    async findForChange(db, caller, id) {
      const source = await store.findSource(db, caller, pathId('source', id));
      return source && mayChangeOwned(caller, source, 'update', source.agent) ? source : undefined;
    },

    listByKeyset: (caller, type, keyset) => store.listSourcesByKeyset(db, caller, type, keyset),

    async remove(caller, id) {
      const source = await getForChange(db, caller, id, 'delete');
      found(await deleteOwner(db, caller, 'source', source.id));
    },
  };
}
