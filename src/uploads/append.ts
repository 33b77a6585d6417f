import { BlobMissing } from '../blob/blob-store.ts';
import { runApart } from '../db/database.ts';
import { translateWriteError } from '../files/write.ts';
import { AppError, notFound } from '../lib/errors.ts';
import { createFinish, ended, type Sender, type Upload, type UploadDeps } from './finish.ts';
import { hashBody, RunningHashes, type UploadHolds } from './holds.ts';
import { type BodyCheck, readMetadata } from './protocol.ts';
import * as store from './store.ts';

export type Body = {
  bytes: AsyncIterable<Uint8Array>;
  /** The announced length, if any. */
  length: number | undefined;
  check: BodyCheck | undefined;
};

export type Appending = ReturnType<typeof createAppending>;

/** How bytes are added to uploads that this process holds, and how complete ones become files. */
export function createAppending(deps: UploadDeps, holds: UploadHolds) {
  const { db, blobs } = deps;
  const hashes = new RunningHashes();
  const finish = createFinish(deps, holds, hashes);

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

  return { append, finish };
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

export function tooLong(bytesMax: number): AppError {
  return new AppError('payload_too_large', `The body exceeds ${bytesMax} bytes.`, { headers: { connection: 'close' } });
}
