import type { JournalEntry } from '../engine/journal.ts';
import type { RewindFrom } from './plan.ts';

/**
 * Which entries of the ended run of a program another run keeps: those of steps that had ended before this `node_started`,
 * or before the run failed. A program finds its steps by their ids, so those that it does in other branches may be kept
 * or not. Continuing at the failure, steps that failed run again, unless the program went on with another step.
 */
export function keepSteps(entries: readonly JournalEntry[], from: RewindFrom): JournalEntry[] {
  const cut = from === 'failure' ? Number.POSITIVE_INFINITY : from.sequence;
  const before = entries.filter(({ sequence, type }) => sequence < cut && !isEndOfRun(type));
  const ends = before.filter(
    ({ type, record }) => type === 'node_completed' || (type === 'node_failed' && record.metadata?.will_retry !== true),
  );
  const lastStart = before.findLast(({ type }) => type === 'node_started')?.sequence ?? 0;
  const isKept = ({ type, sequence }: JournalEntry) =>
    from !== 'failure' || type === 'node_completed' || sequence < lastStart;
  const kept = ends.filter(isKept);
  const commands = new Set(kept.map(({ commandId }) => commandId));
  const taken = new Set(kept.map(({ record }) => record.metadata?.signal_sequence));
  return before.filter(({ type, sequence, commandId }) =>
    type === 'signal_received' ? taken.has(sequence) : commandId === undefined || commands.has(commandId),
  );
}

function isEndOfRun(type: JournalEntry['type']): boolean {
  return (
    type === 'run_cancel_requested' || type === 'run_completed' || type === 'run_failed' || type === 'run_cancelled'
  );
}
