import type { Db } from '../../db/database.ts';
import type { StreamSource } from '../../http/streams/stream.ts';
import type { Snapshot, Version } from '../../http/streams/versions.ts';
import { filterExisting } from '../../tenancy/visible.ts';
import { presentRun } from '../present.ts';
import { findRuns, isTerminal, type RunChange, type RunRow } from './store.ts';
import { filterVisibleRuns } from './visible-store.ts';

/** The source of run streams: every change of the status, including those that a reconnecting client has missed. */
export function runStream(db: Db): StreamSource {
  return {
    event: 'run_update',
    async load(appId, ids): Promise<Snapshot[]> {
      const rows = await findRuns(db, appId, ids);
      return rows.map((row) => ({
        id: row.id,
        version: row.version,
        data: presentRun(row),
        ended: isTerminal(row),
        since: (version: number) => versionsSince(row, version),
      }));
    },
    filterExisting: (runs) => filterExisting(db, 'automation_runs', runs),
    filterVisible: (caller, ids) => filterVisibleRuns(db, caller, ids),
  };
}

/**
 * The run as it was at each version after the given one, the current one last. Undefined if the changes in between
 * are no longer kept.
 */
function versionsSince(row: RunRow, version: number): Version[] | undefined {
  const first: RunChange = { version: 1, status: 'pending', at: row.createdAt.toISOString(), lease_until: null };
  const earlier = [first, ...row.changes].filter((change) => change.version < row.version);
  const missed = earlier.filter((change) => change.version > version);
  if (missed.length !== row.version - 1 - version) return undefined;
  return [
    ...missed.map((change) => ({ version: change.version, data: presentRun(runAt(row, change)) })),
    { version: row.version, data: presentRun(row) },
  ];
}

/** Before its end a run has neither result nor error; it has a start time once it has been running. */
function runAt(row: RunRow, change: RunChange): RunRow {
  const hasStarted = row.changes.some((one) => one.status === 'running' && one.version <= change.version);
  return {
    ...row,
    version: change.version,
    status: change.status,
    result: null,
    error: null,
    waitingFor: null,
    leaseUntil: change.lease_until === null ? null : new Date(change.lease_until),
    startedAt: hasStarted ? row.startedAt : null,
    completedAt: null,
    updatedAt: new Date(change.at),
  };
}
