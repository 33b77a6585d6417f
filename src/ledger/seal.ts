import type { Scope } from '../tenancy/caller.ts';
import { createAppending, type LedgerDeps } from './append.ts';
import { digestFields } from './encoding.ts';
import { createRemovalNotes, type RemovalNotes } from './note-removals.ts';
import * as store from './store.ts';

const segmentRecordsMax = 1_000;
const scopesPageMax = 100;
/** The number of batches that are sealed while a caller waits. The job seals the rest. */
const headBatchesMax = 10;
const inheritedRunsMax = 500;
const kinds = ['audit', 'runs'] as const;

export type Ledger = RemovalNotes & {
  /** Seals the committed records of this app and sandbox, up to a limit, and returns the head. */
  head(scope: Scope): Promise<store.SegmentRow>;
  /**
   * Seals the committed records of all ledgers, a segment of each kind at a time, until none is left. Any number of
   * processes may do so at the same time.
   */
  sealAll(): Promise<void>;
};

/**
 * Seals records after they are committed, so that no writer waits for another: a short transaction takes a ledger's
 * lock, digests its unsealed records and appends a signed segment.
 */
export function createLedger(deps: LedgerDeps): Ledger {
  const { db, clock } = deps;
  const appending = createAppending(deps);
  const { currentKey, append } = appending;

  /** Seals the oldest records of one kind. Returns how many there were. */
  async function sealBatch(kind: store.RecordKind, scope: Scope): Promise<number> {
    await currentKey();
    return db.begin(async (tx) => {
      // The ledger is locked first: another process that seals waits here and locks no record.
      await store.lockLedger(tx, scope);
      const rows = await store.takeUnsealed(tx, kind, scope, clock.now(), segmentRecordsMax);
      if (rows.length === 0) return 0;
      const items = rows.map(({ fields, ...row }) => ({ ...row, digest: digestFields(fields) }));
      const number = await append(tx, scope, { kind, items });
      await store.setSegment(tx, kind, scope, rows, number);
      return rows.length;
    });
  }

  return {
    ...createRemovalNotes(deps, appending),

    async head({ appId, sandboxId }) {
      const scope = { appId, sandboxId };
      for (const kind of kinds)
        for (let batch = 0; batch < headBatchesMax; batch += 1)
          if ((await sealBatch(kind, scope)) < segmentRecordsMax) break;
      const last = await store.findLastSegment(db, scope);
      if (last !== undefined) return last;
      await db.begin((tx) => append(tx, scope, { kind: 'start' }));
      return this.head(scope);
    },

    async sealAll() {
      while (await db.begin((tx) => store.linkInheritedRuns(tx, clock.now(), inheritedRunsMax)));
      for (const kind of kinds)
        for (let isMore = true; isMore; ) {
          isMore = false;
          let after: Scope | undefined;
          do {
            const scopes = await store.listUnsealedScopes(db, kind, clock.now(), after, scopesPageMax);
            for (const scope of scopes) if ((await sealBatch(kind, scope)) === segmentRecordsMax) isMore = true;
            after = scopes.length === scopesPageMax ? scopes.at(-1) : undefined;
          } while (after !== undefined);
        }
    },
  };
}
