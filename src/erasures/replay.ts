import type { Database } from '../db/database.ts';
import { signingKeys } from '../ledger/keys.ts';
import { createLedger } from '../ledger/seal.ts';
import type { Clock } from '../lib/clock.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { readRegister } from './register.ts';
import { startErasure } from './service.ts';
import { findErasureById } from './store.ts';
import { eraseRows } from './workflow.ts';

type ReplayDeps = { db: Database; secrets: Secrets; clock: Clock };

/**
 * Erases again what a restored backup brought back. Afterwards, no row of it is left; jobs of the server rewrite search
 * indexes, delete the contents of files and sign new certificates. May be repeated. Returns the number of erasures.
 */
export async function replayErasures({ db, secrets, clock }: ReplayDeps, directory: string): Promise<number> {
  const trusted = signingKeys(secrets).map(({ publicKey }) => publicKey);
  const ledger = createLedger({ db, secrets, clock });
  const services = { embedderUrl: undefined, tracesUrl: undefined };
  let replayed = 0;
  for (const order of await readRegister(directory, trusted)) {
    await db.begin((tx) => startErasure(tx, order));
    const erasure = await findErasureById(db, order.appId, order.id);
    if (erasure === undefined || erasure.status === 'done') continue;
    await eraseRows({ db, clock, ledger, services }, erasure, new AbortController().signal);
    replayed += 1;
  }
  return replayed;
}
