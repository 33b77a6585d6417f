const retryLimits = { triesMax: 3, firstDelayMs: 500, delayMsMax: 60_000 } as const;

/** Whether repeating the request may give a different response. */
export function isRetryable(status: number): boolean {
  return status === 429 || status === 408 || (status >= 500 && status !== 501 && status !== 505);
}

/**
 * The pause in milliseconds before attempt `triesDone` + 1; undefined after the last attempt. The pause grows
 * exponentially, with jitter on its upper half, and is never shorter than the site's Retry-After (up to a minute).
 */
export function retryDelayMs(
  triesDone: number,
  retryAfter: string | undefined,
  now: Date,
  random = Math.random,
): number | undefined {
  if (triesDone >= retryLimits.triesMax) return undefined;
  const step = retryLimits.firstDelayMs * 2 ** (triesDone - 1);
  const asked = retryAfterMs(retryAfter, now) ?? 0;
  return Math.min(Math.max(step / 2 + (random() * step) / 2, asked), retryLimits.delayMsMax);
}

/** Parses Retry-After in either form, seconds or a date, to milliseconds. */
export function retryAfterMs(value: string | undefined, now: Date): number | undefined {
  const text = value?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  const date = text === '' ? Number.NaN : Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now.getTime());
}
