import type { Database } from '../../src/db/database.ts';
import { production } from '../../src/db/database.ts';
import type { KvFilter } from '../../src/kv/store.ts';
import { listEntries } from '../../src/kv/store.ts';
import { createApp, createUsers } from './fixture.ts';

const samples = 41;
const small = 1_000;

/** Measures the first page of each kind of list, in an app of a thousand entries and in one of `entries`. */
export async function measureLists(db: Database, entries: number): Promise<void> {
  const apps = [await createEntries(db, small), await createEntries(db, entries)];
  await db`vacuum analyze`;
  console.log(`Median of ${samples} first pages: ${small} entries, ${entries} entries, ratio, and how many match`);
  const filters: [string, (app: App) => KvFilter][] = [
    ['no filter', () => ({})],
    ['user', (app) => ({ userId: app.userId })],
    ['key, up to 1,000 match', () => ({ keys: { from: 'rare/', before: 'rare0' } })],
    ['user_search, up to 1,000', () => ({ userSearch: 'person1@' })],
    ['user_search and key', () => ({ userSearch: 'Number 1', keys: { from: 'rare/', before: 'rare0' } })],
    ['user and key', (app) => ({ userId: app.userId, keys: { from: 'common/', before: 'common0' } })],
    ['nothing matches', () => ({ userSearch: 'nobody' })],
    ['key, nearly all match', () => ({ keys: { from: 'common/', before: 'common0' } })],
    ['user_search, all match', () => ({ userSearch: 'example' })],
  ];
  for (const [name, filterOf] of filters) {
    const times: number[] = [];
    const totals: number[] = [];
    for (const app of apps) {
      const scope = { appId: app.appId, sandboxId: production };
      const all: number[] = [];
      let total = 0;
      for (let i = 0; i < samples; i++) {
        const start = performance.now();
        ({ total } = await listEntries(db, scope, filterOf(app), { limit: 25, offset: 0, bytesMax: 256 * 1024 }));
        all.push(performance.now() - start);
        if (all.length >= 5 && (all[0] ?? 0) > 300) break;
      }
      times.push(all.sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN);
      totals.push(total);
    }
    const [few = Number.NaN, many = Number.NaN] = times;
    console.log(
      `${name.padEnd(26)} ${few.toFixed(2).padStart(8)} ms ${many.toFixed(2).padStart(9)} ms  ${(many / few).toFixed(1).padStart(6)}  ${totals.join(', ')}`,
    );
  }
}

type App = { appId: string; userId: string };

/** Creates a hundredth as many users as entries. 500 keys begin with `rare/`. */
async function createEntries(db: Database, count: number): Promise<App> {
  const appId = await createApp(db);
  const userIds = await createUsers(db, appId, Math.max(1, count / 100));
  // The triggers count row by row; inserting a million rows this way would take too long.
  await db`alter table kv_entries disable trigger user`;
  await db`insert into kv_entries (app_id, sandbox_id, user_id, key, id, value, created_at)
    select ${appId}, ${production}, (${userIds}::uuid[])[1 + i % ${userIds.length}::int],
      case when i % ${Math.max(2, Math.floor(count / 500))}::int = 0 then 'rare/' else 'common/' end || i,
      gen_random_uuid(), repeat('v', 100), now() - i * interval '1 millisecond'
    from generate_series(1, ${count}::int) i`;
  await db`alter table kv_entries enable trigger user`;
  await db`insert into kv_counters (app_id, sandbox_id, part, entries)
    select ${appId}, ${production}, part, ${count / 50} from generate_series(0, 49) part`;
  const [userId] = userIds;
  if (userId === undefined) throw new Error('There is no user.');
  return { appId, userId };
}
