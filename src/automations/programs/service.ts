import type { Database } from '../../db/database.ts';
import type { StreamHub } from '../../http/streams/sse.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { Caller } from '../../tenancy/caller.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import type { Expressions } from '../engine/expressions.ts';
import type { RunSecrets } from '../engine/run-secrets.ts';
import { runEnd } from '../nodes/services.ts';
import { getRun } from '../runs/read.ts';
import type { RunStarts } from '../runs/start.ts';
import * as runStore from '../runs/store.ts';
import { wrongState } from '../runs/wrong-state.ts';
import { createAppending } from './append.ts';
import { createClaiming } from './claiming.ts';
import { offer } from './claims.ts';
import type { ProgramJournal, RunKey } from './journal.ts';
import { createClaimedReading } from './read.ts';
import { fireDue, takeChildEnds, takeSignals } from './steps.ts';

type ProgramDeps = {
  db: Database;
  clock: Clock;
  log: Logger;
  secrets: Secrets;
  expressions: Expressions;
  streams: StreamHub;
  runs: RunStarts;
  runSecrets: RunSecrets;
  journal: ProgramJournal;
};

export type ProgramService = ReturnType<typeof createProgramService>;

/** Runs that the user's program executes: workers claim them and write their journals, and the server does the waiting. */
export function createProgramService(deps: ProgramDeps) {
  const { db, journal } = deps;
  return {
    ...createClaiming(deps),
    ...createClaimedReading(deps),
    ...createAppending(deps),

    /** The run, if a program executes it. */
    async getRun(caller: Caller, id: string): Promise<runStore.RunRow> {
      const run = await getRun(db, caller, id);
      if (!run.program) throw wrongState(run, 'is not executed by a program');
      return run;
    },

    /** Does what the server does in a run: fires its timers, and ends the steps whose child run has ended. */
    async advance(key: RunKey): Promise<void> {
      const run = await runStore.findRun(db, key.appId, key.id);
      if (!run) return;
      await journal.change(run, async (change) => {
        if (change.hasEnded) return;
        if (change.state.status === 'running') {
          // An answer that was recorded before the deadline counts.
          await takeSignals(change);
          await fireDue(change);
          if (!change.hasEnded) await takeChildEnds(change, runEnd);
          await change.endAtLimit();
        }
        offer(change);
      });
    },
  };
}
