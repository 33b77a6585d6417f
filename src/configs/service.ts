import type { BlobStore } from '../blob/blob-store.ts';
import type { Database } from '../db/database.ts';
import { notFound } from '../errors.ts';
import { findFile } from '../files/store.ts';
import type { PageRequest } from '../http/pages.ts';
import { limits } from '../limits.ts';
import { type Caller, canSeeWholeApp } from '../tenancy/caller.ts';
import { findNamedOwners } from '../tenancy/references.ts';
import type { Owned } from '../tenancy/visible.ts';
import * as store from './store.ts';

type ConfigOwnerQuery = { agent?: string | undefined; org?: string | undefined };

export type ConfigService = ReturnType<typeof createConfigService>;

/** Reads the versioned texts written by extractions with `destination_kind: config`. */
export function createConfigService({ db, blobs }: { db: Database; blobs: BlobStore }) {
  /** The owner of the paths: the agent or org named in the query, otherwise the caller. */
  async function ownerId(caller: Caller, query: ConfigOwnerQuery): Promise<string> {
    const named = await findNamedOwners(db, caller, query);
    const none: Owned = { orgId: null, teamId: null, userId: null, agentId: null };
    if (named.agent) return store.configOwnerId({ ...none, agentId: named.agent.id });
    if (named.org) return store.configOwnerId({ ...none, orgId: named.org.id });
    if (canSeeWholeApp(caller)) return store.configOwnerId(none);
    return caller.kind === 'user' ? caller.userId : caller.agentId;
  }

  return {
    /** One version with its text. 404 when the owner has no such path or version. */
    async get(caller: Caller, path: string, query: ConfigOwnerQuery & { version?: number | undefined }) {
      const row = await store.findConfig(db, caller, await ownerId(caller, query), virtualPath(path), query.version);
      const file = row && (await findFile(db, row.appId, row.fileId));
      if (!row || !file) throw notFound();
      const bytes = await blobs.readAll(file.blobKey, limits.configBytesMax);
      return { row, content: Buffer.from(bytes).toString('utf8') };
    },

    async list(caller: Caller, query: ConfigOwnerQuery & { prefix?: string | undefined }, page: PageRequest) {
      return store.listConfigs(db, caller, await ownerId(caller, query), query.prefix ?? '', page);
    },
  };
}

/** Normalizes a path for storage: removes empty, `.` and `..` segments. */
function virtualPath(path: string): string {
  return path
    .split('/')
    .filter((segment) => !['', '.', '..'].includes(segment))
    .join('/');
}
