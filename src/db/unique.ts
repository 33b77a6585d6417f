import { AppError } from '../lib/errors.ts';
import { isUniqueViolation } from './database.ts';

/** Runs a write. A violation of the named unique index becomes 422 `already_exists` on the field. */
export async function refuseDuplicate<T>(
  constraint: string,
  duplicate: { field: string; message: string },
  write: () => Promise<T>,
): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!isUniqueViolation(error, constraint)) throw error;
    throw new AppError('already_exists', duplicate.message, {
      fields: [{ field: duplicate.field, message: 'is taken' }],
    });
  }
}
