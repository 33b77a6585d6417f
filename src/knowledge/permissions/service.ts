import type { Static } from 'typebox';
import type { Database, Db } from '../../db/database.ts';
import { applyAclChange, readAclChange } from '../../files/acl.ts';
import { requirePrincipals } from '../../files/owners.ts';
import { found, invalidField } from '../../lib/errors.ts';
import { formatId } from '../../lib/ids.ts';
import { type Caller, canSeeWholeApp } from '../../tenancy/caller.ts';
import { pathId } from '../../tenancy/references.ts';
import { type Grant, mayChangeOwned, type Owned } from '../../tenancy/visible.ts';
import { findDocument, findDocumentById } from '../documents/store.ts';
import { setDocumentAcl } from '../index/indexing.ts';
import { lockIndex } from '../index/store.ts';
import type { SourceService } from '../sources/service.ts';
import { hasMoreReaders } from './file-readers.ts';
import type { aclChangeSchema, aclSchema } from './schema.ts';
import { internAcl, isAdmitted, listPrincipals, type Principal } from './store.ts';

const noRole = '00000000-0000-0000-0000-000000000000';
const reads = ['read'];

type AclInput = Static<typeof aclSchema>;
type AclChangeInput = Static<typeof aclChangeSchema>;

/** Who among the readers of a source sees a document. */
export type Permissions = {
  resolve: typeof resolve;
  requireNoMoreReaders: typeof requireNoMoreReaders;
  /** Changes the readers of a document; `undefined` lets every reader of its source see it. */
  change(caller: Caller, id: string, input: AclChangeInput | undefined): Promise<void>;
  /** The grants of each restricted document that the caller may change. */
  listGrants(
    db: Db,
    caller: Caller,
    documents: readonly (Owned & { id: string; appId: string; aclId: string | null; agent?: AgentOwnersOf })[],
  ): Promise<Map<string, Grant[]>>;
};

type PermissionDeps = { db: Database; sources: Pick<SourceService, 'getForChange'> };

export function createPermissions({ db, sources }: PermissionDeps): Permissions {
  const change: Permissions['change'] = async (caller, id, input) => {
    const document = found(await findDocument(db, caller, pathId('document', id)));
    const source = await sources.getForChange(db, caller, formatId('source', document.sourceId), 'update');
    const key = { appId: source.appId, sourceId: source.id };
    await db.begin(async (tx) => {
      const index = found(await lockIndex(tx, key));
      const current = found(await findDocumentById(tx, key.appId, document.id));
      let aclId: string | null = null;
      if (input !== undefined) {
        const before = current.aclId === null ? [] : await grantsOf(tx, key.appId, current.aclId);
        // Otherwise, a change of nothing would leave the document without a reader.
        if (input.grants === undefined && current.aclId === null && (input.add ?? []).length === 0)
          throw invalidField('grants', 'grants or add is required: the document is not restricted');
        aclId = await resolve(tx, caller, source, input, { before, field: '' });
        await requireNoMoreReaders(tx, key.appId, current.fileId, aclId, 'grants');
      }
      await setDocumentAcl(tx, key, index, current, aclId);
    });
  };

  return {
    resolve,
    requireNoMoreReaders,
    change,

    async listGrants(db, caller, documents) {
      const shown = documents.filter(
        (row) =>
          row.aclId !== null &&
          (canSeeWholeApp(caller) || mayChangeOwned(caller, row, 'update', row.agent ?? undefined)),
      );
      if (shown.length === 0) return new Map();
      const lists = await listPrincipals(db, caller.appId, [...new Set(shown.flatMap(({ aclId }) => aclId ?? []))]);
      return new Map(
        shown.map(({ id, aclId }) => [id, (lists.get(aclId ?? '') ?? []).map((one) => ({ ...one, actions: reads }))]),
      );
    },
  };
}

/**
 * The id of a list of grants that a body names, which may be new. 422 for unknown principals, and for a list without
 * the caller, who would lose sight of the document.
 */
async function resolve(
  db: Db,
  caller: Caller,
  source: { appId: string; sandboxId: string; orgId: string | null },
  input: AclChangeInput,
  { before = [], field = 'acl' }: { before?: readonly Grant[]; field?: string } = {},
): Promise<string> {
  const change = readAclChange(input, field);
  const grants = applyAclChange(before, change);
  await requirePrincipals(db, caller, before, change);
  const principals = grants.map(
    ({ principalType, principalId, principalRole }): Principal => ({
      principalType,
      // A role is one in the organisation of the source.
      principalId: principalType === 'org_role' ? (source.orgId ?? noRole) : principalId,
      principalRole,
    }),
  );
  const id = await db.begin((tx) => internAcl(tx, source, principals));
  if (!(await isAdmitted(db, caller, id)))
    throw invalidField(
      field === '' ? 'grants' : field,
      'must have a grant that you have, or you could not read the document',
    );
  return id;
}

/** 422 if the document could be read by its file although its grants forbid it. */
async function requireNoMoreReaders(db: Db, appId: string, fileId: string | null, aclId: string, field: string) {
  if (fileId !== null && (await hasMoreReaders(db, appId, fileId, aclId)))
    throw invalidField(field, 'the file has readers whom these grants do not name: restrict the file first');
}

type AgentOwnersOf = { id: string; orgId: string | null; teamId: string | null; userId: string | null } | null;

async function grantsOf(db: Db, appId: string, aclId: string): Promise<Grant[]> {
  const principals = (await listPrincipals(db, appId, [aclId])).get(aclId) ?? [];
  // As the body names them: a role without its organisation.
  return principals.map((one) => ({
    ...one,
    ...(one.principalType === 'org_role' ? { principalId: noRole } : {}),
    actions: reads,
  }));
}

export type { AclInput };
