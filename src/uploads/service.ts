import { createHash } from 'node:crypto';
import { BlobMissing } from '../blob/blob-store.ts';
import { type Db, runApart } from '../db/database.ts';
import { findMaker, insertMadeFile } from '../files/of-runs.ts';
import { keepVisibleGrants, resolveFileOwner, resolveGrants } from '../files/owners.ts';
import type { FileDeps } from '../files/service.ts';
import { replaceGrants, updateFile } from '../files/store.ts';
import { linkCreatorOf, mayStillCreate } from '../files/upload-links.ts';
import { adoptBlob, translateWriteError } from '../files/write.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { AppError, found, notFound } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import { type Caller, canSeeWholeApp } from '../tenancy/caller.ts';
import type { Credential } from '../tenancy/credential.ts';
import { hasScope } from '../tenancy/key-scopes.ts';
import { requireShareLeft } from '../tenancy/quotas.ts';
import { pathId } from '../tenancy/references.ts';
import { fitsShare, lockRoom, noRoom } from '../tenancy/room.ts';
import { hashBody, RunningHashes, UploadHolds } from './holds.ts';
import { type BodyCheck, readMetadata } from './protocol.ts';
import * as store from './store.ts';

type Upload = store.UploadRow;

export type UploadDeps = Pick<FileDeps, 'db' | 'blobs' | 'log' | 'imageSize' | 'clock' | 'credentials'> & {
  /** A direct connection that stays open, for locks that end with this process. */
  session: Db;
  resumableBytesMax: number;
  unfinishedUploadsMax: number;
  uploadHours: number;
};

/** Who sends a request, and with which credential. */
type Sender = { caller: Caller; credential: Credential | undefined };

type Body = {
  bytes: AsyncIterable<Uint8Array>;
  /** The announced length, if any. */
  length: number | undefined;
  check: BodyCheck | undefined;
};

export type UploadService = ReturnType<typeof createUploadService>;

