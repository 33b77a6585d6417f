import { isDeepStrictEqual } from 'node:util';
import type { Database, Db } from '../../db/database.ts';
import type { Ledger } from '../../ledger/seal.ts';
import type { Clock } from '../../lib/clock.ts';
import { deleteFilesOf, listMadeFiles, passFilesOn } from './file-store.ts';
import { Rehearsal } from './rehearsal.ts';
import * as store from './store.ts';

const dayMs = 24 * 60 * 60 * 1_000;
/** Idempotency keys and streams refer to a run for this long. */
const keptMsMin = dayMs;
const automationsPageMax = 100;
/** Runs, journal entries and files that one transaction deletes. A single run may have more entries. */
const batchMax = { runs: 200, entries: 10_000, files: 1_000 };

type PruneDeps = {
  db: Database;
  clock: Clock;
  ledger: Pick<Ledger, 'noteRemovedRuns'>;
  /** Deletes those of these extractions that have ended. Returns how many. */
  deleteExtractions: (tx: Db, appId: string, ids: readonly string[]) => Promise<number>;
};

/** What was deleted, or would be. */
type Pruned = { runs: number; entries: number; bytes: number; extractions: number; files: number };

export type PruneOptions = {
  /** Only counts. */
  dryRun?: boolean;
  /** Only the automations of this app. */
  appId?: string | undefined;
  /** Called for each automation of which runs are deleted. */
  onAutomation?: (automation: store.RetainedAutomation, pruned: Pruned) => void;
  signal?: AbortSignal | undefined;
};

/**
 * Deletes the runs that are kept no longer, in bounded batches: each transaction appends a signed segment that lists its
 * runs, then deletes them. Safe at any time, in any number of processes; the next call continues an interrupted one.
 */
export async function pruneRuns(deps: PruneDeps, options: PruneOptions = {}): Promise<Pruned> {
  const total = nothing();
  let after: { appId: string; id: string } | undefined;
  let rehearsal: Rehearsal | undefined;
  do {
    const page = await store.listRetained(deps.db, after, automationsPageMax, options.appId);
    for (const [index, automation] of page.entries()) {
      const pruned = nothing();
      if (options.dryRun && automation.appId !== (page[index - 1] ?? after)?.appId) rehearsal = new Rehearsal();
      for (const old of await findOld(deps, automation))
        await pruneKind(deps, automation, old, { pruned, rehearsal, signal: options.signal });
      if (pruned.runs > 0) options.onAutomation?.(automation, pruned);
      add(total, pruned);
    }
    after = page.length === automationsPageMax ? page.at(-1) : undefined;
  } while (after !== undefined && options.signal?.aborted !== true);
  return total;
}

function nothing(): Pruned {
  return { runs: 0, entries: 0, bytes: 0, extractions: 0, files: 0 };
}

function add(total: Pruned, more: Pruned): void {
  for (const name of Object.keys(total) as (keyof Pruned)[]) total[name] += more[name];
}

/** Which runs of an automation are kept no longer: of those that failed, and of the others. */
async function findOld({ db, clock }: PruneDeps, automation: store.RetainedAutomation): Promise<store.OldRuns[]> {
  const { days, runs, failed_days = days, failed_runs = runs } = automation.retention;
  const now = clock.now().getTime();
  const endedBefore = new Date(now - keptMsMin);
  const kinds = [
    { failed: false, days, runs },
    { failed: true, days: failed_days, runs: failed_runs },
  ].filter((kind) => kind.days !== undefined || kind.runs !== undefined);
  return Promise.all(
    kinds.map(async ({ failed, days: age, runs: kept }) => ({
      failed,
      endedBefore,
      agedBefore: age === undefined ? null : new Date(now - age * dayMs),
      upTo: kept === undefined ? null : ((await store.findSurplus(db, automation, failed, kept)) ?? null),
    })),
  );
}

async function pruneKind(
  deps: PruneDeps,
  automation: store.RetainedAutomation,
  old: store.OldRuns,
  { pruned, rehearsal, signal }: { pruned: Pruned; rehearsal: Rehearsal | undefined; signal: AbortSignal | undefined },
): Promise<void> {
  for (let after: store.RunPlace | undefined; signal?.aborted !== true; ) {
    const from = after;
    const work = (db: Db) => pruneBatch({ ...deps, tx: db }, automation, old, from, rehearsal);
    const batch = rehearsal ? await work(deps.db) : await deps.db.begin(work);
    add(pruned, batch.pruned);
    if (batch.next === undefined) return;
    after = batch.next.after;
  }
}

/** What a batch deleted, and where the next one begins; undefined at the end. */
type Batch = { pruned: Pruned; next: { after: store.RunPlace | undefined } | undefined };

/** Deletes the next runs, or a part of their files if there are many. */
async function pruneBatch(
  { tx, ledger, deleteExtractions }: PruneDeps & { tx: Db },
  automation: store.RetainedAutomation,
  old: store.OldRuns,
  after: store.RunPlace | undefined,
  rehearsal: Rehearsal | undefined,
): Promise<Batch> {
  const { appId, retention } = automation;
  // The setting may have changed since the last batch.
  if (!isDeepStrictEqual(await store.findRetention(tx, automation), retention))
    return { pruned: nothing(), next: undefined };
  const found = await store.listOldRuns(tx, automation, old, after, batchMax.runs, rehearsal === undefined);
  const looked = takeEntries(found);
  const free = await store.listFree(
    tx,
    appId,
    looked.map(({ id }) => id),
  );
  const runs = looked.filter(({ id }) => free.has(id));
  const ids = runs.map(({ id }) => id);
  const pruned = {
    runs: runs.length,
    entries: runs.reduce((sum, { sequence }) => sum + sequence, 0),
    bytes: runs.reduce((sum, { journalBytes }) => sum + Number(journalBytes), 0),
    extractions: 0,
    files: 0,
  };
  if (runs.length > 0) {
    const isGone = (run: string) => rehearsal?.isGone(run) === true;
    const removed = { appId, runs: ids, extractions: await store.listOwnExtractions(tx, appId, ids, isGone) };
    pruned.extractions = removed.extractions.length;
    const takesFiles = retention.files === true;
    if (rehearsal) {
      pruned.files = rehearsal.remove(removed, takesFiles ? await listMadeFiles(tx, removed) : undefined);
    } else {
      pruned.files = takesFiles ? await deleteFilesOf(tx, removed, batchMax.files) : 0;
      if (pruned.files === batchMax.files) return { pruned: { ...nothing(), files: pruned.files }, next: { after } };
      if (takesFiles) await passFilesOn(tx, removed);
      const ended = runs.map(({ completedAt: at, ...run }) => ({ ...run, at }));
      await ledger.noteRemovedRuns(tx, automation, ended);
      pruned.extractions = await deleteExtractions(tx, appId, removed.extractions);
      await store.deleteRuns(tx, appId, ids);
    }
  }
  const last = looked.at(-1);
  return { pruned, next: last && { after: { createdAt: last.place, id: last.id } } };
}

/** As many of these runs as one transaction may delete with their entries, at least one. */
export function takeEntries<Run extends { sequence: number }>(found: readonly Run[]): readonly Run[] {
  let entries = 0;
  const tooMany = found.findIndex(({ sequence }, index) => {
    entries += sequence;
    return index > 0 && entries > batchMax.entries;
  });
  return tooMany < 0 ? found : found.slice(0, tooMany);
}
