import type { Database, Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { Scope } from '../tenancy/caller.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import {
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

export type LedgerDeps = { db: Database; secrets: Secrets; clock: Clock };

type NewSegment = { kind: SegmentKind; items?: readonly Item[]; detail?: unknown };

export type Appending = {
  /** The key that signs. Its public key is stored. */
  currentKey(): Promise<SigningKey>;
  /**
   * Appends a segment to a ledger that the transaction has locked, and returns its number. The first segment of a ledger
   * says when it starts.
   */
  append(tx: Db, scope: Scope, segment: NewSegment): Promise<number>;
};

/** How signed segments are added to ledgers. */
export function createAppending({ db, secrets, clock }: LedgerDeps): Appending {
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

  return { currentKey, append };
}
