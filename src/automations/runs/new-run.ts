import { newUuid } from '../../lib/ids.ts';
import type { AutomationRow } from '../definitions/store.ts';
import type { NewRun } from './store.ts';
import { turnKeysOf } from './turn-keys.ts';

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
