import type { Database } from '../db/database.ts';
import type { Secrets } from './secrets.ts';

/** SQL for everything in the database that the root secret wraps. */

/** Whether the root secret unwraps the keys in this database. True for an empty database. */
export async function unwrapsStoredKeys(db: Database, secrets: Secrets): Promise<boolean> {
  const [app] = await db<{ key: Buffer }[]>`select capability_key as key from apps order by id limit 1`;
  try {
    if (app) secrets.unwrap(app.key);
    return true;
  } catch {
    return false;
  }
}

/**
 * Wraps every value again with the current root secret after a rotation, so that the previous one can be removed.
 * Returns the number of values.
 */
export async function rewrapKeys(db: Database, secrets: Secrets): Promise<number> {
  let rewrapped = 0;
  for (const [table, column] of wrappedColumns) {
    rewrapped += await db.begin('read only', async (tx) => {
      let count = 0;
      const rows = tx<{ place: string; wrapped: Buffer }[]>`
        select ctid::text as place, ${tx(column)} as wrapped from ${tx(table)} where ${tx(column)} is not null`;
      for await (const batch of tx.cursor(rows, rewrapBatch))
        for (const { place, wrapped } of batch) {
          const { plain, stale } = secrets.unwrap(wrapped);
          if (!stale) continue;
          // If a concurrent update moves the row, this one misses it. The next start of any process finds it.
          await db`update ${db(table)} set ${db(column)} = ${secrets.wrap(plain)}
            where ctid = ${place}::tid and ${db(column)} = ${wrapped}`;
          count += 1;
        }
      return count;
    });
  }
  return rewrapped;
}

/** Every column that the root secret wraps. */
const wrappedColumns = [
  ['apps', 'capability_key'],
  ['app_secrets', 'value'],
  ['automation_entry_fragments', 'secrets'],
  ['identity_issuers', 'client_secret'],
  ['knowledge_sources', 'inbound_token'],
  ['knowledge_sources', 'inbound_secret'],
  ['knowledge_sources', 'inbound_previous_secret'],
  ['models', 'key'],
  ['webhooks', 'secret'],
  ['webhooks', 'previous_secret'],
] as const;
const rewrapBatch = 500;
