import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { openDatabase } from '../../../src/db/database.ts';
import { findEntries, incrementEntries, listEntriesByKey, listPages, upsertEntries } from '../../../src/kv/store.ts';
import { newUuid } from '../../../src/lib/ids.ts';
import { startKv } from '../../support/kv.ts';

const kv = await startKv();
after(() => kv.close());
const app = await kv.provision.app();

test('a statement that requests share is planned once, even when it is a single request, and so is a page', async () => {
  const { uuid: userId } = await kv.createUser(app);
  const scope = { appId: app.app.uuid, sandboxId: app.sandboxUuid };
  const write = { ...scope, userId, key: 'a', value: '1', by: '1', ttlSeconds: null, userBytesMax: 1_000 };
  // An app with many users and entries: PostgreSQL would look for one user instead of the ten that it expects.
  await kv.db`insert into users (app_id, id, sandbox_id, name)
    select ${scope.appId}, gen_random_uuid(), ${scope.sandboxId}, 'n' from generate_series(1, 5000)`;
  await kv.db`insert into kv_entries (app_id, sandbox_id, user_id, key, id, value)
    select app_id, sandbox_id, id, 'a', gen_random_uuid(), 'v' from users where app_id = ${scope.appId} and name = 'n'`;
  await kv.db`analyze users, kv_entries`;
  const one = openDatabase(kv.services.directTarget, { poolSize: 1, applicationName: 'quarry-test-plans' });
  try {
    for (let n = 0; n < 12; n++) {
      await upsertEntries(one, scope, [{ ...write, id: newUuid() }]);
      await incrementEntries(one, scope, [{ ...write, id: newUuid() }]);
      await findEntries(one, scope, [write]);
      const page = { ...write, from: 'a', before: 'b', rowsMax: 51, bytesMax: 4_000_000 };
      await listEntriesByKey(one, page);
      await listPages(one, scope, [page]);
    }
    const plans = await one<{ generic: number }[]>`
      select generic_plans as generic from pg_prepared_statements where statement like '%kv_entries%'
        and statement not like '%pg_prepared%'`;
    assert.equal(plans.length, 5);
    for (const { generic } of plans) assert.equal(generic, 7, 'PostgreSQL tries five plans of their own first');
  } finally {
    await one.end();
  }
});
