import type { BlobStore } from '../blob/blob-store.ts';
import type { Database } from '../db/database.ts';
import { findFile } from '../files/store.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { notFound } from '../lib/errors.ts';
import { limits } from '../lib/limits.ts';
import { type Caller, canSeeWholeApp } from '../tenancy/caller.ts';
import { fieldId, findAgent, findOrg, unknownReference } from '../tenancy/references.ts';
import type { Owned } from '../tenancy/visible.ts';
import * as store from './store.ts';

type ConfigOwnerQuery = { agent?: string | undefined; org?: string | undefined };

export type ConfigService = ReturnType<typeof createConfigService>;

/** Reads the versioned texts written by extractions with `destination_kind: config`. */
export function createConfigService({ db, blobs }: { db: Database; blobs: BlobStore }) {
  /** The owner of the paths: the agent or org that the query names, otherwise the caller. Undefined if it is hidden. */
  async function findOwnerId(caller: Caller, query: ConfigOwnerQuery): Promise<string | undefined> {
    const none: Owned = { orgId: null, teamId: null, userId: null, agentId: null };
    const agentId = query.agent === undefined ? undefined : fieldId('agent', 'agent', query.agent);
    const orgId = query.org === undefined ? undefined : fieldId('org', 'org', query.org);
    if (agentId !== undefined && !(await findAgent(db, caller, agentId))) return undefined;
    if (orgId !== undefined && !(await findOrg(db, caller, orgId))) return undefined;
    if (agentId !== undefined) return store.configOwnerId({ ...none, agentId });
    if (orgId !== undefined) return store.configOwnerId({ ...none, orgId });
    if (canSeeWholeApp(caller)) return store.configOwnerId(none);
    return caller.kind === 'user' ? caller.userId : caller.agentId;
  }

  return {
    /** One version with its text. 404 if the owner has no such path or version. */
    async get(caller: Caller, path: string, query: ConfigOwnerQuery & { version?: number | undefined }) {
      const owner = await findOwnerId(caller, query);
      if (owner === undefined) throw unknownReference(query.agent === undefined ? 'org' : 'agent');
      const row = await store.findConfig(db, caller, owner, normalizePath(path), query.version);
      const file = row && (await findFile(db, row.appId, row.fileId));
      if (!row || !file) throw notFound();
      const bytes = await blobs.readAll(file.blobKey, limits.configBytesMax);
      return { row, content: Buffer.from(bytes).toString('utf8') };
    },

    async list(
      caller: Caller,
      query: ConfigOwnerQuery & { prefix?: string | undefined },
      page: PageRequest,
    ): Promise<[store.ConfigRow[], number]> {
      const owner = await findOwnerId(caller, query);
      return owner === undefined ? [[], 0] : store.listConfigs(db, caller, owner, query.prefix ?? '', page);
    },
  };
}

/** Normalizes a path for storage: removes empty, `.` and `..` segments. */
function normalizePath(path: string): string {
  return path
    .split('/')
    .filter((segment) => !['', '.', '..'].includes(segment))
    .join('/');
}
