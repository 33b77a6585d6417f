import type { Static } from 'typebox';
import { BlobChecksumMismatch, BlobTooLarge } from '../blob/blob-store.ts';
import type { Db } from '../db/database.ts';
import type { Keyset } from '../db/keyset.ts';
import type { AuditActor } from '../http/route/audit.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { AppError, found, invalidField } from '../lib/errors.ts';
import { newUuid, parseId } from '../lib/ids.ts';
import { limits } from '../lib/limits.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import type { Capabilities, CapabilityRole, SignedLinks } from '../tenancy/capability.ts';
import type { Credential } from '../tenancy/credential.ts';
import type { Credentials } from '../tenancy/credentials.ts';
import { fieldId, pathId } from '../tenancy/references.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import type { Grant, Owned } from '../tenancy/visible.ts';
import {
  type DigestCheck,
  DigestMismatch,
  type PictureInput,
  readData,
  readPicture,
  requireSharable,
} from './input.ts';
import { essenceOf, isImage } from './media-types.ts';
import { hasOwnerRights, resolveFileOwner, resolveGrants } from './owners.ts';
import { createPictures, type PictureDeps } from './pictures.ts';
import type {
  fileCreateSchema,
  fileListQuery,
  fileUpdateSchema,
  rawUploadQuery,
  uploadLinkCreateSchema,
} from './schema.ts';
import * as store from './store.ts';
import { actorOfLink, linkCreatorOf, redeemUpload, signUpload, type UploadClaims } from './upload-links.ts';
import {
  beginWith,
  discardBlob,
  type FileContents,
  type RecordFile,
  storeFile,
  type WriteDeps,
  writeFile,
} from './write.ts';

export type FileDeps = WriteDeps &
  PictureDeps & {
    clock: Clock;
    secrets: Secrets;
    signedLinks: SignedLinks;
    capabilities: Capabilities;
    uploadBytesMax: number;
    /** Days for which the sweep leaves the contents of deleted files. */
    deletedBlobDays: number;
    credentials: Pick<Credentials, 'findEnded'>;
  };

export type { PictureInput };

type StreamInput = Static<typeof rawUploadQuery> & {
  filename: string;
  contentType: string;
  digest: DigestCheck;
};

/** A file, with its grants for callers with an owner's rights. */
export type VisibleFile = { file: store.FileRow; grants: Grant[] | undefined };

export type FileService = ReturnType<typeof createFileService>;

