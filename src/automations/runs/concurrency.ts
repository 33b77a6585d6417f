import { sha256 } from '../../ledger/encoding.ts';
import type { AutomationRow } from '../definitions/store.ts';

const keyBytes = 16;

/**
 * The digest of the value that limits a run together with others of its automation; null without such a limit. Runs
 * whose payload does not have the value share one digest.
 */
export function concurrencyKeyOf({ concurrency }: Pick<AutomationRow, 'concurrency'>, payload: unknown): Buffer | null {
  if (concurrency === null) return null;
  let value: unknown = payload;
  for (const name of concurrency.key.split('.'))
    value =
      typeof value === 'object' && value !== null && Object.hasOwn(value, name)
        ? (value as Record<string, unknown>)[name]
        : undefined;
  return sha256(Buffer.from(JSON.stringify(value ?? null))).subarray(0, keyBytes);
}
