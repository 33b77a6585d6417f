import type { Db } from '../db/database.ts';
import type { Scope } from '../tenancy/caller.ts';
import type { Appending, LedgerDeps } from './append.ts';
import { formatMicros, origin } from './encoding.ts';
import * as store from './store.ts';

const deletedAutomationsMax = 1_000;

/** A run that is removed, with its journal's last link. */
export type RemovedRun = { id: string; sequence: number; link: Buffer | null; at: Date };

/** What is deleted, together with the automations that it owns. */
type Removed = { kind: 'automation' | 'team' | 'user' | 'sandbox'; id: string };

/** How a ledger states that records are removed. */
export type RemovalNotes = {
  /** Appends a statement that entries from before this time are removed, then removes them. Returns how many. */
  removeOld(before: Date, deleteEntries: () => Promise<number>): Promise<number>;
  /**
   * Appends a statement that these runs are removed, with the last link of each, and names it in their anchors. Call it
   * in the transaction that deletes them.
   */
  noteRemovedRuns(tx: Db, scope: Scope, runs: readonly RemovedRun[]): Promise<void>;
  /** Appends a statement that automations and their runs are removed. Call it before they are. */
  noteDeletion(scope: Scope, removed: Removed): Promise<void>;
};

export function createRemovalNotes({ db }: LedgerDeps, { append }: Appending): RemovalNotes {
  return {
    async removeOld(before, deleteEntries) {
      const scopes = await store.listScopesWithOldEntries(db, before);
      const detail = { before: formatMicros(before.getTime() * 1_000) };
      for (const scope of scopes) await db.begin((tx) => append(tx, scope, { kind: 'retention', detail }));
      const deleted = await deleteEntries();
      for (const scope of scopes) await store.deleteOldLists(db, scope, before);
      return deleted;
    },

    async noteRemovedRuns(tx, scope, runs) {
      const { appId, sandboxId } = scope;
      const items = runs.map(({ id, sequence, link, at }) => {
        return { id, sequence, atMicros: at.getTime() * 1_000, digest: link ?? origin };
      });
      const number = await append(
        tx,
        { appId, sandboxId },
        { kind: 'retention', items, detail: { runs: items.length } },
      );
      await store.setRemovedIn(
        tx,
        scope,
        runs.map(({ id }) => id),
        number,
      );
    },

    async noteDeletion({ appId, sandboxId }, removed) {
      // A caller has more members than these, and a segment would store all of them.
      const scope = { appId, sandboxId };
      const { automations, ...reason } = await describe(db, scope, removed);
      if (automations === null)
        return void (await db.begin((tx) =>
          append(tx, scope, { kind: 'deletion', detail: { ...reason, automations } }),
        ));
      for (let from = 0; from < automations.length; from += deletedAutomationsMax) {
        const detail = { ...reason, automations: automations.slice(from, from + deletedAutomationsMax) };
        await db.begin((tx) => append(tx, scope, { kind: 'deletion', detail }));
      }
    },
  };
}

async function describe(db: Db, scope: Scope, removed: Removed) {
  const { kind, id } = removed;
  if (kind === 'sandbox') return { kind, id, automations: null };
  if (kind === 'automation') return { kind, id, automations: [id] };
  const owner = kind === 'team' ? { team: id } : { user: id };
  return { kind, id, automations: await store.listAutomationsOf(db, scope, owner) };
}
