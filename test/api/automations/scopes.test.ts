import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { nodeKinds } from '../../../src/automations/nodes/index.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

/*
 * What a key with scopes can do through the graphs that it writes, activates and invokes: no more than by its own
 * requests. Rows of node kinds are stated here; a kind without a row fails the first test.
 */

const server = await startTestServer({ env: { QUARRY_DB_POOL: '10' } });
after(() => server.close());
const { api, provision } = server;
const app = await provision.app();
const client = new AutomationsClient(server, app);
const org = await provision.org(app);
const otherOrg = await provision.org(app);
const user = await provision.user(app, { org });
const victim = await provision.user(app, { org: otherOrg });
await api('PUT', '/api/v1/kv/secret-plan', { key: app.secretKey, body: { user: victim.id, value: 'theirs' } });

async function createKey(...scopes: string[]): Promise<string> {
  const made = await api<{ full_key: string }>('POST', '/api/v1/keys', {
    ...{ key: app.secretKey, body: { type: 'secret', scopes } },
  });
  assert.equal(made.status, 201, made.text);
  return made.body.full_key;
}

const automationsKey = await createKey('automations');
const as = (key: string, method: string, path: string, body?: object) =>
  api<ErrorBody & { id: string; status: string }>(method, `/api/v1${path}`, { key, ...(body ? { body } : {}) });
const done = { id: 'done', kind: 'complete' };

/** For each kind of node: a node, and the scopes that it needs apart from `automations`. */
const file = `fil_${'0'.repeat(22)}`;
const rows: Record<string, [node: object, ...needs: string[]][]> = {
  approve: [[{ question: 'Sure?' }]],
  complete: [[{}]],
  conditional: [[{ when: 'true', on_true: 'done', on_false: 'done' }]],
  emit_event: [[{ name: 'something' }]],
  extract: [
    [{ destination_kind: 'config', destination_path: 'a', url: 'https://example.com' }, 'extractions'],
    [{ destination_kind: 'config', destination_path: 'a', file }, 'extractions', 'files:read'],
    [{ destination_kind: 'config', destination_path: 'a', file: '{{ $.file }}' }, 'extractions', 'files:read'],
  ],
  fail: [[{ message: 'no' }]],
  file_write: [[{ filename: 'a.txt', content_type: 'text/plain', data: 'YQ==' }, 'files']],
  for_each: [[{ items: '[1]', node: { id: 'inner', kind: 'kv_get', key: 'a' } }, 'kv:read']],
  generate: [[{ messages: [{ role: 'user', content: 'a' }] }]],
  http_request: [[{ method: 'GET', url: 'https://example.com' }]],
  ingest: [
    [{ source: 'src', pull: true }, 'knowledge'],
    [{ source: 'src', file }, 'knowledge', 'files:read'],
  ],
  kv_delete: [[{ key: 'a' }, 'kv']],
  kv_get: [[{ key: 'a' }, 'kv:read']],
  kv_set: [[{ key: 'a', value: 'b' }, 'kv']],
  parallel: [[{ nodes: [{ id: 'inner', kind: 'kv_set', key: 'a', value: 'b' }] }, 'kv']],
  run_automation: [[{ automation: '{{ $.automation }}' }]],
  search: [[{ source: 'src', query: 'a' }, 'knowledge:read']],
  transform: [[{ value: '{{ $ }}' }]],
  trigger: [[{}]],
  wait: [[{ seconds: 1 }]],
  wait_for_signal: [[{ name: 'a' }]],
};

test('every kind of node has its scopes here', () => {
  assert.deepEqual(Object.keys(rows).sort(), [...nodeKinds.keys()].sort());
});

test('a key creates, changes and activates a graph only with the scopes of every node in it', async () => {
  for (const [kind, variants] of Object.entries(rows))
    for (const [members, ...needs] of variants) {
      const workflow = graphOf({ id: 'it', kind, ...members }, ...(kind === 'conditional' ? [done] : []));
      const body = { name: kind, type: 'invoked', workflow };
      const enough = await createKey('automations', ...needs);
      const [made, plain] = [
        await as(enough, 'POST', '/automations', body),
        await as(app.secretKey, 'POST', '/automations', { name: kind, type: 'invoked', workflow: graphOf(done) }),
      ];
      assert.equal(made.status, 201, `${kind}: ${made.text}`);
      for (const missing of needs) {
        const others = needs.filter((need) => need !== missing);
        const key = await createKey(
          'automations',
          ...others,
          ...(missing.endsWith(':read') ? [] : [`${missing}:read`]),
        );
        for (const [method, path, sent] of [
          ['POST', '/automations', body],
          ['PATCH', `/automations/${plain.body.id}`, { workflow }],
          ['PATCH', `/automations/${made.body.id}`, { name: 'other' }],
          ['POST', `/automations/${made.body.id}/activate`, undefined],
        ] as const) {
          const refused = await as(key, method, path, sent);
          assert.equal(refused.status, 403, `${method} ${path} of ${kind} without ${missing}: ${refused.text}`);
          assert.match(refused.body.error.message, new RegExp(`requires ${missing.replace(':read', '')}`));
        }
      }
      const active = await as(enough, 'POST', `/automations/${made.body.id}/activate`);
      assert.equal(active.status, 200, `${kind}: ${active.text}`);
    }
});

