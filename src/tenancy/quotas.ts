import { type Db, isDatabaseError } from '../db/database.ts';
import { AppError } from '../lib/errors.ts';
import type { Scope } from './caller.ts';
import { fitsShare } from './room.ts';

/**
 * The quotas of each app, separate for production and each sandbox. Pages are counted here, in the transaction that
 * stores what was read from them, and tokens around each request to the language model; triggers of the tables count
 * the rest.
 */
export const measures = ['file_bytes', 'documents', 'pages', 'tokens', 'sandboxes'] as const;
export type Measure = (typeof measures)[number];

/** The stored limit that means no limit. */
export const noLimit = Number.MAX_SAFE_INTEGER;

/** SQLSTATE raised by `app_use`. */
const quotaPassed = 'QA001';

/** Counts pages read today (UTC). Over the quota, throws an error that `quotaError` translates. */
export async function usePages(tx: Db, { appId, sandboxId }: Scope, pages: number): Promise<void> {
  if (pages > 0) await tx`select app_use(${appId}, ${sandboxId}, 'pages', ${pages})`;
}

/**
 * Reserves tokens of the language model for today (UTC). `settle` replaces the reservation by what was used: it adds the
 * difference to that day. Over the quota, throws 429 `token_budget_exceeded`.
 */
export async function holdTokens(tx: Db, { appId, sandboxId }: Scope, tokens: number) {
  try {
    const [{ day }] = await tx<[{ day: string }]>`
      select app_use(${appId}, ${sandboxId}, 'tokens', ${tokens})::text, usage_period('tokens')::text as day`;
    return {
      async settle(later: Db, used: number): Promise<void> {
        const change = used - tokens;
        if (change !== 0) await later`select app_book(${appId}, ${sandboxId}, 'tokens', ${day}::date, ${change})`;
      },
    };
  } catch (error) {
    throw quotaError(error) ?? error;
  }
}

/** Throws 422 `quota_exceeded` (for tokens, 429 `token_budget_exceeded`) if the quota is used up, to fail early. Counts nothing. */
export async function requireQuotaLeft(db: Db, { appId, sandboxId }: Scope, measure: Measure): Promise<void> {
  const [row] = await db<{ limit: number; used: number }[]>`
    select bound as limit, app_used(${appId}, ${sandboxId}, ${measure}) as used
    from quota_bound(${appId}, ${measure}) bound
    where bound is not null and app_used(${appId}, ${sandboxId}, ${measure}) >= bound`;
  if (row) throw quotaExceeded({ quota: measure, limit: row.limit, used: row.used, requested: 1 });
}

/**
 * Throws 422 `quota_exceeded` if a caller who holds this much without using it would hold more of the quota than remains
 * free (see `fitsShare`).
 */
export async function requireShareLeft(
  tx: Db,
  { appId, sandboxId }: Scope,
  measure: Measure,
  { held, more }: { held: number; more: number },
): Promise<void> {
  const [row] = await tx<{ limit: number; used: number }[]>`
    select bound as limit, app_used(${appId}, ${sandboxId}, ${measure}) as used
    from quota_bound(${appId}, ${measure}) bound where bound is not null`;
  if (row === undefined) return;
  const { limit, used } = row;
  if (!fitsShare({ ofSpace: used + more, ofCaller: held + more }, limit, false))
    throw quotaExceeded({ quota: measure, limit, used, requested: more });
}

/** Translates a database error for an exceeded quota; undefined for other errors. */
export function quotaError(error: unknown): AppError | undefined {
  if (!isDatabaseError(error, quotaPassed)) return undefined;
  const { detail } = error as { detail?: string };
  return quotaExceeded(JSON.parse(detail ?? '{}') as QuotaDetails, error);
}

type QuotaDetails = { quota: Measure; limit: number; used: number; requested: number };

const words: Record<Measure, (limit: number) => string> = {
  file_bytes: (limit) =>
    `This app may store a total of ${limit} bytes of files and learned search models. Delete some, or ask the operator for more.`,
  documents: (limit) => `This app may have a total of ${limit} documents. Delete some, or ask the operator for more.`,
  sandboxes: (limit) => `This app may have ${limit} sandboxes. Delete some, or ask the operator for more.`,
  tokens: (limit) =>
    `This app may use ${limit} tokens of the language model per day (UTC). Try again tomorrow, or ask the operator for more.`,
  pages: (limit) => `This app may read ${limit} pages per day (UTC). Try again tomorrow, or ask the operator for more.`,
};

function quotaExceeded(details: QuotaDetails, cause?: unknown): AppError {
  const code = details.quota === 'tokens' ? 'token_budget_exceeded' : 'quota_exceeded';
  return new AppError(code, words[details.quota](details.limit), { details, cause });
}
