import type { Database, Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { Scope } from '../tenancy/caller.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import {
  digestFields,
  encodeHeader,
  encodeItems,
  formatMicros,
  type Item,
  origin,
  type SegmentHeader,
  type SegmentKind,
  sha256,
} from './encoding.ts';
import { endorsementText, type SigningKey, signingKeys } from './keys.ts';
import * as store from './store.ts';

const segmentRecordsMax = 1_000;
const scopesPageMax = 100;
/** The number of batches that are sealed while a caller waits. The job seals the rest. */
const headBatchesMax = 10;
const inheritedRunsMax = 500;
const deletedAutomationsMax = 1_000;
const kinds = ['audit', 'runs'] as const;

export type Ledger = ReturnType<typeof createLedger>;
type NewSegment = { kind: SegmentKind; items?: readonly Item[]; detail?: unknown };

/**
 * Seals records after they are committed, so that no writer waits for another: a short transaction takes a ledger's
 * lock, digests its unsealed records and appends a signed segment.
 */
export function createLedger({ db, secrets, clock }: { db: Database; secrets: Secrets; clock: Clock }) {
  let saved: Promise<SigningKey> | undefined;

  /** Stores the public keys. The current key vouches for the previous one. */
  async function saveKeys(): Promise<SigningKey> {
    const [current, previous] = signingKeys(secrets);
    if (current === undefined) throw new Error('No root secret is set.');
    await store.saveKey(db, { ...current, endorsedBy: null, endorsement: null });
    if (previous !== undefined && previous.id !== current.id) {
      const endorsement = current.sign(endorsementText(previous.publicKey));
      await store.saveKey(db, { ...previous, endorsedBy: current.id, endorsement });
    }
    return current;
  }

  function currentKey(): Promise<SigningKey> {
    saved ??= saveKeys().catch((error: unknown) => {
      saved = undefined;
      throw error;
    });
    return saved;
  }

  /**
   * Appends a segment to a ledger that the transaction has locked. The first segment of a ledger says when it starts.
   */
  async function append(tx: Db, scope: Scope, { kind, items = [], detail }: NewSegment): Promise<number> {
    const key = await currentKey();
    let last = await store.lockLedger(tx, scope);
    const write = async (next: NewSegment) => {
      const list = encodeItems(next.items ?? []);
      const newest = Math.max(...(next.items ?? []).map(({ atMicros }) => atMicros));
      const header: SegmentHeader = {
        ...scope,
        number: (last?.number ?? 0) + 1,
        kind: next.kind,
        sealedAt: formatMicros(clock.now().getTime() * 1_000),
        records: next.items?.length ?? 0,
        lastAt: next.items?.length ? formatMicros(newest) : null,
        listDigest: sha256(list),
        detail: next.detail === undefined ? null : JSON.stringify(next.detail),
        previous: last?.digest ?? origin,
        keyId: key.id,
      };
      const bytes = encodeHeader(header);
      const digest = sha256(bytes);
      await store.insertSegment(tx, { ...header, list, signature: key.sign(bytes) }, digest);
      last = { number: header.number, digest };
      return header.number;
    };
    if (last === undefined) {
      const number = await write({ kind: 'start' });
      if (kind === 'start') return number;
    }
    return write({ kind, items, detail });
  }

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
    /** Seals the committed records of this app and sandbox, up to a limit, and returns the head. */
    async head({ appId, sandboxId }: Scope): Promise<store.SegmentRow> {
      const scope = { appId, sandboxId };
      for (const kind of kinds)
        for (let batch = 0; batch < headBatchesMax; batch += 1)
          if ((await sealBatch(kind, scope)) < segmentRecordsMax) break;
      const last = await store.findLastSegment(db, scope);
      if (last !== undefined) return last;
      await db.begin((tx) => append(tx, scope, { kind: 'start' }));
      return this.head(scope);
    },

    /**
     * Seals one segment of each kind for each ledger that has records, until no ledger has any. Safe in any number of
     * processes.
     */
    async sealAll(): Promise<void> {
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

    /** Appends a statement that entries from before this time are removed, then removes them. */
    async removeOld(before: Date, deleteEntries: () => Promise<number>): Promise<number> {
      const scopes = await store.listScopesWithOldEntries(db, before);
      const detail = { before: formatMicros(before.getTime() * 1_000) };
      for (const scope of scopes) await db.begin((tx) => append(tx, scope, { kind: 'retention', detail }));
      const deleted = await deleteEntries();
      for (const scope of scopes) await store.deleteOldLists(db, scope, before);
      return deleted;
    },

    /**
     * Appends a statement that these runs are removed, with the last link of each, and names it in their anchors. Call
     * it in the transaction that deletes them.
     */
    async noteRemovedRuns(tx: Db, scope: Scope, runs: readonly RemovedRun[]): Promise<void> {
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

    /** Appends a statement that automations and their runs are removed. Call it before they are. */
    async noteDeletion({ appId, sandboxId }: Scope, removed: Removed): Promise<void> {
      // A caller has more members than these, and a segment would store all of them.
      const scope = { appId, sandboxId };
      const { automations, ...reason } = await describe(scope, removed);
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

  async function describe(scope: Scope, removed: Removed) {
    const { kind, id } = removed;
    if (kind === 'sandbox') return { kind, id, automations: null };
    if (kind === 'automation') return { kind, id, automations: [id] };
    const owner = kind === 'team' ? { team: id } : { user: id };
    return { kind, id, automations: await store.listAutomationsOf(db, scope, owner) };
  }
}

/** A run that is removed, with its journal's last link. */
export type RemovedRun = { id: string; sequence: number; link: Buffer | null; at: Date };

/** What is deleted, together with the automations that it owns. */
type Removed = { kind: 'automation' | 'team' | 'user' | 'sandbox'; id: string };
