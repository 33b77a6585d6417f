import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createKvService } from '../../../src/kv/service.ts';
import { startKv } from '../../support/kv.ts';
import type { TestUser } from '../../support/provisioner.ts';

const userBytesMax = 10_000;
const kv = await startKv({ QUARRY_KV_USER_BYTES_MAX: String(userBytesMax) });
after(() => kv.close());
const app = await kv.provision.app();

const put = (user: TestUser, key: string, bytes: number) =>
  kv.api('PUT', `/api/v1/kv/${key}`, { token: user.token, body: { value: 'x'.repeat(bytes) } });

test('keys and values fit up to the last byte, one more is 422 quota_exceeded', async () => {
  const user = await kv.createUser(app);
  assert.equal((await put(user, 'first', userBytesMax - 5 - 6)).status, 200);
  const over = await put(user, 'other', 2);
  assert.deepEqual([over.status, over.body.error.code], [422, 'quota_exceeded']);
  assert.equal(over.body.error.details.user_bytes_max, userBytesMax);
  assert.equal((await put(user, 'other', 1)).status, 200);
  assert.equal((await put(user, 'x', 1)).status, 422);
  assert.equal((await kv.api('GET', '/api/v1/kv/x', { token: user.token })).status, 404);
});

test('overwriting and deleting free quota', async () => {
  const user = await kv.createUser(app);
  await put(user, 'a', userBytesMax - 1);
  assert.equal((await put(user, 'a', userBytesMax)).status, 422);
  assert.equal((await put(user, 'a', 5_000)).status, 200);
  assert.equal((await put(user, 'b', 4_998)).status, 200);
  assert.equal((await put(user, 'c', 1)).status, 422);
  assert.equal((await kv.api('DELETE', '/api/v1/kv/a', { token: user.token })).status, 204);
  assert.equal((await put(user, 'c', 5_000)).status, 200);
});

test('characters count as their bytes in UTF-8', async () => {
  const user = await kv.createUser(app);
  const response = await kv.api('PUT', '/api/v1/kv/a', {
    token: user.token,
    body: { value: 'ž'.repeat(userBytesMax / 2) },
  });
  assert.equal(response.status, 422);
});

test('POST and conditional writes are also bounded', async () => {
  const user = await kv.createUser(app);
  const value = 'x'.repeat(userBytesMax);
  assert.equal((await kv.api('POST', '/api/v1/kv', { token: user.token, body: { key: 'k', value } })).status, 422);
  const conditional = { token: user.token, headers: { 'if-none-match': '*' } };
  assert.equal((await kv.api('PUT', '/api/v1/kv/k', { ...conditional, body: { value } })).status, 422);
});

test('many concurrent writes of one user never exceed the quota, and use all of it', async () => {
  const user = await kv.createUser(app);
  const responses = await Promise.all(Array.from({ length: 150 }, (_, i) => put(user, `k${100 + i}`, 96)));
  const stored = responses.filter((response) => response.status === 200).length;
  assert.equal(stored, userBytesMax / 100);
  assert.ok(responses.every((response) => response.status === 200 || response.body.error.code === 'quota_exceeded'));
  await assertUsageIsExact(user.uuid);

  await Promise.all(
    responses.map((_, i) =>
      i % 2 === 0 ? kv.api('DELETE', `/api/v1/kv/k${100 + i}`, { token: user.token }) : put(user, `k${100 + i}`, 1 + i),
    ),
  );
  await assertUsageIsExact(user.uuid);
});

test('one user’s open write keeps no other user waiting', async () => {
  const [slow, quick] = await Promise.all([kv.createUser(app), kv.createUser(app)]);
  await put(quick, 'warm', 1);
  await kv.db.begin(async (tx) => {
    await tx`insert into kv_entries (app_id, sandbox_id, user_id, key, id, value)
      values (${app.app.uuid}, ${app.sandboxUuid}, ${slow.uuid}, 'open', gen_random_uuid(), 'v')`;
    // Would never come back if it needed anything that the open transaction holds.
    assert.equal((await put(quick, 'k', 10)).status, 200);
    assert.equal((await kv.api('DELETE', '/api/v1/kv/k', { token: quick.token })).status, 204);
  });
});

test('a write that has to wait does not delay another user’s write in the same batch', async () => {
  const [slow, quick] = await Promise.all([kv.createUser(app), kv.createUser(app)]);
  await put(slow, 'open', 1);
  let waiting: Promise<{ status: number }> | undefined;
  await kv.db.begin(async (tx) => {
    await tx`update kv_entries set value = 'held' where user_id = ${slow.uuid} and key = 'open'`;
    waiting = put(slow, 'open', 2);
    // Would never come back if the one that waits held the others up.
    const others = await Promise.all(Array.from({ length: 40 }, (_, i) => put(quick, `k${i}`, 10)));
    assert.deepEqual(new Set(others.map((response) => response.status)), new Set([200]));
  });
  assert.equal((await waiting)?.status, 200);
  assert.equal((await kv.api('GET', '/api/v1/kv/open', { token: slow.token })).body.value, 'xx');
});

test('a refused write does not fail the writes batched with it', async () => {
  const users = await Promise.all(Array.from({ length: 8 }, () => kv.createUser(app)));
  const gone = await kv.createUser(app);
  await kv.api('DELETE', `/api/v1/users/${gone.id}`, { key: app.secretKey });
  const responses = await Promise.all([
    ...users.flatMap((user) => [put(user, 'fits', 10), put(user, 'large', userBytesMax)]),
    kv.api('PUT', '/api/v1/kv/k', { key: app.secretKey, body: { user: gone.id, value: 'v' } }),
  ]);
  assert.deepEqual(
    responses.map((response) => response.status),
    [...users.flatMap(() => [200, 422]), 404],
  );
  for (const user of users) await assertUsageIsExact(user.uuid);
});

test('a lowered quota refuses growth, but allows a user to shrink', async () => {
  const user = await kv.createUser(app);
  await put(user, 'a', 4_000);
  await put(user, 'b', 4_000);
  const limits = { keyBytesMax: 1024, valueBytesMax: 1024 * 1024, userBytesMax: 5_000 };
  const lowered = createKvService({ limits });
  const caller = {
    ...({ kind: 'server', keyId: user.uuid } as const),
    appId: app.app.uuid,
    sandboxId: app.sandboxUuid,
  };
  const putLowered = (key: string, bytes: number) =>
    lowered.put(kv.db, caller, key, { value: 'x'.repeat(bytes), user: user.id }, undefined);
  await assert.rejects(putLowered('c', 1), { code: 'quota_exceeded' });
  await putLowered('a', 3_999);
  await putLowered('a', 1);
  await putLowered('c', 900);
  await assert.rejects(putLowered('d', 200), { code: 'quota_exceeded' });
  assert.equal((await put(user, 'd', 200)).status, 200);
  await assertUsageIsExact(user.uuid);
});

async function assertUsageIsExact(userId: string): Promise<void> {
  const [sums] = await kv.db<{ booked: number; stored: number; allowed: boolean }[]>`
    select (select sum(bytes) from kv_usage where user_id = ${userId})::bigint as booked,
      (select sum(octet_length(key) + octet_length(value)) from kv_entries where user_id = ${userId})::bigint as stored,
      (select sum(allowance) <= ${userBytesMax} from kv_usage where user_id = ${userId}) as allowed`;
  assert.equal(sums?.booked, sums?.stored);
  assert.equal(sums?.allowed, true);
}
