import type { Static } from 'typebox';
import type { Keyset } from '../db/pages.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { AppError, found } from '../lib/errors.ts';
import { newUuid, parseId } from '../lib/ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import type { Capabilities, CapabilityRole, SignedLinks } from '../tenancy/capability.ts';
import { fieldId, pathId } from '../tenancy/references.ts';
import type { Grant } from '../tenancy/visible.ts';
import { essenceOf, isImage } from './media-types.ts';
import { hasOwnerRights } from './owners.ts';
import type { fileListQuery } from './schema.ts';
import * as store from './store.ts';
import type { WriteDeps } from './write.ts';

export type ReadDeps = Pick<WriteDeps, 'db' | 'blobs'> & {
  clock: Clock;
  signedLinks: SignedLinks;
  capabilities: Capabilities;
};

/** A file, with its grants for callers with an owner's rights. */
export type VisibleFile = { file: store.FileRow; grants: Grant[] | undefined };

/** Finds, lists and opens files: for callers who can see them, and for holders of links. */
export function createFileReads(deps: ReadDeps) {
  return { ...createVisibleReads(deps), ...createLinkReads(deps) };
}

function createVisibleReads({ db, blobs }: ReadDeps) {
  /** The file. Throws 404 if it is not visible to the caller. */
  async function getVisible(caller: Caller, id: string): Promise<store.VisibleFileRow> {
    return found(await store.findVisibleFile(db, caller, pathId('file', id)));
  }

  async function withGrants(caller: Caller, rows: store.VisibleFileRow[]): Promise<VisibleFile[]> {
    const owned = rows.filter((row) => hasOwnerRights(caller, row, 'update')).map((row) => row.id);
    const grants = await store.listGrants(db, caller.appId, owned);
    return rows.map((file) => ({ file, grants: grants.get(file.id) }));
  }

  async function get(caller: Caller, id: string): Promise<VisibleFile> {
    const file = await getVisible(caller, id);
    const [seen] = await withGrants(caller, [file]);
    return seen ?? { file, grants: undefined };
  }

  return {
    getVisible,
    get,

    /** Bytes of a visible file; `end` is exclusive. For small ranges: they are held in memory. */
    async readRange(caller: Caller, id: string, start: number, end: number): Promise<Buffer> {
      const file = await getVisible(caller, id);
      const chunks: Buffer[] = [];
      for await (const chunk of await blobs.read(file.blobKey, { start, end })) chunks.push(Buffer.from(chunk));
      return Buffer.concat(chunks);
    },

    async list(
      caller: Caller,
      page: PageRequest,
      input: Static<typeof fileListQuery>,
    ): Promise<[VisibleFile[], number]> {
      const [rows, total] = await store.listVisibleFiles(db, caller, page, {
        orgId: fieldId('org', 'org', input.org),
        teamId: fieldId('team', 'team', input.team),
        userId: fieldId('user', 'user', input.user),
        agentId: fieldId('agent', 'agent', input.agent),
        contentType: readTypeFilter(input.content_type),
        search: input.search,
        prefix: input.prefix,
        runId: fieldId('automationRun', 'automation_run', input.automation_run),
        sort: input.sort,
      });
      return [await withGrants(caller, rows), total];
    },

    /** The visible files by id order; `providerMetadata` must be part of theirs. */
    listByKeyset: (caller: Caller, keyset: Keyset, providerMetadata?: Record<string, unknown>) =>
      store.listFilesByKeyset(db, caller, keyset, providerMetadata),
  };
}

function createLinkReads({ db, clock, signedLinks, capabilities }: ReadDeps) {
  return {
    /** The file of a signed link; 403 when the link is invalid or expired. */
    async openSigned(id: string, expires: unknown, signature: unknown, purpose = 'download'): Promise<store.FileRow> {
      const fileId = pathId('file', id);
      const until = typeof expires === 'string' && /^\d{1,12}$/.test(expires) ? Number(expires) : 0;
      const proof = typeof signature === 'string' ? signature : '';
      const appId = signedLinks.verify(purpose, proof, fileId, until);
      if (appId === undefined || until < nowSeconds(clock))
        throw new AppError(
          'forbidden',
          'This download link is not valid or has expired. Fetch the file for a new one.',
        );
      return found(await store.findLinkedFile(db, appId, fileId));
    },

    /**
     * The file of a capability token in a role, or undefined. Every failure does the same work: one query and one
     * comparison.
     */
    async openCapability(id: string, token: unknown, role: CapabilityRole): Promise<store.FileRow | undefined> {
      const fileId = parseId('file', id) ?? newUuid();
      const claim = capabilities.read(token);
      const found = await store.findCapability(db, claim.appId, fileId, role);
      const proved = capabilities.verifies(claim, found?.capabilityKey, fileId, role);
      if (!proved || !found?.inRole || found.id === null) return undefined;
      return isImage(found.contentType) ? found : undefined;
    },
  };
}

/** `image/png` unchanged, `image/*` as the prefix `image/`. */
function readTypeFilter(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const essence = essenceOf(text);
  return essence.endsWith('/*') ? essence.slice(0, -1) : essence;
}
