import { hash } from 'node:crypto';
import { newUuid } from '../../lib/ids.ts';
import type { AutomationRow } from '../definitions/store.ts';
import type { NewRun } from './store.ts';

/** A run of the current version of an automation, to be inserted. */
export function newRun(automation: AutomationRow, now: Date, more: Partial<NewRun> & { payload: unknown }): NewRun {
  return {
    appId: automation.appId,
    sandboxId: automation.sandboxId,
    id: newUuid(),
    automationId: automation.id,
    graphVersion: automation.graphVersion,
    program: automation.program,
    type: automation.type,
    orgId: automation.orgId,
    teamId: automation.teamId,
    userId: automation.userId,
    timeoutSeconds: automation.timeoutSeconds,
    ...turnKeysOf(automation, more.payload),
    createdAt: now,
    ...more,
  };
}

const keyBytes = 16;
/** The key of a rate that counts all runs of an automation. */
const allRuns = Buffer.alloc(0);

/**
 * The digests of the value that limits a run together with others of its automation; null without such a limit. Runs
 * whose payload does not have the value share one digest.
 */
function turnKeysOf(
  { concurrency, rate }: Pick<AutomationRow, 'concurrency' | 'rate'>,
  payload: unknown,
): { concurrencyKey: Buffer | null; rateKey: Buffer | null } {
  // If both have a key, it is the same one.
  const path = concurrency?.key ?? rate?.key;
  const digest = path === undefined ? null : digestAt(payload, path);
  return { concurrencyKey: digest, rateKey: rate === null ? null : rate.key === undefined ? allRuns : digest };
}

function digestAt(payload: unknown, path: string): Buffer {
  let value: unknown = payload;
  for (const name of path.split('.'))
    value =
      typeof value === 'object' && value !== null && Object.hasOwn(value, name)
        ? (value as Record<string, unknown>)[name]
        : undefined;
  return hash('sha256', JSON.stringify(value ?? null), 'buffer').subarray(0, keyBytes);
}
