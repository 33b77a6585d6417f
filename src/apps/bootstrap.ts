import { randomBytes } from 'node:crypto';
import { type Database, production, type Transaction } from '../db/database.ts';
import { formatId, newUuid } from '../lib/ids.ts';
import { digest, generateCredential, type Secrets } from '../tenancy/secrets.ts';
import { insertApp } from './store.ts';

/** The credentials of an app in plain text. They are shown once and never stored. */
export type AppCredentials = {
  app: string;
  developerToken: string;
  secretKey: string;
  publishableKey: string;
};

/**
 * Creates a developer, an app and its first credentials if the database has no developer; otherwise returns undefined.
 * `keep` receives the credentials before the commit, so that none exist that were not shown.
 * If several processes start together, exactly one of them does this.
 */
export function bootstrapIfEmpty(
  db: Database,
  secrets: Secrets,
  keep: (credentials: AppCredentials) => void,
): Promise<AppCredentials | undefined> {
  return db.begin(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(${bootstrapLockKey})`;
    const [developer] = await transaction`select id from developers limit 1`;
    if (developer) return undefined;
    const developerId = newUuid();
    await transaction`insert into developers (id, name) values (${developerId}, 'Developer')`;
    const appId = newUuid();
    await insertApp(transaction, {
      id: appId,
      developerId,
      name: 'My app',
      capabilityKey: generateCapabilityKey(secrets),
    });
    const credentials = await mint(transaction, developerId, appId);
    keep(credentials);
    return credentials;
  });
}

/** Adds credentials to the oldest app. Returns undefined if there is no app. */
export function mintCredentials(db: Database): Promise<AppCredentials | undefined> {
  return db.begin(async (transaction) => {
    const [app] = await transaction<{ id: string; developerId: string }[]>`
      select id, developer_id from apps order by id limit 1`;
    return app && mint(transaction, app.developerId, app.id);
  });
}

const bootstrapLockKey = 7_130_241_002;
const capabilityKeyBytes = 32;

/** Generates a random key for an app's capability URLs, wrapped for storage. */
export function generateCapabilityKey(secrets: Secrets): Buffer {
  return secrets.wrap(randomBytes(capabilityKeyBytes));
}

async function mint(db: Transaction, developerId: string, appId: string): Promise<AppCredentials> {
  const developerToken = generateCredential('dvt');
  await db`insert into developer_tokens (digest, id, developer_id, name)
    values (${digest(developerToken)}, ${newUuid()}, ${developerId}, 'quarry credentials')`;
  return {
    app: formatId('app', appId),
    developerToken,
    secretKey: await insertKey(db, appId, 'secret'),
    publishableKey: await insertKey(db, appId, 'publishable'),
  };
}

async function insertKey(db: Transaction, appId: string, type: 'secret' | 'publishable'): Promise<string> {
  const key = generateCredential(type === 'secret' ? 'sk' : 'pk');
  await db`insert into api_keys (app_id, id, sandbox_id, type, name, digest, hint)
    values (${appId}, ${newUuid()}, ${production}, ${type}, 'quarry credentials', ${digest(key)}, ${key.slice(0, 8)})`;
  return key;
}
