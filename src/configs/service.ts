import { hash } from 'node:crypto';
import type { Static } from 'typebox';
import type { BlobStore } from '../blob/blob-store.ts';
import type { Database } from '../db/database.ts';
import type { FileService } from '../files/service.ts';
import { findFile } from '../files/store.ts';
import { beginWith } from '../files/write.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { found, invalidField, notFound } from '../lib/errors.ts';
import { limits } from '../lib/limits.ts';
import { type Caller, canSeeWholeApp } from '../tenancy/caller.ts';
import { fieldId, findAgent, findNamedOwners, findOrg, unknownReference } from '../tenancy/references.ts';
import { requireRoom } from '../tenancy/room.ts';
import type { Owned } from '../tenancy/visible.ts';
import type { configWriteSchema } from './schema.ts';
import * as store from './store.ts';

const room = { things: 'config entries', max: 10_000 };

type ConfigOwnerQuery = { agent?: string | undefined; org?: string | undefined };

export type ConfigService = ReturnType<typeof createConfigService>;

/** Versioned texts, which operators and extractions with `destination_kind: config` write. */
export function createConfigService({ db, blobs, files }: { db: Database; blobs: BlobStore; files: FileService }) {
  return {
    /** Writes the next version of a path for an operator, unless the newest is the same. */
    async write(caller: Caller, path: string, input: Static<typeof configWriteSchema>) {
      const { content, content_type: contentType = 'text/plain', if_version: ifVersion } = input;
      const virtualPath = readNewPath(path);
      const owned = await getOwner(db, caller, input);
      const ownerId = store.configOwnerId(owned);
      const bytes = Buffer.from(content);
      if (bytes.length > limits.configTextBytesMax)
        throw invalidField('content', `is larger than ${limits.configTextBytesMax} bytes`);
      const contentHash = hash('sha256', bytes, 'buffer');
      const present = await store.findConfig(db, caller, ownerId, virtualPath, undefined);
      if (ifVersion !== undefined && ifVersion !== (present?.version ?? 0)) throw store.anotherVersion();
      if (present?.contentType === contentType && contentHash.equals(present.contentHash))
        return { row: present, content };
      const filename = virtualPath.split('/').at(-1) ?? virtualPath;
      const stored = await files.store(caller, { bytes, filename, contentType });
      const row = await beginWith(db, stored, async (tx) => {
        if (!present) await requireRoom(tx, caller, room, () => store.countConfigs(tx, caller));
        const { id: fileId } = await stored.commit(tx, owned);
        const entry = { owned, virtualPath, contentType, contentHash, fileId };
        await store.writeConfigVersion(tx, caller, entry, ifVersion);
        return found(await store.findConfig(tx, caller, ownerId, virtualPath, undefined));
      });
      return { row, content };
    },

    /** Deletes a path with all its versions. */
    async remove(caller: Caller, path: string, query: ConfigOwnerQuery): Promise<void> {
      const ownerId = store.configOwnerId(await getOwner(db, caller, query));
      await db.begin(async (tx) => {
        const row = found(await store.findConfig(tx, caller, ownerId, normalizePath(path), undefined));
        await store.deleteConfig(tx, caller, row.id);
      });
    },

    /** One version with its text. 404 if the owner has no such path or version. */
    async get(caller: Caller, path: string, query: ConfigOwnerQuery & { version?: number | undefined }) {
      const owner = await findOwnerId(db, caller, query);
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
      const owner = await findOwnerId(db, caller, query);
      return owner === undefined ? [[], 0] : store.listConfigs(db, caller, owner, query.prefix ?? '', page);
    },
  };
}

/** The owner of the paths: the agent or org that the query names, otherwise the caller. Undefined if it is hidden. */
async function findOwnerId(db: Database, caller: Caller, query: ConfigOwnerQuery): Promise<string | undefined> {
  const none: Owned = { orgId: null, teamId: null, userId: null, agentId: null };
  const agentId = fieldId('agent', 'agent', query.agent);
  const orgId = fieldId('org', 'org', query.org);
  if (agentId !== undefined && !(await findAgent(db, caller, agentId))) return undefined;
  if (orgId !== undefined && !(await findOrg(db, caller, orgId))) return undefined;
  if (agentId !== undefined) return store.configOwnerId({ ...none, agentId });
  if (orgId !== undefined) return store.configOwnerId({ ...none, orgId });
  if (canSeeWholeApp(caller)) return store.configOwnerId(none);
  return caller.kind === 'user' ? caller.userId : caller.agentId;
}

/** The owner that an operator names, or the app. */
async function getOwner(db: Database, caller: Caller, query: ConfigOwnerQuery): Promise<Owned> {
  const named = await findNamedOwners(db, caller, query);
  const orgId = named.agent ? named.agent.orgId : (named.org?.id ?? null);
  return { orgId, teamId: null, userId: null, agentId: named.agent?.id ?? null };
}

/** Normalizes a path for storage: removes empty, `.` and `..` segments. */
function normalizePath(path: string): string {
  return path
    .split('/')
    .filter((segment) => !['', '.', '..'].includes(segment))
    .join('/');
}

/** The path of an entry that is written. 422 unless it is stored as it is. */
function readNewPath(path: string): string {
  if (path === '' || path !== normalizePath(path))
    throw invalidField('path', 'must have segments, none of which is empty, "." or ".."');
  if (path.length > limits.virtualPathCharactersMax)
    throw invalidField('path', `has more than ${limits.virtualPathCharactersMax} characters`);
  return path;
}
