import { randomBytes } from 'node:crypto';
import { type Database, production, type Transaction } from '../db/database.ts';
import { formatId, newUuid } from '../lib/ids.ts';
import { digest, generateCredential, type Secrets } from '../tenancy/secrets.ts';
import { type AppRow, insertApp } from './store.ts';

/** The credentials of an app in plain text. They are shown once and never stored. */
export type AppCredentials = {
  app: string;
  developerToken: string;
  secretKey: string;
  publishableKey: string;
};

/**
 * Inserts the first app where apps of this installation are: by default in the database of its developer.
 * `insert` returns the row of the app.
 */
export type FirstPlace = (
  transaction: Transaction,
  developer: { id: string; name: string },
  insert: (appTransaction: Transaction) => Promise<AppRow>,
) => Promise<unknown>;

/**
 * Creates a developer, an app and its first credentials if the database has no developer; otherwise returns undefined.
 * `keep` receives the credentials before the commit, so that none exist that were not shown.
 * If several processes start together, exactly one of them does this.
 */
export function bootstrapIfEmpty(
  db: Database,
  secrets: Secrets,
  keep: (credentials: AppCredentials) => void,
  place: FirstPlace = (transaction, _developer, insert) => insert(transaction),
): Promise<AppCredentials | undefined> {
  return db.begin(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(${bootstrapLockKey})`;
    const [developer] = await transaction`select id from developers limit 1`;
    if (developer) return undefined;
    const first = { id: newUuid(), name: 'Developer' };
    await transaction`insert into developers (id, name) values (${first.id}, ${first.name})`;
    const app = { id: newUuid(), developerId: first.id, name: 'My app', capabilityKey: generateCapabilityKey(secrets) };
    let credentials: AppCredentials | undefined;
    await place(transaction, first, async (appTransaction) => {
      const row = await insertApp(appTransaction, app);
      credentials = await mint({ directory: transaction, cell: appTransaction }, app);
      keep(credentials);
      return row;
    });
    return credentials;
  });
}

/**
 * Adds credentials to the oldest app of the database. Returns undefined if it has none.
 * @param elsewhere the database of developers if it is another one, and the app
 */
export function mintCredentials(
  db: Database,
  elsewhere?: { directory: Database; appId: string },
): Promise<AppCredentials | undefined> {
  return db.begin(async (cell) => {
    const [app] = await cell<{ id: string; developerId: string }[]>`
      select id, developer_id from apps where ${elsewhere?.appId ?? null}::uuid is null or id = ${elsewhere?.appId ?? null}
      order by id limit 1`;
    if (app === undefined) return undefined;
    if (elsewhere === undefined) return mint({ directory: cell, cell }, app);
    return elsewhere.directory.begin((directory) => mint({ directory, cell }, app));
  });
}

const bootstrapLockKey = 7_130_241_002;
const capabilityKeyBytes = 32;

/** Generates a random key for an app's capability URLs, wrapped for storage. */
export function generateCapabilityKey(secrets: Secrets): Buffer {
  return secrets.wrap(randomBytes(capabilityKeyBytes));
}

/** Developers and their tokens are in the directory, and keys in the cell of their app: usually one database. */
async function mint(
  { directory, cell }: { directory: Transaction; cell: Transaction },
  { id: appId, developerId }: { id: string; developerId: string },
): Promise<AppCredentials> {
  const developerToken = generateCredential('dvt');
  await directory`insert into developer_tokens (digest, id, developer_id, name)
    values (${digest(developerToken)}, ${newUuid()}, ${developerId}, 'quarry credentials')`;
  return {
    app: formatId('app', appId),
    developerToken,
    secretKey: await insertKey(cell, appId, 'secret'),
    publishableKey: await insertKey(cell, appId, 'publishable'),
  };
}

async function insertKey(db: Transaction, appId: string, type: 'secret' | 'publishable'): Promise<string> {
  const key = generateCredential(type === 'secret' ? 'sk' : 'pk');
  await db`insert into api_keys (app_id, id, sandbox_id, type, name, digest, hint)
    values (${appId}, ${newUuid()}, ${production}, ${type}, 'quarry credentials', ${digest(key)}, ${key.slice(0, 8)})`;
  return key;
}
