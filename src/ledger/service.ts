import type { Database } from '../db/database.ts';
import { AppError, found } from '../lib/errors.ts';
import type { Scope } from '../tenancy/caller.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import type { Position, Verified } from './findings.ts';
import { type ExportedHead, presentHead } from './head.ts';
import { signingKeys, TrustedKeys } from './keys.ts';
import type { Ledger } from './seal.ts';
import * as store from './store.ts';
import { start, verifyPage } from './verify.ts';

type LedgerServiceDeps = {
  db: Database;
  secrets: Secrets;
  ledger: Ledger;
  /** Flushes the audit log entries that wait in memory. */
  audit: { flush(): Promise<void> } | undefined;
};

export type LedgerService = ReturnType<typeof createLedgerService>;

/** Serves the ledger of one app and sandbox to callers who may read its audit log. */
export function createLedgerService({ db, secrets, ledger, audit }: LedgerServiceDeps) {
  return {
    /**
     * Seals what is committed and returns the newest segment, or returns the older one with this number. 404 if there
     * is none.
     */
    async head({ appId, sandboxId }: Scope, number: number | undefined): Promise<ExportedHead> {
      const scope = { appId, sandboxId };
      await audit?.flush();
      const row =
        number === undefined ? await ledger.head(scope) : (await store.listSegments(db, scope, number - 1, 1))[0];
      const segment = found(row !== undefined && (number === undefined || row.number === number) ? row : undefined);
      const key = (await store.listKeys(db)).find(({ id }) => id === segment.keyId);
      return presentHead(segment, key?.publicKey);
    },

    /** Verifies one part, and returns the cursor of the next. */
    async verify({ appId, sandboxId }: Scope, cursor: string | undefined): Promise<Verified> {
      const position = cursor === undefined ? start : readCursor(cursor);
      if (position === undefined)
        throw new AppError('invalid_cursor', 'The cursor was not returned by a verification.');
      return db.begin('isolation level repeatable read read only', async (tx) => {
        const own = signingKeys(secrets).map(({ publicKey }) => publicKey);
        const trusted = new TrustedKeys(own, await store.listKeys(tx));
        return verifyPage(tx, { appId, sandboxId, trusted, heads: [] }, position);
      });
    },
  };
}

const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';
const cursors = new RegExp(`^(?:segments\\.(?<number>\\d{1,15})|(?<kind>audit|runs|journals)\\.(?<id>${uuid}))$`);

function readCursor(cursor: string): Position | undefined {
  const { number, kind, id = '' } = cursors.exec(cursor)?.groups ?? {};
  if (number !== undefined) return { phase: 'segments', after: Number(number) };
  if (kind === 'audit' || kind === 'runs') return { phase: 'records', kind, after: id };
  return kind === undefined ? undefined : { phase: 'runs', after: id };
}

export function formatCursor(position: Position): string {
  if (position.phase === 'segments') return `segments.${position.after}`;
  return `${position.phase === 'records' ? position.kind : 'journals'}.${position.after}`;
}
