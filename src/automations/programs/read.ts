import type { Database, Db } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import { readCursor, writeCursor } from '../runs/cursor.ts';
import type * as runStore from '../runs/store.ts';
import { claimLost } from './claims.ts';
import type { ProgramJournal } from './journal.ts';
import { listPage, type PageRow } from './pages.ts';
import * as store from './store.ts';

/** A part of a journal. `cursor` reads the next part, and is omitted in the last one. */
export type JournalPart = { entries: PageRow[]; cursor?: string };

export async function readPart(
  db: Db,
  secrets: Secrets,
  run: { appId: string; id: string; sequence: number },
  after: number,
): Promise<JournalPart> {
  const entries = await listPage(db, secrets, run, after, run.sequence);
  const last = entries.at(-1)?.sequence ?? run.sequence;
  return { entries, ...(last < run.sequence ? { cursor: writeCursor(secrets, run, last) } : {}) };
}

type ReadDeps = { db: Database; clock: Clock; secrets: Secrets; journal: ProgramJournal };

/** What the holder of a claim reads of its run, with the secrets that other readers do not see. */
export function createClaimedReading({ db, clock, secrets, journal }: ReadDeps) {
  return {
    /** Continues the journal of a claimed run, with the secrets that other readers do not see. */
    async read(run: runStore.RunRow, claim: string | undefined, cursor?: string) {
      const work = await store.findWorkOf(db, run);
      if (work?.claim !== claim || work?.leaseUntil === null) throw claimLost();
      return readPart(db, secrets, run, cursor === undefined ? 0 : readCursor(secrets, run, cursor));
    },

    /** The journal for the holder of a claim that is a credential, which notes the version of its code. */
    async readClaimed(run: runStore.RunRow, claim: string, input: { code_version?: string; after_cursor?: string }) {
      const held = await journal.change(run, async (change) => {
        requireHeld(change.work, claim, change.now);
        if (input.code_version !== undefined) change.work.codeVersion = input.code_version;
        change.work.seen = change.state.sequence;
        return { leaseUntil: change.work.leaseUntil ?? change.now, sequence: change.state.sequence };
      });
      if (held === undefined) throw claimLost();
      const now = { ...run, sequence: held.sequence };
      const { after_cursor: cursor } = input;
      return {
        ...held,
        ...(await readPart(db, secrets, now, cursor === undefined ? 0 : readCursor(secrets, now, cursor))),
      };
    },

    /** Throws unless a claim that is a credential is still valid. One that its holder has ended may repeat its last batch. */
    async requireOpen(run: runStore.RunRow, claim: string): Promise<void> {
      const work = await store.findWorkOf(db, run);
      if (work?.leaseUntil !== null || work.claim !== claim) requireHeld(work, claim, clock.now());
    },
  };
}

function requireHeld(work: store.ProgramWork | undefined, claim: string, now: Date): void {
  if (work?.claim !== claim || work.leaseUntil === null || work.leaseUntil <= now) throw claimLost();
}
