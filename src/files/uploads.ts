import type { Static } from 'typebox';
import { BlobChecksumMismatch, BlobTooLarge } from '../blob/blob-store.ts';
import type { Db } from '../db/database.ts';
import type { AuditActor } from '../http/route/audit.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { AppError, invalidField } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import { limits } from '../lib/limits.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import type { Credential } from '../tenancy/credential.ts';
import type { Credentials } from '../tenancy/credentials.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import type { Owned } from '../tenancy/visible.ts';
import { type DigestCheck, DigestMismatch, readData, requireSharable } from './input.ts';
import { findMaker, insertMadeFile } from './of-runs.ts';
import { resolveFileOwner, resolveGrants } from './owners.ts';
import type { VisibleFile } from './reads.ts';
import type { fileCreateSchema, rawUploadQuery, uploadLinkCreateSchema } from './schema.ts';
import * as store from './store.ts';
import { actorOfLink, linkCreatorOf, redeemUpload, signUpload, type UploadClaims } from './upload-links.ts';
import { type FileContents, type RecordFile, storeFile, type WriteDeps, writeFile } from './write.ts';

export type UploadDeps = WriteDeps & {
  clock: Clock;
  secrets: Secrets;
  uploadBytesMax: number;
  credentials: Pick<Credentials, 'findEnded'>;
};

type StreamInput = Static<typeof rawUploadQuery> & {
  filename: string;
  contentType: string;
  digest: DigestCheck;
};

/** Creates files from requests: with their bytes in JSON, as a streamed body, or by an upload link. */
export function createFileUploads(deps: UploadDeps) {
  const { db, clock, secrets } = deps;

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
      return await writeFile(deps, scope, { ...contents, bytes: digest.checked(body) }, owned, record);
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
    const maker = await findMaker(db, caller, input.automation_run);
    const { filename, content_type: contentType, share: shared = false } = input;
    const record: RecordFile = async (tx, row) => {
      await store.replaceGrants(tx, row.appId, row.id, grants);
      await insertMadeFile(tx, row, maker);
    };
    return { contents: { bytes, filename, contentType, shared }, owned, grants, record };
  }

  return {
    async upload(caller: Caller, input: Static<typeof fileCreateSchema>): Promise<VisibleFile> {
      const { contents, owned, grants, record } = await readUpload(caller, input);
      return { file: await writeFile(deps, caller, contents, owned, record), grants };
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
      const maker = await findMaker(db, caller, input.automation_run);
      const contents = { filename, contentType, shared, sizeMax, ...checksumOf(digest) };
      const record: RecordFile = async (tx, row) => {
        await insertMadeFile(tx, row, maker);
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
      const runId = await findMaker(db, caller, input.automation_run);
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
        ...(runId === undefined ? {} : { runId }),
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
      const record: RecordFile = (tx, row) => insertMadeFile(tx, row, claims.runId);
      const file = await writeStream({ appId, sandboxId }, contents, owned, digest, body, record);
      return { file, grants: undefined };
    },
  };
}

function checksumOf({ checksum }: { checksum?: string }): { checksum?: string } {
  return checksum === undefined ? {} : { checksum };
}

function tooLarge(sizeMax: number): AppError {
  // The rest of the body is not read, so the connection cannot be reused.
  return new AppError('payload_too_large', `The body has more than ${sizeMax} bytes.`, {
    headers: { connection: 'close' },
  });
}
