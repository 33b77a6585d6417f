import type { Database } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError, found, invalidField, requireJsonSize } from '../../lib/errors.ts';
import { formatId, parseId } from '../../lib/ids.ts';
import { limits } from '../../lib/limits.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { getDefinition } from '../definitions/find.ts';
import { claimRun, setLease } from './program-work-store.ts';
import { getRun } from './read.ts';
import * as runStore from './store.ts';
import * as turns from './turn-store.ts';
import { wrongState } from './wrong-state.ts';

type ProgramWorkDeps = {
  db: Database;
  clock: Clock;
};

/** An external worker's report on a run. `running` renews its claim. */
type Report = {
  status: 'running' | 'completed' | 'failed';
  result?: unknown;
  error?: { code: string; message: string } | undefined;
  claim?: string | undefined;
};

/** Runs without a graph, which an external worker claims and reports on. */
export type ProgramWork = {
  /** Claims the oldest run that waits for an external worker; undefined if there is none. */
  claim(caller: Caller, name: string, leaseSeconds: number): Promise<runStore.RunRow | undefined>;
  report(caller: Caller, id: string, report: Report): Promise<runStore.RunRow>;
};

export function createProgramWork({ db, clock }: ProgramWorkDeps): ProgramWork {
  return {
    async claim(caller, name, leaseSeconds) {
      const { id, graphVersion, appId, maxConcurrentRuns } = await getDefinition(db, caller, name);
      if (graphVersion !== null)
        throw new AppError(
          'conflict',
          'The runs of this automation are executed by its workflow, not by an external worker.',
        );
      return db.begin(async (tx) => {
        if (maxConcurrentRuns !== null && !(await turns.hasRoom(tx, { appId, id }))) return undefined;
        const row = await claimRun(tx, { appId, id }, clock.now(), leaseSeconds);
        if (row) await runStore.announceRun(tx, row);
        return row;
      });
    },

    async report(caller, id, report) {
      const run = await getRun(db, caller, id);
      if (report.status !== 'completed' && report.result !== undefined)
        throw invalidField('result', 'is only for status completed');
      if (report.status !== 'failed' && report.error !== undefined)
        throw invalidField('error', 'is only for status failed');
      requireJsonSize('result', report.result, limits.payloadBytesMax);
      return db.begin(async (tx) => {
        const row = found(await runStore.lockRun(tx, run.appId, run.id));
        if (row.graphVersion !== null) throw wrongState(row, 'is executed by its workflow, not by an external worker');
        if (report.claim !== undefined && (row.status !== 'running' || row.claim !== parseId('claim', report.claim)))
          throw new AppError('claim_lost', 'This claim is no longer valid: it has expired, or the run has ended.');
        if (row.status !== 'running') throw wrongState(row, 'is not claimed');
        const now = clock.now();
        if (report.status === 'running') {
          await setLease(tx, row, new Date(now.getTime() + (row.leaseSeconds ?? 60) * 1_000));
        } else {
          const error = report.error ?? { code: 'failed', message: 'The run was reported as failed.' };
          await runStore.appendEntries(tx, {
            run: row,
            automation: formatId('automation', row.automationId),
            expected: row.sequence,
            entries: [],
            status: report.status,
            ...(report.status === 'completed'
              ? { result: report.result === undefined ? {} : report.result }
              : { error }),
            waiting: false,
            wakeAt: null,
            wakeTimer: null,
            now,
          });
        }
        return (await runStore.findRun(tx, row.appId, row.id)) ?? row;
      });
    },
  };
}
