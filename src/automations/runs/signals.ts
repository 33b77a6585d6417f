import type { Db } from '../../db/database.ts';
import { AppError } from '../../lib/errors.ts';
import { formatId } from '../../lib/ids.ts';
import { type Graph, graphLimits } from '../definitions/graph.ts';
import { foldJournal } from '../engine/fold.ts';
import * as runStore from './store.ts';

const keptSignalsMax = 100;
/** Signals must leave room for the run's own entries. */
const signalSequenceMax = graphLimits.journalEntriesMax - 1_000;
const signalBytesMax = graphLimits.journalBytesMax / 2;

/** Stores a signal in the journal, for a node that waits for it now or later. */
export async function appendSignal(
  tx: Db,
  row: runStore.RunRow,
  graph: Graph,
  signal: { name: string; payload: unknown },
  now: Date,
): Promise<void> {
  const { name, payload } = signal;
  const entries = await runStore.listEntries(tx, row);
  const state = foldJournal(graph, entries.map(runStore.readEntry));
  requireSignalRoom(row, state.signals.length);
  const taken = state.signals.filter((kept) => kept.name === name && kept.approval === undefined).length;
  const waiting = [...state.active.values()].filter(
    (one) => one.phase === 'signal' && one.signal === name && one.approval === undefined,
  )[taken];
  await runStore.appendEntries(tx, {
    run: row,
    automation: formatId('automation', row.automationId),
    expected: row.sequence,
    entries: [
      {
        type: 'signal_received',
        record: { payload: { name, payload: payload ?? null }, timestamp: now.toISOString() },
        ...(waiting ? { nodeId: waiting.nodeId, commandId: waiting.commandId } : {}),
      },
    ],
    status: row.status,
    waiting: row.waiting,
    waitingFor: row.waitingFor,
    wakeAt: row.wakeAt,
    wakeTimer: row.wakeTimer,
    now,
  });
}

/** Throws 409 if the run takes no more signals. */
export function requireSignalRoom(row: runStore.RunRow, unread: number): void {
  if (row.journalBytes > signalBytesMax)
    throw new AppError(
      'conflict',
      `The journal of the run has more than ${signalBytesMax} bytes: it takes no more signals.`,
    );
  if (unread >= keptSignalsMax || row.sequence >= signalSequenceMax)
    throw new AppError('conflict', `The run already has ${unread} unread signals, which is the limit.`);
}
