import { AppError } from '../../lib/errors.ts';
import type { RunRow } from './store.ts';

/** 409: the run's state forbids the operation. */
export function wrongState(run: RunRow, words: string): AppError {
  return new AppError('conflict', `The run is ${run.status} and ${words}.`, { details: { status: run.status } });
}
