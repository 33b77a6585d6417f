import { AppError } from '../../lib/errors.ts';
import { type Caller, canSeeWholeApp } from '../../tenancy/caller.ts';
import { pausedReason } from '../definitions/change.ts';
import type { AutomationRow } from '../definitions/store.ts';
import type { RunRow } from './store.ts';

type Invoker = Pick<RunRow, 'invokedByUserId' | 'invokedByAgentId' | 'scopes'>;

/** The user or agent that invokes a run, neither for keys and developers; and the scopes of the key. */
export function invokedBy(caller: Caller): Invoker {
  return {
    invokedByUserId: caller.kind === 'user' ? caller.userId : null,
    invokedByAgentId: caller.kind === 'agent' ? caller.agentId : null,
    scopes: caller.scopes === undefined ? null : [...caller.scopes],
  };
}

/**
 * The identity that a run acts as: the one that the automation names, else the invoker, else the app. Only a run that acts
 * as its invoker is bounded by the invoker's scopes.
 */
export function chooseIdentity(automation: AutomationRow, invoker: Invoker | undefined) {
  if (automation.runAsUserId !== null || automation.runAsAgentId !== null)
    return { actsAsUserId: automation.runAsUserId, actsAsAgentId: automation.runAsAgentId, scopes: null };
  return {
    actsAsUserId: invoker?.invokedByUserId ?? null,
    actsAsAgentId: invoker?.invokedByAgentId ?? null,
    scopes: invoker?.scopes ?? null,
  };
}

export function requireRunning(automation: AutomationRow): void {
  if (automation.status !== 'running')
    throw new AppError(
      'invalid_parameters',
      `The automation is ${automation.status}: ${pausedReason(automation) ?? 'only a running automation starts runs.'}`,
    );
}

export function requireInvokeAuth(caller: Caller, automation: AutomationRow): void {
  const wanted = automation.invokeAuth;
  const fits = wanted === 'any' || (wanted === 'user' ? caller.kind === 'user' : canSeeWholeApp(caller));
  if (!fits)
    throw new AppError(
      'forbidden',
      wanted === 'user' ? 'Only users may invoke this automation.' : 'Only secret keys may invoke this automation.',
    );
}

/** Whether the payloads are hidden from the caller: an end user sees only those of runs that act as that user. */
export function hidesPayloads(caller: Caller, run: RunRow): boolean {
  return caller.kind === 'user' && !(run.actsAsUserId === caller.userId && run.actsAsAgentId === null);
}
