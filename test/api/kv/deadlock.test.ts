import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const server = await startTestServer();
after(() => server.close());
const { db } = server;

test('a write that conflicts with a transaction of several writes succeeds instead of failing with 500', async () => {
  const app = await server.provision.app();
  const user = await server.provision.user(app);
  const put = (key: string, value: string) =>
    server.api('PUT', `/api/v1/kv/${key}`, { token: user.token, body: { value } });
  assert.equal((await put('first', 'a')).status, 200);
  assert.equal((await put('second', 'a')).status, 200);
  let response: ReturnType<typeof put> | undefined;
  await db.begin(async (tx) => {
    await tx`update kv_entries set value = 'longer' where key = 'first' and user_id = ${user.uuid}`;
    response = put('second', 'longer still');
    let isOver = false;
    void response.finally(() => {
      isOver = true;
    });
    const waits = () => db`
      select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await until(async () => isOver || (await waits()).count > 0);
    assert.equal(isOver, false, 'The write waits for a lock.');
    await tx`update kv_entries set value = 'longer' where key = 'second' and user_id = ${user.uuid}`;
  });
  assert.equal((await response)?.status, 200);
});