export function createFileService(deps: FileDeps) {
  const { db, clock, secrets } = deps;

  const write = (scope: Scope, contents: FileContents, owned: Owned, record?: RecordFile) =>
    writeFile(deps, scope, contents, owned, record);

  /** The file. Throws 404 if it is not visible to the caller. */
  async function getVisible(caller: Caller, id: string): Promise<store.VisibleFileRow> {
    return found(await store.findVisibleFile(db, caller, pathId('file', id)));
  }

  /** Throws 404 if the file is not visible to the caller, 403 if they may not delete it. */
  async function getForDelete(caller: Caller, id: string): Promise<store.VisibleFileRow> {
    const file = await getVisible(caller, id);
    if (!hasOwnerRights(caller, file, 'delete')) throw forbidden('You may read this file, but not delete it.');
    return file;
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

  /** Stores a streamed body. Throws AppError for invalid bytes. */
  async function writeStream(
    scope: Scope,
    contents: Omit<FileContents, 'bytes'>,
    owned: Owned,
    digest: DigestCheck,
    body: AsyncIterable<Uint8Array>,
    record?: RecordFile,
  ): Promise<store.FileRow> {
    try {
      return await write(scope, { ...contents, bytes: digest.checked(body) }, owned, record);
    } catch (error) {
      if (error instanceof BlobTooLarge) throw tooLarge(error.sizeMax);
      if (error instanceof BlobChecksumMismatch || error instanceof DigestMismatch)
        throw invalidField('content-digest', 'does not match the body');
      throw error;
    }
  }

  /** Validates an upload and prepares it for writing. */
  async function readUpload(caller: Caller, input: Static<typeof fileCreateSchema>) {
    const bytes = readData('data', input, caller.appId);
    if (input.share === true) requireSharable(input.content_type);
    const owned = await resolveFileOwner(db, caller, input);
    const grants = await resolveGrants(db, caller, [], input.acl ?? {});
    const { filename, content_type: contentType, share: shared = false } = input;
    const record: RecordFile = (tx, row) => store.replaceGrants(tx, row.appId, row.id, grants);
    return { contents: { bytes, filename, contentType, shared }, owned, grants, record };
  }

  return {
    write,
    get,
    pictures: createPictures(deps),

    /** Bytes of a visible file; `end` is exclusive. For small ranges: they are held in memory. */
    async readRange(caller: Caller, id: string, start: number, end: number): Promise<Buffer> {
      const file = await getVisible(caller, id);
      const chunks: Buffer[] = [];
      for await (const chunk of await deps.blobs.read(file.blobKey, { start, end })) chunks.push(Buffer.from(chunk));
      return Buffer.concat(chunks);
    },

    /** Stores contents whose row is written later, in the caller's transaction. */
    store: (scope: Scope, contents: FileContents) => storeFile(deps, scope, contents),

    async upload(caller: Caller, input: Static<typeof fileCreateSchema>): Promise<VisibleFile> {
      const { contents, owned, grants, record } = await readUpload(caller, input);
      return { file: await write(caller, contents, owned, record), grants };
    },

    /** The same in two steps: the slow part first, then `commit` in another transaction. */
    async prepareUpload(caller: Caller, input: Static<typeof fileCreateSchema>) {
      const { contents, owned, record } = await readUpload(caller, input);
      const stored = await storeFile(deps, caller, contents);
      return { commit: (tx: Db) => stored.commit(tx, owned, record), discard: stored.discard };
    },

    /**
     * Stores a body of any size up to the limit. `length` is the announced length, if any. `readMetadata` is called at
     * the end of the body; when it throws, nothing is stored.
     */
    async uploadStream(
      caller: Caller,
      input: StreamInput,
      length: number | undefined,
      body: AsyncIterable<Uint8Array>,
      readMetadata?: () => Record<string, unknown>,
    ): Promise<VisibleFile> {
      const { filename, contentType, share: shared = false, digest } = input;
      if (shared) requireSharable(contentType);
      const sizeMax = deps.uploadBytesMax;
      if (length !== undefined && length > sizeMax) throw tooLarge(sizeMax);
      const owned = await resolveFileOwner(db, caller, input);
      const contents = { filename, contentType, shared, sizeMax, ...checksumOf(digest) };
      const record: RecordFile = async (tx, row) => {
        if (readMetadata === undefined) return;
        row.providerMetadata = readMetadata();
        await store.updateFile(tx, row.appId, row.id, { providerMetadata: row.providerMetadata });
      };
      return { file: await writeStream(caller, contents, owned, digest, body, record), grants: [] };
    },

    /** A token for uploading this file once, until it expires. */
    async createUploadLink(
      caller: Caller,
      input: Static<typeof uploadLinkCreateSchema>,
      credential: Credential | undefined,
    ): Promise<{ token: string; claims: UploadClaims }> {
      if (input.share === true) requireSharable(input.content_type);
      if (input.size !== undefined && input.size > deps.uploadBytesMax) throw tooLarge(deps.uploadBytesMax);
      const owned = await resolveFileOwner(db, caller, input);
      const claims: UploadClaims = {
        appId: caller.appId,
        sandboxId: caller.sandboxId,
        ...owned,
        id: newUuid(),
        filename: input.filename,
        contentType: input.content_type,
        shared: input.share ?? false,
        sizeMax: input.size ?? deps.uploadBytesMax,
        ...(input.checksum === undefined ? {} : { checksum: input.checksum.toLowerCase() }),
        expires: nowSeconds(clock) + (input.expires_in ?? limits.uploadLinkSecondsDefault),
        maker: linkCreatorOf(caller, credential),
        owner: { org: input.org, team: input.team, user: input.user, agent: input.agent },
      };
      return { token: signUpload(secrets, claims), claims };
    },

    /**
     * Stores the body as the file described by the token. 403 when the token is invalid or expired, or its creator may no
     * longer create that file; 409 when it was already used.
     */
    async uploadByLink(
      token: unknown,
      digest: DigestCheck,
      length: number | undefined,
      body: AsyncIterable<Uint8Array>,
      noteActor: (actor: AuditActor) => void,
    ): Promise<VisibleFile> {
      const claims = await redeemUpload(deps, token);
      noteActor(actorOfLink(claims));
      const { appId, sandboxId, id, filename, contentType, shared, sizeMax } = claims;
      if (length !== undefined && length > sizeMax) throw tooLarge(sizeMax);
      if (digest.checksum !== undefined && claims.checksum !== undefined && digest.checksum !== claims.checksum)
        throw invalidField('content-digest', 'does not match the digest in this link');
      const contents = { id, filename, contentType, shared, sizeMax, ...checksumOf(digest), ...checksumOf(claims) };
      const { orgId, teamId, userId, agentId } = claims;
      const owned = { orgId, teamId, userId, agentId };
      const file = await writeStream({ appId, sandboxId }, contents, owned, digest, body);
      return { file, grants: undefined };
    },

    async list(
      caller: Caller,
      page: PageRequest,
      input: Static<typeof fileListQuery>,
    ): Promise<[VisibleFile[], number]> {
      const named = (kind: 'org' | 'team' | 'user' | 'agent') => {
        const id = input[kind];
        return id === undefined ? undefined : fieldId(kind, kind, id);
      };
      const [rows, total] = await store.listVisibleFiles(db, caller, page, {
        orgId: named('org'),
        teamId: named('team'),
        userId: named('user'),
        agentId: named('agent'),
        contentType: readTypeFilter(input.content_type),
        search: input.search,
        prefix: input.prefix,
        runId:
          input.automation_run === undefined
            ? undefined
            : fieldId('automationRun', 'automation_run', input.automation_run),
        sort: input.sort,
      });
      return [await withGrants(caller, rows), total];
    },

    async update(caller: Caller, id: string, input: Static<typeof fileUpdateSchema>): Promise<VisibleFile> {
      const { filename, provider_metadata: providerMetadata, share: shared, acl } = input;
      const file = await getVisible(caller, id);
      const owner = hasOwnerRights(caller, file, 'update');
      if (!owner && !file.grantedWrite) throw forbidden('You may read this file, but not change it.');
      if (!owner && (shared !== undefined || acl !== undefined))
        throw forbidden(
          'A write grant only allows changing filename and provider_metadata; the rest requires an owner.',
        );
      if (providerMetadata !== undefined) checkMetadata(providerMetadata);
      if (shared === true) requireSharable(file.contentType);
      if (Object.keys(input).length === 0) return get(caller, id);
      await db.begin(async (tx) => {
        found(await store.lockFile(tx, file.appId, file.id));
        if (acl !== undefined) {
          const before = (await store.listGrants(tx, file.appId, [file.id])).get(file.id) ?? [];
          await store.replaceGrants(tx, file.appId, file.id, await resolveGrants(tx, caller, before, acl));
        }
        await store.updateFile(tx, file.appId, file.id, { filename, providerMetadata, shared });
      });
      return get(caller, id);
    },

    getForDelete,

    /** The visible files by id order; `providerMetadata` must be part of theirs. */
    listByKeyset: (caller: Caller, keyset: Keyset, providerMetadata?: Record<string, unknown>) =>
      store.listFilesByKeyset(db, caller, keyset, providerMetadata),

    async delete(caller: Caller, id: string): Promise<void> {
      const file = await getForDelete(caller, id);
      found(await store.deleteFile(db, file.appId, file.id));
      const mustStay = deps.deletedBlobDays > 0 || (await store.isBackupRunning(db));
      if (!mustStay) await discardBlob(deps, file.appId, file.blobKey);
    },

    /** The file of a signed link; 403 when the link is invalid or expired. */
    async openSigned(id: string, expires: unknown, signature: unknown, purpose = 'download'): Promise<store.FileRow> {
      const fileId = pathId('file', id);
      const until = typeof expires === 'string' && /^\d{1,12}$/.test(expires) ? Number(expires) : 0;
      const proof = typeof signature === 'string' ? signature : '';
      const appId = deps.signedLinks.verify(purpose, proof, fileId, until);
      if (appId === undefined || until < nowSeconds(clock))
        throw forbidden('This download link is not valid or has expired. Fetch the file for a new one.');
      return found(await store.findFile(db, appId, fileId));
    },

    /**
     * The file of a capability token in a role, or undefined. Every failure does the same work: one query and one
     * comparison.
     */
    async openCapability(id: string, token: unknown, role: CapabilityRole): Promise<store.FileRow | undefined> {
      const fileId = parseId('file', id) ?? newUuid();
      const claim = deps.capabilities.read(token);
      const found = await store.findCapability(db, claim.appId, fileId, role);
      const proved = deps.capabilities.verifies(claim, found?.capabilityKey, fileId, role);
      if (!proved || !found?.inRole || found.id === null) return undefined;
      return isImage(found.contentType) ? found : undefined;
    },

    /**
     * Runs a transaction with the new picture of an agent or an org, whose contents are stored before it begins. `save`
     * writes its file. 422 on an invalid member.
     */
    async beginWithPicture<T>(
      caller: Caller,
      field: string,
      picture: PictureInput | null | undefined,
      work: (tx: Db, save: (owned: Owned) => Promise<string | null>) => Promise<T>,
    ): Promise<T> {
      if (!picture) return db.begin((tx) => work(tx, async () => null));
      const bytes = readPicture(field, picture, caller.appId);
      const contents = { bytes, filename: picture.filename, contentType: picture.mime_type };
      const stored = await storeFile(deps, caller, contents);
      return beginWith(db, stored, (tx) => work(tx, async (owned) => (await stored.commit(tx, owned)).id));
    },

    /** Deletes a file's row in the caller's transaction. The sweep deletes its blob. */
    remove: (tx: Db, appId: string, id: string) => store.deleteFile(tx, appId, id),
  };
}

function checksumOf({ checksum }: { checksum?: string }): { checksum?: string } {
  return checksum === undefined ? {} : { checksum };
}

/** `image/png` unchanged, `image/*` as the prefix `image/`. */
function readTypeFilter(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const essence = essenceOf(text);
  return essence.endsWith('/*') ? essence.slice(0, -1) : essence;
}

function checkMetadata(metadata: Record<string, unknown>): void {
  if (Buffer.byteLength(JSON.stringify(metadata)) > limits.metadataBytesMax)
    throw invalidField('provider_metadata', `is larger than ${limits.metadataBytesMax} bytes`);
}

function forbidden(words: string): AppError {
  return new AppError('forbidden', words);
}

function tooLarge(sizeMax: number): AppError {
  // The rest of the body is not read, so the connection cannot be reused.
  return new AppError('payload_too_large', `The body has more than ${sizeMax} bytes.`, {
    headers: { connection: 'close' },
  });
}