export function createUploadService(deps: UploadDeps) {
  const { db, blobs, clock } = deps;
  const holds = new UploadHolds(db, deps.session);
  const hashes = new RunningHashes();

  async function getVisible(caller: Caller, id: string): Promise<Upload> {
    return found(await store.findVisibleUpload(db, caller, pathId('upload', id), clock.now()));
  }

  /** Appends a body to an upload that this process holds. The last byte finishes the upload. */
  async function append(sender: Sender, upload: Upload, { bytes, length, check }: Body): Promise<Upload> {
    const left = upload.length - upload.received;
    if (length !== undefined && length > left) throw tooLong(left);
    const { content_type: contentType } = readMetadata(upload.metadata);
    const running = hashes.take(upload);
    let current = upload;
    const save = async (state: Upload['state']) => {
      if (!(await runApart(() => store.saveState(db, upload, holds.holder, state)))) throw ended();
      current = { ...current, state, received: state.size };
    };
    const limited = limitBody(bytes, left);
    const body = hashBody(check === undefined ? limited : check(limited), running);
    try {
      const whole = check !== undefined;
      await blobs.partials.append(upload.blobKey, upload.state, body, {
        contentType,
        sizeMax: upload.length,
        save,
        whole,
      });
    } catch (error) {
      if (error instanceof BlobMissing) throw notFound();
      throw translateWriteError(error);
    } finally {
      hashes.keep(upload.id, current.received, running);
    }
    return current.received === upload.length ? finish(sender, current) : current;
  }

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

  /** Requires room for the upload of this transaction, among those of the space and those of the user. */
  async function requireShare(tx: Db, caller: Caller, length: number): Promise<void> {
    const max = deps.unfinishedUploadsMax;
    const isWholeApp = canSeeWholeApp(caller);
    const { uploads, bytesOfCaller } = await store.findUnfinished(tx, caller, userOf(caller));
    const held = { ofSpace: uploads.ofSpace + 1, ofCaller: uploads.ofCaller + 1 };
    if (!fitsShare(held, max, isWholeApp)) {
      const whose = held.ofSpace > max ? 'This app or sandbox has' : `You have your share of`;
      const message = `${whose} ${max} unfinished uploads. Finish or delete some first.`;
      throw noRoom({ things: 'unfinished uploads', max, message }, uploads.ofSpace, 'rate_limited');
    }
    if (!isWholeApp) await requireShareLeft(tx, caller, 'file_bytes', { held: bytesOfCaller, more: length });
  }

  return {
    /** Creates an upload and appends the body, if there is one. */
    async create(sender: Sender, metadata: string, length: number, body: Body | undefined): Promise<Upload> {
      const { caller } = sender;
      const file = readMetadata(metadata);
      if (length > deps.resumableBytesMax) throw tooLong(deps.resumableBytesMax);
      if ((body?.length ?? 0) > length) throw tooLong(length);
      const owned = await resolveFileOwner(db, caller, file);
      await resolveGrants(db, caller, [], file.acl ?? {});
      await findMaker(db, caller, file.automation_run);
      const createdAt = clock.now();
      const insert = (holder: string | null) =>
        db.begin(async (tx) => {
          await lockRoom(tx, { things: 'unfinished uploads', ...caller });
          await requireShare(tx, caller, length);
          return store.insertUpload(tx, {
            appId: caller.appId,
            id: newUuid(),
            sandboxId: caller.sandboxId,
            userId: userOf(caller),
            metadata,
            owned,
            length,
            blobKey: `${caller.appId}/${newUuid()}`,
            state: { size: 0 },
            holder,
            createdAt,
            expiresAt: new Date(createdAt.getTime() + deps.uploadHours * 3_600_000),
          });
        });
      try {
        if (body === undefined && length > 0) return await insert(null);
        const bytes = body ?? noBody;
        // Committed before the bytes arrive, also within a repeatable request: only the file is part of its transaction.
        return await holds.holdNew(
          () => runApart(() => insert(holds.holder)),
          (upload) => append(sender, upload, bytes),
        );
      } catch (error) {
        throw translateWriteError(error);
      }
    },

    /** Appends a body at an offset. 409 if the stored bytes do not end there; 423 while another request appends. */
    async append(sender: Sender, id: string, offset: number, body: Body): Promise<Upload> {
      const seen = await getVisible(sender.caller, id);
      requireOffset(seen, offset);
      if (seen.finishedAt !== null) {
        if (body.length === 0) return seen;
        throw tooLong(0);
      }
      return holds.hold(seen, (upload) => {
        requireOffset(upload, offset);
        if (upload.finishedAt !== null) throw ended();
        return append(sender, upload, body);
      });
    },

    /**
     * Returns the upload. If all its bytes are stored but finishing was interrupted, finishes it first, unless the
     * caller may only read.
     */
    async get(sender: Sender, id: string): Promise<Upload> {
      const { caller } = sender;
      const seen = await getVisible(caller, id);
      if (seen.finishedAt !== null || seen.received < seen.length) return seen;
      if (!hasScope(caller.scopes, 'files', false)) return seen;
      return holds.hold(seen, (upload) =>
        upload.finishedAt === null ? finish(sender, upload) : Promise.resolve(upload),
      );
    },

    list: (caller: Caller, page: PageRequest) => store.listVisibleUploads(db, caller, page, clock.now()),

    /** Deletes the upload and its bytes. The file of a finished upload stays. */
    async delete(caller: Caller, id: string): Promise<void> {
      const seen = await getVisible(caller, id);
      await holds.hold(seen, async (upload) => {
        found(await store.deleteUpload(db, upload));
      });
    },
  };
}

function userOf(caller: Caller): string | null {
  return caller.kind === 'user' ? caller.userId : null;
}

const noBody: Body = { bytes: (async function* () {})(), length: 0, check: undefined };

function requireOffset({ received }: Upload, offset: number): void {
  if (offset === received) return;
  throw new AppError('conflict', `The upload has ${received} bytes. Continue there.`, {
    details: { offset: received },
  });
}

/** Throws 413 at the first chunk beyond the length of the upload. */
async function* limitBody(body: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<Uint8Array> {
  let left = bytesMax;
  for await (const chunk of body) {
    if (chunk.byteLength > left) throw tooLong(bytesMax);
    left -= chunk.byteLength;
    yield chunk;
  }
}

function tooLong(bytesMax: number): AppError {
  return new AppError('payload_too_large', `The body exceeds ${bytesMax} bytes.`, { headers: { connection: 'close' } });
}

function ended(): AppError {
  return new AppError('conflict', 'The upload has ended, or another request continues it.');
}
