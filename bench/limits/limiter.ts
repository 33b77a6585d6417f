import type { Database } from '../../src/db/database.ts';
import { RateLimiter } from '../../src/http/limits/rate-limits.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';

const perMinute = 60_000_000;

/** A limiter that counts everything and refuses nothing. */
export function generousLimiter(db: Database): RateLimiter {
  const groups = { reads: perMinute, writes: perMinute, uploads: perMinute, extractions: perMinute };
  const ratesPerMinute = { ...groups, search: perMinute, invocations: perMinute };
  return new RateLimiter({ db, clock: systemClock, log: createLogger('warn'), ratesPerMinute });
}
