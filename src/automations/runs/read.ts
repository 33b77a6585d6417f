import type { Static } from 'typebox';
import type { Database, Db } from '../../db/database.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import { readTime } from '../../http/route/times.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError, found, notFound } from '../../lib/errors.ts';
import { formatId, parseId } from '../../lib/ids.ts';
import { limits } from '../../lib/limits.ts';
import { type Caller, canSeeWholeApp } from '../../tenancy/caller.ts';
import { fieldId, pathId } from '../../tenancy/references.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import { findDefinition, getDefinition } from '../definitions/find.ts';
import type { listVisibleRunsQuery } from '../schema.ts';
import { readCursor, writeCursor } from './cursor.ts';
import { hidesPayloads } from './invoker.ts';
import { findPendingFor, type PendingFor } from './pending.ts';
import * as runStore from './store.ts';
import { findVisibleRun, listRuns, listVisibleRuns, type RunFilter, type RunSummaryRow } from './visible-store.ts';

type ReadDeps = { db: Database; clock: Clock; secrets: Secrets };

type JournalPage = {
  run: runStore.RunRow;
  entries: runStore.EntryRow[];
  hasMore: boolean;
  cursor: string | undefined;
  /** The payloads of entries are withheld from this caller. */
  withheld: boolean;
};

type RunPage = { rows: RunSummaryRow[]; hasMore: boolean; cursor: string | undefined };

/** The run that a path names, if the caller may see it. */
export async function getRun(db: Db, caller: Caller, id: string): Promise<runStore.RunRow> {
  return found(await findVisibleRun(db, caller, pathId('automationRun', id)));
}

/** What callers read of runs: one, lists of them, and their journals. */
export type RunReading = {
  get(caller: Caller, id: string): Promise<runStore.RunRow>;
  /**
   * Why a pending run has not started; undefined if no limit delays it. It counts the runs of others, so only those who
   * see the whole app learn it.
   */
  pendingFor(caller: Caller, run: runStore.RunRow): Promise<PendingFor | undefined>;
  /** Checks that the caller may see the run and that it can be streamed. */
  getStreamable(caller: Caller, id: string): Promise<runStore.RunRow>;
  /** Returns a run if the caller may read its texts while they are generated. */
  getOutput(caller: Caller, id: string): Promise<runStore.RunRow>;
  list(
    caller: Caller,
    automation: string,
    status: string | undefined,
    page: PageRequest,
  ): Promise<[runStore.RunRow[], number]>;
  /** Lists the runs of all visible automations. A filter that names nothing visible matches no run. */
  listVisible(caller: Caller, query: Static<typeof listVisibleRunsQuery>): Promise<RunPage>;
  /** A page of a run's journal; undefined for a run without one. */
  journal(
    caller: Caller,
    id: string,
    limit: number | undefined,
    after: string | undefined,
  ): Promise<JournalPage | undefined>;
};

export function createRunReading({ db, clock, secrets }: ReadDeps): RunReading {
  return {
    get: (caller, id) => getRun(db, caller, id),

    async pendingFor(caller, run) {
      if (run.status !== 'pending' || run.graphVersion === null || !canSeeWholeApp(caller)) return undefined;
      return findPendingFor(db, run, clock.now());
    },

    async getStreamable(caller, id) {
      const row = await getRun(db, caller, id);
      if (row.type !== 'invoked') throw new AppError('not_found', hasNoStream);
      return row;
    },

    async getOutput(caller, id) {
      const row = await getRun(db, caller, id);
      if (hidesPayloads(caller, row)) throw notFound();
      return row;
    },

    async list(caller, automation, status, page) {
      const { id } = await getDefinition(db, caller, automation);
      return listRuns(db, caller, id, status, page);
    },

    async listVisible(caller, query) {
      const count = Math.min(query.limit ?? limits.pageSizeDefault, limits.pageSizeMax);
      const before = query.after_cursor === undefined ? undefined : parseId('automationRun', query.after_cursor);
      if (query.after_cursor !== undefined && before === undefined)
        throw new AppError('invalid_cursor', 'The cursor does not belong to this list.');
      const filter = readFilter(query);
      if (query.automation !== undefined) {
        filter.automationId = (await findDefinition(db, caller, query.automation))?.id;
        if (filter.automationId === undefined) return { rows: [], hasMore: false, cursor: undefined };
      }
      const found = await listVisibleRuns(db, caller, filter, before, count + 1);
      const rows = found.slice(0, count);
      const last = rows.at(-1);
      return {
        rows,
        hasMore: found.length > count,
        cursor: last === undefined ? query.after_cursor : formatId('automationRun', last.id),
      };
    },

    async journal(caller, id, limit, after) {
      const run = await getRun(db, caller, id);
      if (run.graphVersion === null && run.sequence === 0) return undefined;
      const from = after === undefined ? 0 : readCursor(secrets, run, after);
      const count = Math.min(limit ?? limits.journalPageSizeDefault, limits.pageSizeMax);
      const rows = await runStore.listEntries(db, run, from, count + 1);
      const entries = rows.slice(0, count);
      const last = entries.at(-1);
      return {
        run,
        entries,
        hasMore: rows.length > count,
        // Without new entries it is the given cursor, so that a polling client never starts from the beginning.
        cursor: last === undefined ? after : writeCursor(secrets, run, last.sequence),
        withheld: hidesPayloads(caller, run),
      };
    },
  };
}

const hasNoStream =
  'This stream follows runs that an invocation started. Follow this run by its journal: GET /api/v1/automation_runs/{automation_run}/journal.';

function readFilter(query: Static<typeof listVisibleRunsQuery>): RunFilter {
  const { retried_from: retriedFrom, search } = query;
  return {
    status: query.status,
    retriedFrom: fieldId('automationRun', 'retried_from', retriedFrom),
    since: readTime('since', query.since),
    until: readTime('until', query.until),
    search: search === undefined ? undefined : readSearch(search),
  };
}

function readSearch(text: string): NonNullable<RunFilter['search']> {
  const runId = parseId('automationRun', text);
  return runId === undefined ? { text } : { runId };
}