test('a key with the scope automations cannot read what another user owns', async () => {
  const read = { id: 'read', kind: 'kv_get', user: victim.id, key: 'secret-plan', on_success: 'end' };
  const graph = graphOf(read, { id: 'end', kind: 'complete', result: '{{ $nodes.read.output }}' });
  const body = { name: 'thief', type: 'invoked', user: user.id, workflow: graph };
  for (const more of [{}, { run_as_user: victim.id }]) {
    const made = await as(automationsKey, 'POST', '/automations', { ...body, ...more });
    assert.deepEqual([made.status, made.body.error?.code], [403, 'forbidden'], made.text);
  }
});

test('run_as needs the scope people, because the run then may do what that user may', async () => {
  const agent = await provision.agent(app, { org });
  const body = { name: 'acting', type: 'invoked', workflow: graphOf(done) };
  const people = await createKey('automations', 'people');
  for (const identity of [{ run_as_user: victim.id }, { run_as_agent: agent.id }]) {
    const plain = await as(automationsKey, 'POST', '/automations', body);
    assert.equal(plain.status, 201);
    for (const [method, path, sent] of [
      ['POST', '/automations', { ...body, ...identity }],
      ['PATCH', `/automations/${plain.body.id}`, identity],
    ] as const)
      assert.equal((await as(automationsKey, method, path, sent)).status, 403, method);
    const acting = await as(people, 'POST', '/automations', { ...body, ...identity });
    assert.equal(acting.status, 201, acting.text);
    for (const path of [`/automations/${acting.body.id}/activate`])
      assert.equal((await as(automationsKey, 'POST', path)).status, 403);
    assert.equal((await as(people, 'POST', `/automations/${acting.body.id}/activate`)).status, 200);
  }
});

test('a graph that runs another automation needs the scopes of that one too, by id, by key and over several levels', async () => {
  const inner = await client.createAutomation({
    lookup_key: 'inner-reader',
    workflow: graphOf({ id: 'read', kind: 'kv_get', key: 'a', on_success: 'done' }, done),
  });
  const middle = await client.createAutomation({
    workflow: graphOf({ id: 'child', kind: 'run_automation', automation: 'inner-reader', on_success: 'done' }, done),
  });
  const acting = await client.createAutomation({ run_as_user: victim.id, workflow: graphOf(done) });
  const wide = await createKey('automations', 'kv:read', 'people');
  for (const automation of [inner.id, 'inner-reader', middle.id, acting.id]) {
    const body = {
      name: 'outer',
      type: 'invoked',
      workflow: graphOf({ id: 'child', kind: 'run_automation', automation }),
    };
    assert.equal((await as(automationsKey, 'POST', '/automations', body)).status, 403, automation);
    assert.equal((await as(wide, 'POST', '/automations', body)).status, 201, automation);
  }
});

test('a run has the rights of who wrote its graph, for every caller that invokes it', async () => {
  const read = { id: 'read', kind: 'kv_get', user: victim.id, key: 'secret-plan', on_success: 'end' };
  const end = { id: 'end', kind: 'complete', result: '{{ $nodes.read.output }}' };
  const narrow = await createKey('automations', 'kv:read');
  const made = await as(narrow, 'POST', '/automations', {
    name: 'reader',
    type: 'invoked',
    workflow: graphOf(read, end),
  });
  assert.equal(made.status, 201, made.text);
  // A key with full rights invokes it: what its author may do is done, and nothing more.
  assert.equal((await as(app.secretKey, 'POST', `/automations/${made.body.id}/activate`)).status, 200);
  const run = await client.waitForEnd((await client.invoke(made.body.id)).id);
  assert.equal(run.status, 'completed', JSON.stringify(run));
  const versions = await api<{ data: { version: number; scopes?: string[] }[] }>(
    ...(['GET', `/api/v1/automations/${made.body.id}/versions`, { key: app.secretKey }] as const),
  );
  assert.deepEqual(
    versions.body.data.map(({ scopes }) => scopes),
    [['automations', 'kv:read']],
  );
  // The same text from a key with full rights is a version with full rights.
  await client.call('PATCH', `/automations/${made.body.id}`, { workflow: graphOf(read, end) });
  const after = await api<{ data: { version: number; scopes?: string[] }[] }>(
    ...(['GET', `/api/v1/automations/${made.body.id}/versions`, { key: app.secretKey }] as const),
  );
  assert.deepEqual(
    after.body.data.map(({ version, scopes }) => [version, scopes]),
    [
      [2, undefined],
      [1, ['automations', 'kv:read']],
    ],
  );
});

