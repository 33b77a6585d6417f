import type { Db } from '../../db/database.ts';
import { found } from '../../lib/errors.ts';
import { draftEntry } from '../engine/draft-entries.ts';
import { requireSignalRoom } from '../runs/signals.ts';
import * as runStore from '../runs/store.ts';
import { wrongState } from '../runs/wrong-state.ts';
import { offer } from './claims.ts';
import type { ProgramJournal } from './journal.ts';
import { takeSignals, takes } from './steps.ts';

/** Stores a signal for a run that a program executes. */
export async function signalProgram(
  db: Db,
  journal: ProgramJournal,
  run: runStore.RunRow,
  signal: { name: string; payload: unknown },
): Promise<runStore.RunRow> {
  await journal.change(run, async (change) => {
    if (change.hasEnded) throw wrongState(change.row, 'takes no signals');
    requireSignalRoom(change.row, change.state.signals.length);
    const waiting = [...change.state.open.values()].find((one) => one.phase === 'signal' && takes(one, signal));
    const payload = { name: signal.name, payload: signal.payload ?? null };
    const received = draftEntry(change.around, 'signal_received', { payload });
    change.add([waiting ? { ...received, nodeId: waiting.nodeId, commandId: waiting.commandId } : received]);
    await takeSignals(change);
    offer(change);
  });
  return found(await runStore.findRun(db, run.appId, run.id));
}
