import { createHash } from 'node:crypto';
import type { Static } from 'typebox';
import type { Db } from '../../db/database.ts';
import { AppError } from '../../lib/errors.ts';
import { type Caller, nameCaller } from '../../tenancy/caller.ts';
import type { AutomationRow } from '../definitions/store.ts';
import type { invokeSchema } from '../schema.ts';
import * as store from './invocation-store.ts';
import type { RunRow } from './store.ts';
import * as runStore from './store.ts';

/** A digest of payload and participants that does not depend on the order of their members. */
export function digestInvocation(input: NonNullable<Static<typeof invokeSchema>>): Buffer {
  const text = JSON.stringify([input.payload ?? {}, input.participants ?? {}], (_key, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return createHash('sha256').update(text).digest();
}

export async function findInvocation(db: Db, caller: Caller, automation: AutomationRow, idempotencyKey: string) {
  return store.findInvocation(db, {
    appId: caller.appId,
    automationId: automation.id,
    caller: nameCaller(caller),
    idempotencyKey,
  });
}

export async function getInvokedRun(
  db: Db,
  caller: Caller,
  held: store.InvocationRow,
  digest: Buffer,
): Promise<RunRow> {
  if (!digest.equals(held.requestDigest))
    throw new AppError('conflict', 'This idempotency key was used with another payload.');
  const row = await runStore.findRun(db, caller.appId, held.runId);
  if (!row) throw new AppError('conflict', 'The run of this idempotency key was deleted.');
  return row;
}
