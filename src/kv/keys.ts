import { AppError, notFound } from '../lib/errors.ts';

/** Throws when the text cannot be a key: 404 when it is only looked up and could never have been stored. */
export function requireKey(key: string, use: 'look-up' | 'write', keyBytesMax: number): void {
  if (key.includes('\0')) throw invalidKey('must not contain the character U+0000');
  if (key !== '' && Buffer.byteLength(key) <= keyBytesMax) return;
  if (use === 'look-up') throw notFound();
  throw invalidKey(key === '' ? 'must not be empty' : `must be at most ${keyBytesMax} bytes`);
}

/** 422 on `key`. */
export function invalidKey(message: string): AppError {
  return new AppError('invalid_parameters', `key: ${message}`, { fields: [{ field: 'key', message }] });
}
