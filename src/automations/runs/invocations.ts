import { hash } from 'node:crypto';
import type { Static } from 'typebox';
import type { Db } from '../../db/database.ts';
import { AppError } from '../../lib/errors.ts';
import { type Caller, nameCaller } from '../../tenancy/caller.ts';
import type { AutomationRow } from '../definitions/store.ts';
import type { invokeSchema } from '../schema.ts';
import type { Invocation, InvocationRow } from './invocation-store.ts';
import * as runStore from './store.ts';

type InvokeInput = NonNullable<Static<typeof invokeSchema>>;

/** The idempotency key of an invocation, with a digest of what it asks for; undefined without a key. */
export function readInvocation(caller: Caller, automation: AutomationRow, input: InvokeInput): Invocation | undefined {
  const { idempotency_key: idempotencyKey } = input;
  if (idempotencyKey === undefined) return undefined;
  return {
    appId: caller.appId,
    automationId: automation.id,
    caller: nameCaller(caller),
    idempotencyKey,
    requestDigest: digestInput(input),
  };
}

/** A digest of payload and participants that does not depend on the order of their members. */
function digestInput(input: InvokeInput): Buffer {
  const text = JSON.stringify([input.payload ?? {}, input.participants ?? {}], (_key, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return hash('sha256', text, 'buffer');
}

/** The run that an earlier invocation with the same key started. Throws 409 if it asked for something else. */
export async function getInvokedRun(db: Db, invocation: Invocation, held: InvocationRow): Promise<runStore.RunRow> {
  if (!invocation.requestDigest.equals(held.requestDigest))
    throw new AppError('conflict', 'This idempotency key was used with another payload.');
  const row = await runStore.findRun(db, invocation.appId, held.runId);
  if (!row) throw new AppError('conflict', 'The run of this idempotency key was deleted.');
  return row;
}
