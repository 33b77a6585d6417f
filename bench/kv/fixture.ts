import { type Database, production } from '../../src/db/database.ts';
import { formatId, newUuid } from '../../src/lib/ids.ts';
import { mintAccessToken } from '../../src/tenancy/access-tokens.ts';
import { digest, generateCredential, Secrets } from '../../src/tenancy/secrets.ts';

export const benchSecret = 'a-root-secret-that-only-this-benchmark-uses';
const entriesOfUser = 10_000;

export type Fixture = { user: { id: string; token: string }; secretKey: string; keys: string[] };

/** Creates a user with ten thousand entries, and the same entries in bare tables. */
export async function createFixture(db: Database): Promise<Fixture> {
  const appId = await createApp(db);
  const [userId] = await createUsers(db, appId, 1);
  if (userId === undefined) throw new Error('There is no user.');
  await db`insert into kv_entries (app_id, sandbox_id, user_id, key, id, value)
    select ${appId}, ${production}, ${userId}, 'key-' || i, gen_random_uuid(), repeat('v', 100)
    from generate_series(1, ${entriesOfUser}::int) i`;
  await db`create table bare_entries (key text collate "C" primary key, value text not null) with (fillfactor = 85)`;
  await db`insert into bare_entries select key, value from kv_entries where app_id = ${appId}`;
  await db`create table bare_full_entries (key text collate "C" primary key, "user" text not null, value text not null,
    created_at timestamptz not null, updated_at timestamptz not null)`;
  await db`insert into bare_full_entries select key, ${formatId('user', userId)}, value, created_at, updated_at
    from kv_entries where app_id = ${appId}`;
  await db`vacuum analyze`;
  const secretKey = generateCredential('sk');
  await db`insert into api_keys (app_id, id, sandbox_id, type, digest, hint)
    values (${appId}, ${newUuid()}, ${production}, 'secret', ${digest(secretKey)}, 'sk_')`;
  const token = await mintAccessToken(new Secrets(benchSecret), { appId, sandboxId: production, userId }, new Date());
  const keys = Array.from({ length: entriesOfUser }, (_, i) => `key-${i + 1}`);
  return { user: { id: formatId('user', userId), token }, secretKey, keys };
}

export async function createApp(db: Database): Promise<string> {
  const [appId, developerId] = [newUuid(), newUuid()];
  await db`insert into developers (id, name) values (${developerId}, 'Bench')`;
  await db`insert into apps (id, developer_id, name, capability_key)
    values (${appId}, ${developerId}, 'Bench', ${Buffer.alloc(0)})`;
  await db`insert into sandboxes (app_id, id, name) values (${appId}, ${production}, 'Production')`;
  return appId;
}

/** Creates users with numbered names, so that a search can find any number of them. */
export async function createUsers(db: Database, appId: string, count: number): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    insert into users (app_id, id, sandbox_id, email, name)
    select ${appId}, gen_random_uuid(), ${production}, 'person' || i || '@example.com', 'Person Number ' || i
    from generate_series(1, ${count}::int) i returning id`;
  return rows.map((row) => row.id);
}
