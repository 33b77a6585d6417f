import type { Db } from '../db/database.ts';
import { formatId } from '../lib/ids.ts';
import type { Scope } from '../tenancy/caller.ts';
import { digestFields, origin, sha256 } from './encoding.ts';
import type { Problem, ProblemKind, Verified } from './findings.ts';
import * as store from './journal-store.ts';

/** An entry may be larger than a megabyte. */
const entriesPageMax = 20;
/** After this many entries, the remaining runs are left for the next page. */
const entriesMax = 5_000;
/** The number of problems reported for one journal, because an inserted entry changes all that follow. */
const problemsMax = 100;

/** The types of entries after which a journal has none. */
const endings = new Set<string | null | undefined>(['run_completed', 'run_failed', 'run_cancelled']);

/** Verifies the journals of the runs after this one. Returns the last run if there are more. */
export async function checkRuns(
  db: Db,
  scope: Scope,
  after: string,
  countMax: number,
  found: Verified,
): Promise<string | undefined> {
  const runs = await store.listRunLinks(db, scope, after, countMax);
  for (const run of runs) {
    await checkJournal(db, run, found);
    if (found.counts.entries >= entriesMax) return run.id;
  }
  return runs.length === countMax ? runs.at(-1)?.id : undefined;
}

/** Folds the entries of a journal into links, and compares these with the stored links and the run's anchors. */
async function checkJournal(db: Db, run: store.RunLinks, { problems, counts }: Verified): Promise<void> {
  const chain = `journal ${formatId('automationRun', run.id)}`;
  let reported = 0;
  const report = (kind: ProblemKind, record: number | string, message: string) => {
    reported += 1;
    if (reported > problemsMax) return;
    problems.push({ kind, chain, record: String(record), message } satisfies Problem);
  };
  const anchors = new Map(run.anchors.map(({ sequence, link }) => [sequence, Buffer.from(link, 'hex')]));
  counts.runs += 1;
  let state: Buffer = origin;
  /** False after a gap, until an entry that has a link. */
  let isKnown = true;
  let sequence = 0;
  /** The number of entries without a link since the last one that has a link. */
  let unlinked = 0;
  /** An entry before this one is missing or changed, so no later link can match. */
  let isBroken = false;
  /** Whether the entries lead to the link in the run's row. */
  let leads = true;
  /** The number of the entry with which the run ended. */
  let end: number | undefined;
  const advanceTo = (target: number) => {
    for (let gone = sequence + 1; gone < target && gone <= sequence + problemsMax; gone += 1)
      report('removed', gone, 'The entry was removed.');
    if (target > sequence + 1) isBroken = true;
  };
  for (let isMore = true; isMore; ) {
    const entries = await store.listEntryFields(db, run, sequence, entriesPageMax);
    isMore = entries.length === entriesPageMax;
    for (const { fields, link, ...entry } of entries) {
      counts.entries += 1;
      advanceTo(entry.sequence);
      if (entry.sequence > sequence + 1) isKnown = false;
      sequence = entry.sequence;
      state = sha256(state, digestFields(fields));
      if (sequence > run.sequence) report('inserted', sequence, 'The run has no entry with this number.');
      else if (end !== undefined) report('inserted', sequence, 'The run ended before this entry.');
      else if (link === null) unlinked += 1;
      else {
        if (isKnown && !link.equals(state)) {
          if (unlinked === 0) report('changed', sequence, 'The entry was changed.');
          else
            report(
              'changed',
              `${sequence - unlinked}-${sequence}`,
              'One of these entries was changed, removed or inserted.',
            );
          isBroken = true;
        }
        // The next entry is compared with the link that this one states, so that each changed entry is reported.
        state = link;
        isKnown = true;
        unlinked = 0;
      }
      const anchor = anchors.get(sequence);
      if (anchor !== undefined && !anchor.equals(state) && !isBroken) {
        report('changed', sequence, 'The journal up to this entry does not match what was sealed.');
        isBroken = true;
      }
      if (endings.has(fields[5])) end ??= sequence;
      if (sequence === run.linked && run.link !== null) leads = run.link.equals(state);
    }
  }
  advanceTo(Math.max(run.sequence, ...anchors.keys()) + 1);
  if (!leads && !isBroken) report('changed', run.linked, 'The journal does not lead to the last link of its run.');
  // Only the row of an unsealed run can say that it is inherited: what it says is not signed.
  const isInherited = run.isInherited && anchors.size === 0;
  const isEnded = endings.has(`run_${run.status}`);
  if ((isEnded || end !== undefined) && run.sequence > 0 && !isInherited && !run.showsEnd && !isBroken)
    report('changed', run.sequence, 'The run does not show the end that its journal states.');
  if (isEnded && run.sequence > 0 && !isInherited && !isBroken && !anchors.has(run.sequence)) {
    const first = Math.max(0, ...anchors.keys()) + 1;
    const added = first === run.sequence ? first : `${first}-${run.sequence}`;
    report('inserted', added, 'The run has ended, but its end was never sealed.');
  }
}