test('a node without the scopes of its graph fails as forbidden, also in versions that became stricter', async () => {
  const read = { id: 'read', kind: 'kv_get', user: victim.id, key: 'secret-plan', on_success: 'done' };
  const { id } = await client.createAutomation({ workflow: graphOf(read, done) });
  const before = await client.waitForEnd((await client.invoke(id)).id);
  assert.equal(before.status, 'completed');
  // A row as a key with fewer scopes would have left it if an area were added to a kind of node later.
  await server.db`update automation_graphs set scopes = ${['automations']}::text[] where automation_id = ${parseId('automation', id) ?? ''}`;
  const after = await client.waitForEnd((await client.invoke(id)).id);
  assert.deepEqual([after.status, after.error?.code, after.error?.node_id], ['failed', 'forbidden', 'read']);
});

test('a run that acts as its invoker is bounded by the scopes of the key that invokes it, and so are its children', async () => {
  const read = { id: 'read', kind: 'kv_get', user: victim.id, key: 'secret-plan', on_success: 'done' };
  const acting = { id: 'read', kind: 'kv_get', key: 'secret-plan', on_success: 'done' };
  const reader = await client.createAutomation({ workflow: graphOf(read, done) });
  const asVictim = await client.createAutomation({ run_as_user: victim.id, workflow: graphOf(acting, done) });
  const outer = await client.createAutomation({
    workflow: graphOf(
      { id: 'child', kind: 'run_automation', automation: '{{ $.automation }}', on_success: 'done' },
      done,
    ),
  });
  const invoke = async (key: string, automation: string, payload: object = {}) => {
    const started = await as(key, 'POST', `/automations/${automation}/invoke`, { payload });
    assert.equal(started.status, 200, started.text);
    return client.waitForEnd(started.body.id);
  };
  const bounded = await invoke(automationsKey, reader.id);
  assert.deepEqual([bounded.status, bounded.error?.code], ['failed', 'forbidden']);
  const throughChild = await invoke(automationsKey, outer.id, { automation: reader.id });
  assert.deepEqual([throughChild.status, throughChild.error?.code], ['failed', 'forbidden']);
  const retried = await as(
    automationsKey,
    'POST',
    `/automation_runs/${(await invoke(app.secretKey, reader.id)).id}/retry`,
  );
  assert.equal((await client.waitForEnd(retried.body.id)).error?.code, 'forbidden');
  const full = await as(app.secretKey, 'POST', `/automation_runs/${bounded.id}/retry`);
  assert.equal((await client.waitForEnd(full.body.id)).error?.code, 'forbidden', 'A retry does not widen the run.');
  // Not bounded: the automation acts for a user whom its author chose.
  assert.equal((await invoke(automationsKey, asVictim.id)).status, 'completed');
  assert.equal((await invoke(await createKey('automations', 'kv:read'), reader.id)).status, 'completed');
});

test('a key needs `files` to have files deleted with the runs that made them', async () => {
  const body = { name: 'x', type: 'invoked', retention: { days: 9, files: true } };
  const refused = await as(automationsKey, 'POST', '/automations', body);
  assert.equal(refused.status, 403, refused.text);
  assert.match(refused.body.error.message, /retention\.files/);
  const created = await as(await createKey('automations', 'files'), 'POST', '/automations', body);
  assert.equal(created.status, 201, created.text);
  const path = `/automations/${created.body.id}`;
  assert.equal((await as(automationsKey, 'PATCH', path, { name: 'y' })).status, 200);
  assert.equal((await as(automationsKey, 'PATCH', path, { retention: { days: 8, files: true } })).status, 403);
  assert.equal((await as(automationsKey, 'PATCH', path, { retention: { days: 8 } })).status, 200);
});
