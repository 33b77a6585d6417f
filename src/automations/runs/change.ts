import type { Database } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { found, requireJsonSize } from '../../lib/errors.ts';
import { limits } from '../../lib/limits.ts';
import type { Caller } from '../../tenancy/caller.ts';
import type { Graph } from '../definitions/graph.ts';
import type { ProgramJournal } from '../programs/journal.ts';
import { signalProgram } from '../programs/signal.ts';
import { cancelTree } from './cancel.ts';
import { getRun } from './read.ts';
import { appendSignal } from './signals.ts';
import * as runStore from './store.ts';
import * as turns from './turn-store.ts';
import { wrongState } from './wrong-state.ts';

type ChangeDeps = {
  db: Database;
  clock: Clock;
  loadGraph(run: runStore.RunRow): Promise<Graph>;
  /** The journals of runs that a program executes. */
  journal: ProgramJournal;
};

/** What callers tell runs: to end, or what has happened. */
export type RunChanges = {
  cancel(caller: Caller, id: string): Promise<runStore.RunRow>;
  /** Stores a signal for the run, which may already wait for it or do so later. */
  signal(caller: Caller, id: string, name: string, payload: unknown): Promise<runStore.RunRow>;
};

export function createRunChanges({ db, clock, loadGraph, journal }: ChangeDeps): RunChanges {
  return {
    async cancel(caller, id) {
      const run = await getRun(db, caller, id);
      return db.begin(async (tx) => {
        await turns.lockLimit(tx, run.appId, run.automationId);
        const before = found(await runStore.lockRun(tx, run.appId, run.id));
        if (runStore.isTerminal(before)) throw wrongState(before, 'cannot be cancelled');
        return (await cancelTree(tx, clock, run.appId, run.id)) ?? before;
      });
    },

    async signal(caller, id, name, payload) {
      const run = await getRun(db, caller, id);
      requireJsonSize('payload', payload, limits.payloadBytesMax);
      if (run.program) return signalProgram(db, journal, run, { name, payload });
      const graph = run.graphVersion === null ? undefined : await loadGraph(run);
      return db.begin(async (tx) => {
        const row = found(await runStore.lockRun(tx, run.appId, run.id));
        if (runStore.isTerminal(row)) throw wrongState(row, 'takes no signals');
        if (!graph) throw wrongState(row, 'is executed by an external worker and takes no signals');
        await appendSignal(tx, row, graph, { name, payload }, clock.now());
        await runStore.queueAdvance(tx, row);
        return (await runStore.findRun(tx, row.appId, row.id)) ?? row;
      });
    },
  };
}
