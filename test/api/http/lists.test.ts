import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { newUuid } from '../../../src/lib/ids.ts';
import { collectGarbage } from '../../support/garbage.ts';
import { startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const { api, db, provision } = server;
const app = await provision.app();

type Entry = { key: string; value: string };
const bytesOf = (mebibytes: number) => mebibytes * 1024 * 1024;

/** Entries of so many bytes each, newest first `k0`, `k1`, … and some created in the same instant. */
async function fill(user: { uuid: string }, count: number, bytes: number): Promise<void> {
  await db`
    insert into kv_entries (app_id, sandbox_id, user_id, key, id, value, created_at)
    select ${app.app.uuid}, '00000000-0000-0000-0000-000000000000', ${user.uuid}, 'k' || n,
      md5(n::text || ${newUuid()})::uuid, repeat(md5(n::text), ${bytes / 32}),
      timestamptz '2024-01-01' - (n / 2) * interval '1 microsecond'
    from generate_series(0, ${count - 1}) n, set_config('quarry.kv_user_bytes_max', '1000000000', true)`;
}

test('an end user’s list of tens of megabytes arrives complete and in order, and delays no other request', async () => {
  const user = await provision.user(app);
  await fill(user, 900, 64 * 1024);
  const other = await provision.user(app);
  await api('PUT', '/api/v1/kv/mine', { token: other.token, body: { value: 'x' } });
  const heldBefore = heldBytes();
  let heldMax = 0;
  const lists = Array.from({ length: 4 }, () => readAway('/api/v1/kv', user.token));
  let open = true;
  const all = Promise.all(lists).finally(() => {
    open = false;
  });
  let reads = 0;
  while (open) {
    const read = await api('GET', '/api/v1/kv/mine', { token: other.token });
    assert.equal(read.status, 200);
    reads += 1;
    if (reads % 20 === 0) heldMax = Math.max(heldMax, heldBytes());
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await all;
  // Lists that are written in one piece leave room for four.
  assert.ok(reads > 8, `another user has read ${reads} times meanwhile`);
  const held = heldMax - heldBefore;
  // It is 6 MiB on a quiet machine and 7 on a busy one. Four lists of 56 MiB, each whole in memory, would be 240 as text alone.
  assert.ok(held < bytesOf(30), `holds ${Math.round(held / bytesOf(1))} MiB`);

  const { body } = await api<{ data: Entry[] }>('GET', '/api/v1/kv', { token: user.token });
  assert.equal(body.data.length, 900);
  assert.equal(new Set(body.data.map(({ key }) => key)).size, 900);
  const places = body.data.map(({ key }) => Math.floor(Number(key.slice(1)) / 2));
  assert.deepEqual(
    places,
    [...places].sort((a, b) => a - b),
  );
  assert.ok(body.data.every(({ value }) => value.length === 64 * 1024));
});

/** Resident memory would count garbage too, of which there is more the slower the machine. */
function heldBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Reads a list without keeping it. */
async function readAway(path: string, token: string): Promise<void> {
  const response = await fetch(`${server.baseUrl}${path}`, { headers: { authorization: `Bearer ${token}` } });
  let size = 0;
  for await (const chunk of response.body ?? []) size += chunk.length;
  assert.ok(size > bytesOf(50), `${size} bytes`);
}

test('a page of large entries has all their values, and its totals', async () => {
  const user = await provision.user(app);
  await fill(user, 12, 512 * 1024);
  for (const query of [`?user=${user.id}&page_size=10`, `?user=${user.id}&page_size=10&key=k`]) {
    const { body } = await api<{ data: Entry[]; page_size: number; total_entries: number; has_next: boolean }>(
      'GET',
      `/api/v1/kv${query}`,
      { key: app.secretKey },
    );
    assert.deepEqual([body.data.length, body.page_size, body.total_entries, body.has_next], [10, 10, 12, true]);
    for (const { value } of body.data) assert.equal(value.length, 512 * 1024);
  }
});

test('a list of large agents is complete, and sent in pieces', async () => {
  const note = 'x'.repeat(200_000);
  const user = await provision.user(app);
  for (let count = 0; count < 20; count++) {
    const body = { name: `Agent ${count}`, user: user.id, metadata: { note } };
    assert.equal((await api('POST', '/api/v1/agents', { key: app.secretKey, body })).status, 201);
  }
  const listed = await api<{ data: { name: string; metadata: { note: string } }[]; total_entries: number }>(
    'GET',
    '/api/v1/agents?page_size=100',
    { token: user.token },
  );
  assert.equal(listed.headers.get('content-length'), null, 'it is streamed');
  assert.deepEqual(
    listed.body.data.map(({ name }) => name),
    Array.from({ length: 20 }, (_, index) => `Agent ${19 - index}`),
  );
  assert.ok(listed.body.data.every(({ metadata }) => metadata.note === note));
  assert.equal(listed.body.total_entries, 20);
  const head = await api('HEAD', '/api/v1/agents?page_size=100', { token: user.token });
  assert.deepEqual([head.status, head.text], [200, '']);
});
