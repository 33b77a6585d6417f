import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { parseId } from '../../src/lib/ids.ts';
import { startKillableServer } from '../support/killable-server.ts';
import { until } from '../support/until.ts';

const rounds = Number(process.env.CRASH_ROUNDS ?? 3);
const many = 4_000;

const server = await startKillableServer('deletions');
after(() => server.close());
const { db, send, appId } = server;

type Id = { id: string };

async function create(path: string, body: object): Promise<string> {
  const { status, body: made, text } = await send<Id>('POST', path, body);
  assert.equal(status, 201, text);
  return made.id;
}

/** An org with threads of its own, and with a user who has as many. */
async function createOrg() {
  const org = await create('/orgs', { name: 'O' });
  const user = await create('/users', { email: `${org.toLowerCase()}@example.test`, org });
  const file = { filename: 'a.txt', content_type: 'text/plain', data: 'QQ==' };
  await create('/files', { ...file, org });
  const kept = await create('/files', { ...file, user });
  const [orgId, userId] = [parseId('org', org) ?? '', parseId('user', user) ?? ''];
  await db`
    insert into threads (app_id, sandbox_id, id, org_id, title)
    select app_id, sandbox_id, gen_random_uuid(), id, 'T' from orgs, generate_series(1, ${many}) where id = ${orgId}`;
  await db`
    insert into threads (app_id, sandbox_id, id, org_id, user_id, title)
    select app_id, sandbox_id, gen_random_uuid(), ${orgId}, id, 'T' from users, generate_series(1, ${many})
    where id = ${userId}`;
  const count = async () => {
    const [counted] = await db<[{ ofOrg: number; ofUser: number; files: number }]>`
      select count(*) filter (where org_id = ${orgId} and user_id is null)::integer as of_org,
        count(*) filter (where user_id = ${userId})::integer as of_user,
        (select count(*)::integer from files where app_id = ${appId} and org_id = ${orgId}) as files
      from threads where app_id = ${appId}`;
    return counted;
  };
  return { org, user, kept, count };
}

/** The threads of anyone that still name the org. */
async function countNamed(org: string): Promise<number> {
  return (await db`select from threads where app_id = ${appId} and org_id = ${parseId('org', org) ?? ''}`).count;
}

test('however often the server is killed while it deletes an org, all of it goes and what others have stays', async () => {
  const other = await createOrg();
  for (let round = 1; round <= rounds; round += 1) {
    const { org, user, kept, count } = await createOrg();
    let isOver = false;
    const removal = send('DELETE', `/orgs/${org}`)
      .then(({ status }) => status)
      .catch(() => undefined)
      .finally(() => {
        isOver = true;
      });
    // At the start of the deletion, at its end, or between any two of its batches.
    const left = Math.floor(Math.random() * 2 * many);
    await until(async () => isOver || (await countNamed(org)) <= left);
    await server.serve.kill();
    const status = await removal;
    await server.restart();
    // Two minutes later.
    const { count: jobs } = await db`update jobs set run_at = now() where task = 'delete_owner'`;
    const isGone = async () => (await send('GET', `/orgs/${org}`)).status === 404;
    if (status === 204) assert.ok(await isGone(), 'acknowledged');
    // A request that was killed before it decided has changed nothing.
    if (jobs === 0 && !(await isGone())) {
      assert.deepEqual(await count(), { ofOrg: many, ofUser: many, files: 2 });
      assert.equal((await send('DELETE', `/orgs/${org}`)).status, 204);
    }
    await until(isGone);
    await until(async () => (await db`select from jobs where task = 'delete_owner'`).count === 0);
    assert.deepEqual(await count(), { ofOrg: 0, ofUser: many, files: 0 });
    for (const path of [`/users/${user}`, `/files/${kept}`]) assert.equal((await send('GET', path)).status, 200, path);
    assert.equal((await send('DELETE', `/users/${user}`)).status, 204);
  }
  assert.deepEqual(await other.count(), { ofOrg: many, ofUser: many, files: 2 });
});
