const retryDelayMsMax = 24 * 3_600_000;

/** The wait after the given failed attempt: initial_seconds × factor^(attempt − 1), at most a day. */
export function retryDelayMs(retry: { initial_seconds?: number; factor?: number }, attempt: number): number {
  const seconds = (retry.initial_seconds ?? 1) * (retry.factor ?? 2) ** (attempt - 1);
  return Math.min(seconds * 1_000, retryDelayMsMax);
}
