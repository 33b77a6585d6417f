import { type Db, isDatabaseError } from '../db/database.ts';
import { AppError } from '../errors.ts';
import type { Scope } from './caller.ts';

/**
 * What is bounded for each app, in production and in each sandbox for itself. Pages are booked here, by whoever reads
 * them, in the transaction that keeps what was read; the rest is counted by triggers of the tables.
 */
export const measures = ['file_bytes', 'documents', 'pages', 'sandboxes'] as const;
export type Measure = (typeof measures)[number];

/** The bound of an app that has none. */
export const boundless = Number.MAX_SAFE_INTEGER;

/** Raised by the database's function `app_use`. */
const quotaPassed = 'QA001';

/** Books pages that were read today (UTC). Throws what `quotaError` knows when they are too many. */
export async function usePages(tx: Db, { appId, sandboxId }: Scope, pages: number): Promise<void> {
  if (pages > 0) await tx`select app_use(${appId}, ${sandboxId}, 'pages', ${pages})`;
}

/** 422 `quota_exceeded` when not one more fits: to refuse early what would come to nothing. Books nothing. */
export async function requireRoom(db: Db, { appId, sandboxId }: Scope, measure: Measure): Promise<void> {
  const [row] = await db<{ limit: number; used: number }[]>`
    select bound as limit, app_used(${appId}, ${sandboxId}, ${measure}) as used
    from quota_bound(${appId}, ${measure}) bound
    where bound is not null and app_used(${appId}, ${sandboxId}, ${measure}) >= bound`;
  if (row) throw exceeded({ quota: measure, limit: row.limit, used: row.used, requested: 1 });
}

/** An error of the database that says that a quota would be passed, as the caller is told it; undefined for others. */
export function quotaError(error: unknown): AppError | undefined {
  if (!isDatabaseError(error, quotaPassed)) return undefined;
  const { detail } = error as { detail?: string };
  return exceeded(JSON.parse(detail ?? '{}') as QuotaDetails, error);
}

type QuotaDetails = { quota: Measure; limit: number; used: number; requested: number };

const words: Record<Measure, (limit: number) => string> = {
  file_bytes: (limit) => `This app may store ${limit} bytes of files in all. Delete some, or ask for more.`,
  documents: (limit) => `This app may have ${limit} documents in all. Delete some, or ask for more.`,
  sandboxes: (limit) => `This app may have ${limit} sandboxes. Delete some, or ask for more.`,
  pages: (limit) => `This app may have ${limit} pages read in a day (UTC). Try again tomorrow, or ask for more.`,
};

function exceeded(details: QuotaDetails, cause?: unknown): AppError {
  return new AppError('quota_exceeded', words[details.quota](details.limit), { details, cause });
}
