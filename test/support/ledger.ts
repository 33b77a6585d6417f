import type { Db } from '../../src/db/database.ts';
import { encodeHeader, sha256 } from '../../src/ledger/encoding.ts';
import type { Position, Problem } from '../../src/ledger/findings.ts';
import { signingKeys, TrustedKeys } from '../../src/ledger/keys.ts';
import { findLastSegment, listKeys } from '../../src/ledger/store.ts';
import { type KnownHead, start, verifyPage } from '../../src/ledger/verify.ts';
import type { Scope } from '../../src/tenancy/caller.ts';
import type { Secrets } from '../../src/tenancy/secrets.ts';

/** Verifies a whole ledger in one transaction, which may contain uncommitted changes. */
export async function verifyAll(
  db: Db,
  secrets: Secrets,
  scope: Scope,
  heads: readonly KnownHead[] = [],
  Trusted: typeof TrustedKeys = TrustedKeys,
) {
  const trusted = new Trusted(
    signingKeys(secrets).map(({ publicKey }) => publicKey),
    await listKeys(db),
  );
  const problems: Problem[] = [];
  const counts = { segments: 0, records: 0, runs: 0, entries: 0, removed: 0, unsealed: 0 };
  for (let at: Position | undefined = start; at !== undefined; ) {
    const page = await verifyPage(db, { ...scope, trusted, heads }, at);
    problems.push(...page.problems);
    for (const name of Object.keys(counts) as (keyof typeof counts)[]) counts[name] += page.counts[name];
    at = page.next;
  }
  return { problems, counts };
}

/** The head in the form of an export. */
export async function headOf(db: Db, scope: Scope): Promise<KnownHead> {
  const last = await findLastSegment(db, scope);
  if (last === undefined) throw new Error('The ledger has no segment.');
  return { number: last.number, digest: sha256(encodeHeader(last)) };
}

class Undo extends Error {}

/** Runs work in a transaction that is rolled back. */
export async function tryOut<T>(
  db: { begin(work: (tx: Db) => Promise<void>): Promise<void> },
  work: (tx: Db) => Promise<T>,
): Promise<T> {
  let result: T | undefined;
  await db
    .begin(async (tx) => {
      result = await work(tx);
      throw new Undo();
    })
    .catch((error: unknown) => {
      if (!(error instanceof Undo)) throw error;
    });
  return result as T;
}

/** Runs a statement that is put together as text. */
export async function raw(tx: Db, statement: string): Promise<void> {
  const strings = Object.assign([statement], { raw: [statement] }) as unknown as TemplateStringsArray;
  await tx(strings);
}

/** Writes the links that an entry's writer would have written: who can write to the database can do that too. */
export async function relink(tx: Db, appId: string, run: string): Promise<void> {
  await tx`update automation_run_entries set link = null where app_id = ${appId} and run_id = ${run}`;
  await tx`update automation_runs set linked = sequence, link = link_run_entries(app_id, id, null, 0, sequence, '')
    where app_id = ${appId} and id = ${run}`;
}
