import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { unending } from '../../support/authorization/expectations.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

/* What secret keys with scopes reach, over every route; and keys that expire. */

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

const root = /^(?:\/api)?\/v1\//;
/** By the first word of the path below /api/v1 or /v1. */
const areas: Record<string, string[]> = {
  files: ['files', 'uploads'],
  extractions: ['extractions', 'config'],
  knowledge: ['knowledge_*', 'threads', 'installations', 'vector_stores'],
  automations: ['automations', 'automation_runs', 'invocable_automations', 'events', 'secrets'],
  kv: ['kv', 'kv_*'],
  webhooks: ['webhooks', 'events/stream'],
  people: ['orgs', 'users', 'teams', 'agents', 'identity_issuers'],
  app: ['sandboxes', 'keys', 'usage', 'jobs', 'audit', 'credential_uses', 'ledger'],
};
const exceptions: Record<string, string> = { 'agents/:agent/search': 'knowledge' };
const searches = /search$|^automations\/check$/;

function areaOf(path: string): string {
  const rest = path.replace(root, '');
  const first = rest.split('/')[0] ?? '';
  const named = (names: string[]) =>
    names.some(
      (name) => name === rest || name === first || (name.endsWith('*') && first.startsWith(name.slice(0, -1))),
    );
  const exact = Object.entries(areas).find(([, names]) => names.includes(rest));
  const found = exceptions[rest] ?? (exact ?? Object.entries(areas).find(([, names]) => named(names)))?.[0];
  assert.ok(found, `Give ${path} its area.`);
  return found;
}

test('a key with scopes reaches exactly the routes of its scopes', async () => {
  const names = Object.keys(areas);
  const keys = new Map<string, string>([['read', (await createKey({ scopes: ['read'] })).full_key]]);
  for (const area of names) {
    keys.set(area, (await createKey({ scopes: [area] })).full_key);
    keys.set(`${area}:read`, (await createKey({ scopes: [`${area}:read`] })).full_key);
    keys.set(`not ${area}`, (await createKey({ scopes: names.filter((each) => each !== area) })).full_key);
  }
  const routes = server.server.api.routes.filter(
    ({ access, path }) => access.kind === 'app' && access.callers.includes('server') && !path.startsWith('/mcp'),
  );
  assert.ok(routes.length > 100);
  const wrong: string[] = [];
  for (const { method, path } of routes) {
    const area = areaOf(path);
    const rest = path.replace(root, '');
    const reads = (method === 'GET' || (method === 'POST' && searches.test(rest))) && !rest.endsWith('/inbound_url');
    const place = path.replaceAll(/:\w+|\*/g, 'none');
    const expected = { [area]: true, [`not ${area}`]: false, [`${area}:read`]: reads, read: reads };
    for (const [name, allowed] of Object.entries(expected)) {
      // An empty body and an unknown id go no further than the checks.
      const body = method === 'GET' || method === 'DELETE' ? {} : { body: {} };
      if (allowed && unending.has(`${method} ${path}`)) continue;
      const { status, body: answer } = await api<ErrorBody>(method, place, { key: keys.get(name) ?? '', ...body });
      const refused = status === 403 && /scopes of this key/.test(answer?.error?.message ?? '');
      if (refused === allowed) wrong.push(`${name}: ${method} ${path} is ${status}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test('a key sees and calls only the MCP tools that its scopes allow', async () => {
  const { full_key: key } = await createKey({ scopes: ['kv:read'] });
  const callTool = async (name: string, args: object) => {
    const called = await api<{ result: { isError?: boolean; content: { text: string }[] } }>('POST', '/mcp', {
      key,
      headers: { accept: 'application/json, text/event-stream' },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
    });
    assert.equal(called.status, 200, called.text);
    return called.text;
  };
  const user = await provision.user(app);
  assert.doesNotMatch(await callTool('kv_list', { user: user.id }), /isError":true/);
  for (const [name, args] of [
    ['kv_put', { key: 'a', value: 'b', user: user.id }],
    ['list_documents', {}],
  ] as const)
    assert.match(await callTool(name, args), new RegExp(`The tool ${name} does not exist`));
  const listed = await api('POST', '/mcp', {
    key,
    headers: { accept: 'application/json, text/event-stream' },
    body: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} },
  });
  const names = [...listed.text.matchAll(/"name":"(\w+)"/g)].map(([, name]) => name);
  assert.deepEqual(names.sort(), ['kv_get', 'kv_list']);
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
