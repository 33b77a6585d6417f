import type { Db } from '../db/database.ts';
import type { Scope } from '../tenancy/caller.ts';
import { decodeItems, encodeHeader, sha256 } from './encoding.ts';
import type { TrustedKeys } from './keys.ts';
import * as store from './store.ts';

const retentionsAtOnce = 10;
const automationsAtOnce = 100;
/** Lists of removed runs that are kept in memory. */
const listsKeptMax = 50;

/**
 * Looks up what a ledger states about removed records, for records that a verification does not find. Only statements
 * signed with a trusted key count.
 */
export class Removals {
  readonly #db: Db;
  readonly #scope: Scope;
  readonly #trusted: TrustedKeys;
  #before: Promise<string> | undefined;
  readonly #removed = new Map<number, Promise<Set<string>>>();

  constructor(db: Db, scope: Scope, trusted: TrustedKeys) {
    this.#db = db;
    this.#scope = scope;
    this.#trusted = trusted;
  }

  /** Whether retention removed the audit entries of this time. */
  async coversEntry(at: string): Promise<boolean> {
    this.#before ??= this.#readBefore();
    return at < (await this.#before);
  }

  /** Whether the segment states that retention or an erasure removed this run. */
  async coversRun(segment: number | null, run: string): Promise<boolean> {
    if (segment === null) return false;
    let runs = this.#removed.get(segment);
    if (runs === undefined) {
      if (this.#removed.size >= listsKeptMax) this.#removed.clear();
      runs = this.#readRemovedRuns(segment);
      this.#removed.set(segment, runs);
    }
    return (await runs).has(run);
  }

  /** Those of these automations that a deletion removed, with their runs. */
  async findDeleted(automations: readonly string[]): Promise<Set<string>> {
    const deleted = new Set<string>();
    for (let from = 0; from < automations.length; from += automationsAtOnce) {
      const asked = automations.slice(from, from + automationsAtOnce);
      for (const note of await store.listDeletions(this.#db, this.#scope, asked)) {
        if (!this.#isSigned(note)) continue;
        const { automations: named } = readDetail<{ automations?: string[] | null }>(note);
        for (const id of named === null ? asked : (named ?? [])) deleted.add(id);
      }
    }
    return deleted;
  }

  /** The time before which entries are removed, or '' if the ledger states none. */
  async #readBefore(): Promise<string> {
    for (let skip = 0; ; skip += retentionsAtOnce) {
      const notes = await store.listRetentions(this.#db, this.#scope, skip, retentionsAtOnce);
      const signed = notes.find((note) => this.#isSigned(note));
      if (signed !== undefined) return readDetail<{ before?: string }>(signed).before ?? '';
      if (notes.length < retentionsAtOnce) return '';
    }
  }

  async #readRemovedRuns(number: number): Promise<Set<string>> {
    const [note] = await store.listSegments(this.#db, this.#scope, number - 1, 1);
    if (note?.number !== number || note.kind !== 'retention' || note.list === null) return new Set();
    if (!this.#isSigned(note) || !sha256(note.list).equals(note.listDigest)) return new Set();
    return new Set(decodeItems(note.list).map(({ id }) => id));
  }

  #isSigned(note: store.SegmentRow): boolean {
    return this.#trusted.verify(note.keyId, encodeHeader(note), note.signature);
  }
}

function readDetail<T>({ detail }: store.SegmentRow): T {
  return JSON.parse(detail ?? '{}') as T;
}
