import { parseId } from '../../lib/ids.ts';
import type { RunState } from './fold.ts';
import type { DraftEntry } from './journal.ts';

export type ClosedApproval = { id: string; status: 'expired' | 'cancelled' };

/** The UUIDs of the approvals that nodes of a run wait for, with the command of each. */
export function approvalsOf(state: RunState): Map<string, string> {
  const approvals = new Map<string, string>();
  for (const { phase, approval, commandId } of state.active.values()) {
    const id = phase === 'signal' && approval !== undefined ? parseId('approval', approval) : undefined;
    if (id !== undefined) approvals.set(id, commandId);
  }
  return approvals;
}

/** How approvals are closed that no node waits for after these entries. Answered ones are closed already. */
export function closedApprovals(
  approvals: ReadonlyMap<string, string>,
  entries: readonly DraftEntry[],
): ClosedApproval[] {
  const late = new Set(entries.filter(({ type }) => type === 'signal_timed_out').map(({ commandId }) => commandId));
  return [...approvals].map(([id, commandId]) => ({ id, status: late.has(commandId) ? 'expired' : 'cancelled' }));
}
