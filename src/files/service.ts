import type { BlobStore } from '../blob/blob-store.ts';
import type { Clock } from '../clock.ts';
import { type Database, type Db, isForeignKeyViolation } from '../db/database.ts';
import { AppError, invalidField, notFound } from '../errors.ts';
import { newUuid } from '../ids.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import { findNamedOwners, type NamedOwners, pathId, requireCreateFor } from '../tenancy/references.ts';
import type { Owned } from '../tenancy/visible.ts';
import type { FileLinks } from './present.ts';
import * as store from './store.ts';

export type FileDeps = FileLinks & { db: Database; blobs: BlobStore; clock: Clock };

export type UploadInput = {
  filename: string;
  content_type: string;
  data: string;
  agent?: string | undefined;
  org?: string | undefined;
  team?: string | undefined;
  user?: string | undefined;
  share?: boolean | undefined;
};

export type PictureInput = { data: string; filename: string; mime_type: string };

export type FileService = ReturnType<typeof createFileService>;

export function createFileService(deps: FileDeps) {
  const { db, blobs } = deps;

  /**
   * Stores contents and row: the blob is complete on disk before the row exists. `record` may add to the row's
   * transaction. When the row cannot be written, the blob goes too.
   */
  async function write(scope: Scope, file: FileContents, owned: Owned, record?: RecordFile) {
    const id = newUuid();
    const blob = await blobs.put(`${scope.appId}/${id}`, file.bytes, { contentType: file.contentType });
    try {
      return await db.begin(async (tx) => {
        const row = await store.insertFile(tx, {
          appId: scope.appId,
          sandboxId: scope.sandboxId,
          id,
          filename: file.filename,
          contentType: file.contentType,
          size: blob.size,
          checksum: Buffer.from(blob.checksum, 'hex'),
          blobKey: blob.key,
          width: null,
          height: null,
          shared: file.shared ?? false,
          ...owned,
        });
        await record?.(tx, row);
        return row;
      });
    } catch (error) {
      await blobs.remove(blob.key);
      if (isForeignKeyViolation(error)) throw new AppError('conflict', 'An owner of the file was deleted meanwhile.');
      throw error;
    }
  }

  return {
    write,

    async upload(caller: Caller, input: UploadInput): Promise<store.FileRow> {
      const bytes = readBase64('data', input.data);
      if (input.share === true && !isImageType(input.content_type))
        throw new AppError('not_an_image', 'Only files with an image content type can be shared.', {
          fields: [{ field: 'share', message: 'is for image content types only' }],
        });
      const owned = await resolveFileOwner(db, caller, input);
      const contents = {
        bytes,
        filename: input.filename,
        contentType: input.content_type,
        shared: input.share ?? false,
      };
      return write(caller, contents, owned);
    },

    async get(caller: Caller, id: string): Promise<store.FileRow> {
      const row = await store.findVisibleFile(db, caller, pathId('file', id));
      if (!row) throw notFound();
      return row;
    },

    /** The file that a signed link opens; 403 when the link is wrong or too old. */
    async openSigned(id: string, expires: number, signature: string): Promise<store.FileRow> {
      const fileId = pathId('file', id);
      const appId = deps.signedLinks.verify('download', signature, fileId, expires);
      if (appId === undefined || expires * 1000 < deps.clock.now().getTime())
        throw new AppError(
          'forbidden',
          'This download link is not valid or has expired. Fetch the file for a new one.',
        );
      const row = await store.findFile(db, appId, fileId);
      if (!row) throw notFound();
      return row;
    },

    /** 422 on the member unless this is a picture that can be stored. */
    checkPicture,

    /** Stores the picture of an agent or an org as a file that they own; `record` points them at it in one commit. */
    async writePicture(scope: Scope, field: string, picture: PictureInput, owned: Owned, record: RecordFile) {
      const bytes = checkPicture(field, picture);
      return write(scope, { bytes, filename: picture.filename, contentType: picture.mime_type }, owned, record);
    },

    /** Deletes a file row; its blob follows by the sweep. */
    remove: (tx: Db, appId: string, id: string) => store.deleteFile(tx, appId, id),
  };
}

/** What else is written in the transaction of a new file's row. */
export type RecordFile = (tx: Db, row: store.FileRow) => Promise<void>;

export type FileContents = {
  bytes: Uint8Array | AsyncIterable<Uint8Array>;
  filename: string;
  contentType: string;
  shared?: boolean;
};

function checkPicture(field: string, picture: PictureInput): Buffer {
  if (!isImageType(picture.mime_type)) throw invalidField(`${field}.mime_type`, 'must be an image type');
  return readBase64(`${field}.data`, picture.data);
}

export function isImageType(contentType: string): boolean {
  return /^image\/[\w.+-]+(?:\s*;.*)?$/i.test(contentType);
}

/** Exactly RFC 4648 section 4: no white space, no URL-safe letters, padding in place. 422 on the member otherwise. */
export function readBase64(field: string, text: string): Buffer {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text)
    throw invalidField(field, 'is not valid base64 (RFC 4648: letters A–Z a–z 0–9 + /, padded with =, no white space)');
  return bytes;
}

/**
 * Who a new file belongs to, from what the body names. A team goes before a user; without either it is the calling
 * user's; an agent decides the org, which otherwise is the one named, else the caller's.
 */
async function resolveFileOwner(db: Db, caller: Caller, input: UploadInput): Promise<Owned> {
  const named = await findNamedOwners(db, caller, input);
  const self = caller.kind === 'user' ? caller.userId : null;
  const userId = named.team ? null : (named.user?.id ?? self);
  const agentId = named.agent?.id ?? (caller.kind === 'agent' && !named.team && !named.user ? caller.agentId : null);
  for (const owned of namedOwners(named)) requireCreateFor(caller, owned, named.agent);
  return { orgId: fileOrg(caller, named), teamId: named.team?.id ?? null, userId, agentId };
}

function fileOrg(caller: Caller, named: NamedOwners): string | null {
  if (named.agent) {
    if (named.org && named.org.id !== named.agent.orgId)
      throw invalidField('org', 'is not the organisation of the agent');
    return named.agent.orgId;
  }
  const callers = caller.kind === 'user' || caller.kind === 'agent' ? caller.orgId : undefined;
  return named.org?.id ?? callers ?? named.team?.orgId ?? named.user?.orgId ?? null;
}

/** Each individual owner by itself, as a row that only it owned. */
function namedOwners(named: NamedOwners): Owned[] {
  const none: Owned = { orgId: null, teamId: null, userId: null, agentId: null };
  const owners: Owned[] = [];
  if (named.team) owners.push({ ...none, teamId: named.team.id });
  else if (named.user) owners.push({ ...none, userId: named.user.id });
  if (named.agent) owners.push({ ...none, agentId: named.agent.id });
  return owners;
}
