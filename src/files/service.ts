import type { Static } from 'typebox';
import type { Db } from '../db/database.ts';
import { AppError, found } from '../lib/errors.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import type { Owned } from '../tenancy/visible.ts';
import { type PictureInput, readPicture, requireSharable } from './input.ts';
import type { UploadDeps } from './link-uploads.ts';
import { hasOwnerRights, resolveGrants } from './owners.ts';
import { createPictures, type PictureDeps } from './pictures.ts';
import { createFileReads, type ReadDeps, type VisibleFile } from './reads.ts';
import type { fileUpdateSchema } from './schema.ts';
import * as store from './store.ts';
import { createFileUploads } from './uploads.ts';
import { beginWith, discardBlob, type FileContents, type RecordFile, storeFile, writeFile } from './write.ts';

export type FileDeps = ReadDeps &
  UploadDeps &
  PictureDeps & {
    /** Days for which the sweep leaves the contents of deleted files. */
    deletedBlobDays: number;
  };

export type { PictureInput, VisibleFile };

export type FileService = ReturnType<typeof createFileService>;

export function createFileService(deps: FileDeps) {
  const { db } = deps;
  const { getVisible, ...reads } = createFileReads(deps);

  /** Throws 404 if the file is not visible to the caller, 403 if they may not delete it. */
  async function getForDelete(caller: Caller, id: string): Promise<store.VisibleFileRow> {
    const file = await getVisible(caller, id);
    if (!hasOwnerRights(caller, file, 'delete')) throw forbidden('You may read this file, but not delete it.');
    return file;
  }

  return {
    ...reads,
    ...createFileUploads(deps),
    pictures: createPictures(deps),

    write: (scope: Scope, contents: FileContents, owned: Owned, record?: RecordFile) =>
      writeFile(deps, scope, contents, owned, record),

    /** Stores contents whose row is written later, in the caller's transaction. */
    store: (scope: Scope, contents: FileContents) => storeFile(deps, scope, contents),

    async update(caller: Caller, id: string, input: Static<typeof fileUpdateSchema>): Promise<VisibleFile> {
      const { filename, provider_metadata: providerMetadata, share: shared, acl } = input;
      const file = await getVisible(caller, id);
      requireChange(caller, file, input);
      if (shared === true) requireSharable(file.contentType);
      if (Object.keys(input).length === 0) return reads.get(caller, id);
      await db.begin(async (tx) => {
        found(await store.lockFile(tx, file.appId, file.id));
        if (acl !== undefined) {
          const before = (await store.listGrants(tx, file.appId, [file.id])).get(file.id) ?? [];
          await store.replaceGrants(tx, file.appId, file.id, await resolveGrants(tx, caller, before, acl));
        }
        await store.updateFile(tx, file.appId, file.id, { filename, providerMetadata, shared });
      });
      return reads.get(caller, id);
    },

    getForDelete,

    async delete(caller: Caller, id: string): Promise<void> {
      const file = await getForDelete(caller, id);
      found(await store.deleteFile(db, file.appId, file.id));
      const mustStay = deps.deletedBlobDays > 0 || (await store.isBackupRunning(db));
      if (!mustStay) await discardBlob(deps, file.appId, file.blobKey);
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

/** 403 unless the caller owns the file, or has a write grant and changes only what it allows. */
function requireChange(
  caller: Caller,
  file: store.VisibleFileRow,
  { share, acl }: Static<typeof fileUpdateSchema>,
): void {
  if (hasOwnerRights(caller, file, 'update')) return;
  if (!file.grantedWrite) throw forbidden('You may read this file, but not change it.');
  if (share !== undefined || acl !== undefined)
    throw forbidden('A write grant only allows changing filename and provider_metadata; the rest requires an owner.');
}

function forbidden(words: string): AppError {
  return new AppError('forbidden', words);
}
