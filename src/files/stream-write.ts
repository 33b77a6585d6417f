import { BlobChecksumMismatch, BlobTooLarge } from '../blob/blob-store.ts';
import { AppError, invalidField } from '../lib/errors.ts';
import type { Scope } from '../tenancy/caller.ts';
import type { Owned } from '../tenancy/visible.ts';
import { type DigestCheck, DigestMismatch } from './input.ts';
import type { FileRow } from './store.ts';
import { type FileContents, type RecordFile, type WriteDeps, writeFile } from './write.ts';

/** Stores a streamed body. Throws AppError for invalid bytes. */
export async function writeStream(
  deps: WriteDeps,
  scope: Scope,
  contents: Omit<FileContents, 'bytes'>,
  owned: Owned,
  digest: DigestCheck,
  body: AsyncIterable<Uint8Array>,
  record: RecordFile,
): Promise<FileRow> {
  try {
    return await writeFile(deps, scope, { ...contents, bytes: digest.checked(body) }, owned, record);
  } catch (error) {
    if (error instanceof BlobTooLarge) throw tooLarge(error.sizeMax);
    if (error instanceof BlobChecksumMismatch || error instanceof DigestMismatch)
      throw invalidField('content-digest', 'does not match the body');
    throw error;
  }
}

/** 413 if a body of this announced length is larger than the limit. */
export function requireLength(length: number | undefined, sizeMax: number): void {
  if (length !== undefined && length > sizeMax) throw tooLarge(sizeMax);
}

function tooLarge(sizeMax: number): AppError {
  // The rest of the body is not read, so the connection cannot be reused.
  return new AppError('payload_too_large', `The body has more than ${sizeMax} bytes.`, {
    headers: { connection: 'close' },
  });
}
