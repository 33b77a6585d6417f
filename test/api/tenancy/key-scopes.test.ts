import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { allows, keyScopes } from '../../support/authorization/scopes.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

/*
 * Secret keys with scopes: the MCP tools that they reach, and what they show; and keys that expire. The operations that
 * they reach are in authorization-matrix.test.ts, references in scope-references.test.ts.
 */

const time = { aheadMs: 0 };
const clock = { now: () => new Date(Date.now() + time.aheadMs) };
const server = await startTestServer({ clock, env: { QUARRY_DB_POOL: '10' } });
after(() => server.close());
const { api, provision } = server;
const app = await provision.app();

type Key = { id: string; full_key: string; scopes?: string[]; expires_at?: string };

async function createKey(body: object): Promise<Key> {
  const made = await api<Key>('POST', '/api/v1/keys', { key: app.secretKey, body: { type: 'secret', ...body } });
  assert.equal(made.status, 201, made.text);
  return made.body;
}

/** What each MCP tool needs, for a key that sees and calls it. */
const tools: Record<string, [area: string, ...names: string[]][]> = {
  reads: [
    ['automations', 'list_automations', 'list_invocable_automations', 'read_run'],
    ['extractions', 'read_extraction'],
    ['files', 'list_files', 'read_file', 'list_uploads'],
    ['knowledge', 'list_knowledge_sources', 'search_knowledge', 'list_documents', 'read_document'],
    ['kv', 'kv_get', 'kv_list'],
  ],
  changes: [
    ['automations', 'invoke_automation', 'signal_run', 'cancel_run', 'retry_run', 'emit_event'],
    ['extractions', 'extract_file', 'extract_url'],
    ['files', 'upload_file', 'create_upload_url'],
    ['knowledge', 'answer', 'ingest'],
    ['kv', 'kv_put', 'kv_increment', 'kv_delete', 'kv_batch'],
  ],
};
const toolNeeds = Object.entries(tools).flatMap(([kind, rows]) =>
  rows.flatMap(([area, ...names]) => names.map((name) => ({ name, need: { area, reads: kind === 'reads' } }))),
);

test('a key of each scope sees and calls exactly the MCP tools that the scope allows', async () => {
  const send = (key: string, method: string, params: object) =>
    api<{ result: { tools: { name: string }[] } }>('POST', '/mcp', {
      key,
      headers: { accept: 'application/json, text/event-stream' },
      body: { jsonrpc: '2.0', id: 1, method, params },
    });
  const listTools = async (key: string) => {
    const { text } = await send(key, 'tools/list', {});
    return [...text.matchAll(/"name":"(\w+)","title"/g)].map(([, name]) => name);
  };
  const sorted = (names: (string | undefined)[]) => names.sort();
  assert.deepEqual(
    sorted(await listTools(app.secretKey)),
    sorted(toolNeeds.map(({ name }) => name)),
    'Give each tool its row above.',
  );
  for (const scope of keyScopes) {
    const { full_key: key } = await createKey({ scopes: [scope] });
    const allowed = toolNeeds.filter(({ need }) => allows(scope, need)).map(({ name }) => name);
    assert.deepEqual(sorted(await listTools(key)), sorted([...allowed]), scope);
    for (const { name } of toolNeeds) {
      const { text } = await send(key, 'tools/call', { name, arguments: {} });
      const isHidden = text.includes(`The tool ${name} does not exist`);
      assert.equal(isHidden, !allowed.includes(name), `${scope} ${name}: ${text}`);
    }
  }
  const { full_key: key } = await createKey({ scopes: ['kv:read'] });
  const user = await provision.user(app);
  const called = await send(key, 'tools/call', { name: 'kv_list', arguments: { user: user.id } });
  assert.doesNotMatch(called.text, /isError":true/);
});

test('scopes are shown, and a key with scopes creates no keys', async () => {
  const { id, full_key: key } = await createKey({ scopes: ['app', 'kv:read'], name: 'reporter' });
  const shown = await api<Key>('GET', `/api/v1/keys/${id}`, { key });
  assert.deepEqual([shown.status, shown.body.scopes], [200, ['app', 'kv:read']]);
  const made = await api<ErrorBody>('POST', '/api/v1/keys', { key, body: { type: 'secret' } });
  assert.deepEqual([made.status, made.body.error.code], [403, 'forbidden']);
  for (const [body, field] of [
    [{ type: 'publishable', scopes: ['read'] }, 'scopes'],
    [{ type: 'secret', scopes: [] }, 'scopes'],
    [{ type: 'secret', scopes: ['everything'] }, 'scopes.0'],
    [{ type: 'secret', scopes: ['read', 'read'] }, 'scopes'],
    [{ type: 'secret', expires_in_days: 0 }, 'expires_in_days'],
  ] as const) {
    const refused = await api<ErrorBody>('POST', '/api/v1/keys', { key: app.secretKey, body });
    assert.deepEqual([refused.status, refused.body.error.fields[0]?.field], [422, field], refused.text);
  }
});

test('an expired key is refused, even just after a use, and for sign-in', async () => {
  const secret = await createKey({ expires_in_days: 1 });
  const publishable = await createKey({ type: 'publishable', expires_in_days: 1 });
  const use = () => api<ErrorBody>('GET', '/api/v1/usage', { key: secret.full_key });
  const signIn = () =>
    api<ErrorBody>('POST', '/api/v1/auth/login', {
      key: publishable.full_key,
      body: { email: 'nobody@example.com', password: 'wrong' },
    });
  assert.equal((await use()).status, 200);
  assert.match((await signIn()).body.error.message, /e-mail|password/i);
  time.aheadMs = 24 * 60 * 60 * 1_000;
  for (const ended of [await use(), await signIn()]) {
    assert.deepEqual([ended.status, ended.body.error.code], [401, 'invalid_credentials']);
    assert.match(ended.body.error.message, /expired/);
  }
});
