import { createHmac, timingSafeEqual } from 'node:crypto';
import { AppError } from '../../lib/errors.ts';
import type { Secrets } from '../../tenancy/secrets.ts';

/**
 * Cursors are positions in a journal for clients: opaque, bound to one run and signed, so that an altered cursor or
 * the cursor of another run is refused.
 */
const signatureBytes = 16;

export function writeCursor(secrets: Secrets, run: { appId: string; id: string }, sequence: number): string {
  const place = Buffer.alloc(4);
  place.writeUInt32BE(sequence);
  const [key] = secrets.keys('cursor');
  if (!key) throw new Error('No root secret is set.');
  return Buffer.concat([place, sign(key, run, sequence)]).toString('base64url');
}

/** Returns the sequence of the entry that the cursor points after. Throws 400 `invalid_cursor`. */
export function readCursor(secrets: Secrets, run: { appId: string; id: string }, cursor: string): number {
  const bytes = Buffer.from(cursor, 'base64url');
  if (bytes.length !== 4 + signatureBytes || bytes.toString('base64url') !== cursor) throw invalidCursor();
  const sequence = bytes.readUInt32BE();
  const given = bytes.subarray(4);
  for (const key of secrets.keys('cursor')) if (timingSafeEqual(sign(key, run, sequence), given)) return sequence;
  throw invalidCursor();
}

function sign(key: Buffer, run: { appId: string; id: string }, sequence: number): Buffer {
  const message = `journal/${run.appId}/${run.id}/${sequence}`;
  return createHmac('sha256', key).update(message).digest().subarray(0, signatureBytes);
}

function invalidCursor(): AppError {
  return new AppError('invalid_cursor', 'The cursor does not belong to this journal.');
}
