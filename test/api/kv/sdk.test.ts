import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { PlatformClient } from '@archastro/sdk';
import { startKv } from '../../support/kv.ts';

/** The published client of the API that this server speaks, unchanged but for its base URL. */
const kv = await startKv();
after(() => kv.close());
const app = await kv.provision.app();
const user = await kv.createUser(app, 'ada@example.com', 'Ada Lovelace');
const asUser = PlatformClient.withToken(app.publishableKey, user.token, kv.baseUrl);
const asServer = PlatformClient.withSecretKey(app.secretKey, kv.baseUrl);

test('the SDK signed in as a user drives every key-value method', async () => {
  const created = await asUser.kv.create({ key: 'theme', value: 'dark' });
  assert.deepEqual([created.user, created.key, created.value], [user.id, 'theme', 'dark']);
  await assert.rejects(asUser.kv.create({ key: 'theme', value: 'light' }), { status: 422 });
  const written = await asUser.kv.upsert('theme', { value: 'light' });
  assert.equal(written.value, 'light');
  assert.deepEqual(await asUser.kv.get('theme'), written);
  const list = await asUser.kv.list();
  assert.deepEqual(Object.keys(list), ['data']);
  await asUser.kv.delete('theme');
  await assert.rejects(asUser.kv.get('theme'), { status: 404 });
});

test('the SDK puts keys into the path unchanged', async () => {
  for (const key of ['notes/2024/may', 'with blank', 'žluť', '100%', 'a%2Fb']) {
    await asUser.kv.upsert(key, { value: `value of ${key}` });
    assert.equal((await asUser.kv.get(key)).value, `value of ${key}`);
    await asUser.kv.delete(key);
  }
});

test('the SDK with a secret key drives key-value storage for the users that it names', async () => {
  await asServer.kv.create({ key: 'plan', value: 'free', user: user.id });
  await asServer.kv.upsert('plan', { value: 'pro', user: user.id });
  assert.equal((await asServer.kv.get('plan', { user: user.id })).value, 'pro');
  const list = await asServer.kv.list({ page: 1, pageSize: 10, user: user.id, userSearch: 'lovelace', key: 'pl' });
  assert.deepEqual(
    { ...list, data: list.data.map((entry) => [entry.key, entry.user_email, entry.user_name]) },
    {
      data: [['plan', 'ada@example.com', 'Ada Lovelace']],
      page: 1,
      page_size: 10,
      total_entries: 1,
      total_pages: 1,
      has_next: false,
      has_prev: false,
    },
  );
  await assert.rejects(asServer.kv.upsert('plan', { value: 'x' }), { status: 400 });
});
