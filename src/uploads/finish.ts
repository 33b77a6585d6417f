import { createHash } from 'node:crypto';
import type { Db } from '../db/database.ts';
import { findMaker, insertMadeFile } from '../files/of-runs.ts';
import { keepVisibleGrants } from '../files/owners.ts';
import type { FileDeps } from '../files/service.ts';
import { replaceGrants, updateFile } from '../files/store.ts';
import { linkCreatorOf, mayStillCreate } from '../files/upload-links.ts';
import { adoptBlob } from '../files/write.ts';
import { AppError } from '../lib/errors.ts';
import type { Caller } from '../tenancy/caller.ts';
import type { Credential } from '../tenancy/credential.ts';
import type { RunningHashes, UploadHolds } from './holds.ts';
import { readMetadata } from './protocol.ts';
import * as store from './store.ts';

export type Upload = store.UploadRow;

export type UploadDeps = Pick<FileDeps, 'db' | 'blobs' | 'log' | 'imageSize' | 'clock' | 'credentials'> & {
  /** A direct connection that stays open, for locks that end with this process. */
  session: Db;
  resumableBytesMax: number;
  unfinishedUploadsMax: number;
  uploadHours: number;
};

/** Who sends a request, and with which credential. */
export type Sender = { caller: Caller; credential: Credential | undefined };

/** How complete uploads become files. */
export function createFinish(deps: UploadDeps, holds: UploadHolds, hashes: RunningHashes) {
  const { db, blobs, clock } = deps;

  /**
   * Turns an upload whose bytes are all stored into a file, in one transaction. If it is interrupted before that, the
   * next request repeats it.
   */
  async function finish({ caller, credential }: Sender, upload: Upload): Promise<Upload> {
    const { owned, blobKey, state } = upload;
    const file = readMetadata(upload.metadata);
    const maker = linkCreatorOf(caller, credential);
    if (!(await mayStillCreate(db, deps.credentials, { maker, owner: file, ...owned })))
      throw new AppError('forbidden', 'You may no longer create this file. Delete the upload, or let it expire.');
    const grants = await keepVisibleGrants(db, caller, file.acl ?? {});
    const run = await findMaker(db, caller, file.automation_run);
    await blobs.partials.complete(blobKey, state, file.content_type);
    const contents = { filename: file.filename, contentType: file.content_type, shared: file.share ?? false };
    const blob = { key: blobKey, size: upload.length, checksum: await checksumOf(upload) };
    const commit = await adoptBlob(deps, upload, { id: upload.id, ...contents }, blob);
    const finishedAt = clock.now();
    await db.begin(async (tx) => {
      if (!(await store.finishUpload(tx, upload, holds.holder, finishedAt))) throw ended();
      await commit(tx, owned, async (_, row) => {
        const { appId, id } = row;
        await replaceGrants(tx, appId, id, grants);
        await insertMadeFile(tx, row, run);
        const { provider_metadata: providerMetadata } = file;
        if (providerMetadata !== undefined) await updateFile(tx, appId, id, { providerMetadata });
      });
      if (state.uploadId !== undefined) await store.markPartialForDeletion(tx, upload);
    });
    return { ...upload, finishedAt };
  }

  async function checksumOf(upload: Upload): Promise<string> {
    const running = hashes.take(upload);
    if (running?.size === upload.length) return running.hash.digest('hex');
    const hash = createHash('sha256');
    for await (const chunk of await blobs.read(upload.blobKey)) hash.update(chunk as Uint8Array);
    return hash.digest('hex');
  }

  return finish;
}

export function ended(): AppError {
  return new AppError('conflict', 'The upload has ended, or another request continues it.');
}
