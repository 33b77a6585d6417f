import type { Static } from 'typebox';
import { isDatabaseError, isForeignKeyViolation } from '../db/database.ts';
import { AppError } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import { userNotFound } from './owner.ts';
import type { putKvBody } from './schema.ts';

export type KvLimits = { keyBytesMax: number; valueBytesMax: number; userBytesMax: number };

/** SQLSTATE raised by kv_use. */
const quotaExceeded = 'QK001';

export function newWrite(limits: KvLimits, key: string, { value, ttl_seconds }: Static<typeof putKvBody>) {
  return { id: newUuid(), key, value, ttlSeconds: ttl_seconds ?? null, userBytesMax: limits.userBytesMax };
}

/** Says what a write violates: its user was deleted, or has no room left. */
export async function translateWriteErrors<T>(limits: KvLimits, write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    // The user was deleted concurrently.
    if (isForeignKeyViolation(error)) throw userNotFound();
    if (!isDatabaseError(error, quotaExceeded)) throw error;
    throw new AppError(
      'quota_exceeded',
      `A user may store a total of ${limits.userBytesMax} bytes of keys and values.`,
      {
        fields: [{ field: 'value', message: "exceeds the user's storage limit" }],
        details: { user_bytes_max: limits.userBytesMax },
        cause: error,
      },
    );
  }
}
