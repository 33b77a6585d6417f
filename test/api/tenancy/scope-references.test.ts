import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { kindsNamedBy, operations, withReference } from '../../support/authorization/references.ts';
import { createRandom, modelSeed, modelTimes } from '../../support/rounds.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/*
 * A reference in a body is authorised like the direct request: to name something of another area, a key needs the scope to
 * read it. Owners and participants are not read: naming a user or an agent shows nothing of them. `npm run prove` tries
 * many more sets of scopes.
 */

const server = await startTestServer({ env: { QUARRY_DB_POOL: '10' } });
after(() => server.close());
const { api, provision } = server;
const app = await provision.app();
const user = await provision.user(app);

const areas = ['files', 'extractions', 'knowledge', 'automations', 'kv', 'webhooks', 'people', 'app'];

async function createKey(scopes: readonly string[]): Promise<string> {
  const made = await api<{ full_key: string }>('POST', '/api/v1/keys', {
    key: app.secretKey,
    body: { type: 'secret', scopes },
  });
  assert.equal(made.status, 201, made.text);
  return made.body.full_key;
}
async function create(path: string, body: object): Promise<string> {
  const made = await api<{ id: string }>('POST', path, { key: app.secretKey, body });
  assert.ok(made.status < 300, made.text);
  return made.body.id;
}

const file = await create('/api/v1/files', { filename: 'a.txt', content_type: 'text/plain', data: 'VGV4dC4=' });
const documents = await create('/api/v1/knowledge_sources', { type: 'knowledge/documents', user: user.id });
const ofFile = await create('/api/v1/knowledge_sources', { type: 'file/document', payload: { file }, user: user.id });
const store = await create('/v1/vector_stores', { name: 'store' });

const sync = await server.api<{ id: string; fence: number }>('POST', `/api/v1/knowledge_sources/${documents}/syncs`, {
  key: app.secretKey,
  body: { mode: 'changes' },
});
assert.equal(sync.status, 201, sync.text);

const ingestion = await create(`/api/v1/knowledge_sources/${documents}/ingest`, { content: { data: 'Text.' } });
let document = '';
await until(async () => {
  const { body } = await api<{ metadata?: { document?: string } }>('GET', `/api/v1/knowledge_ingestions/${ingestion}`, {
    key: app.secretKey,
  });
  document = body.metadata?.document ?? '';
  return document !== '';
});

type Request = { area: string; path: string; body: Record<string, unknown> };
/** For each operation outside of `files` whose body names a file: its own area, a path, and the rest of a valid body. */
const requests: Record<string, Request> = {
  'POST /api/v1/extractions': {
    ...{ area: 'extractions', path: '/api/v1/extractions' },
    body: { destination_kind: 'config', destination_path: 'a/b' },
  },
  'POST /api/v1/knowledge_sources': {
    ...{ area: 'knowledge', path: '/api/v1/knowledge_sources' },
    body: { type: 'file/document', user: user.id },
  },
  'PATCH /api/v1/knowledge_documents/:document': {
    ...{ area: 'knowledge', path: `/api/v1/knowledge_documents/${document}`, body: {} },
  },
  'PATCH /api/v1/knowledge_sources/:source': {
    area: 'knowledge',
    path: `/api/v1/knowledge_sources/${ofFile}`,
    body: {},
  },
  'POST /api/v1/knowledge_sources/:source/ingest': {
    ...{ area: 'knowledge', path: `/api/v1/knowledge_sources/${documents}/ingest`, body: {} },
  },
  'POST /api/v1/knowledge_sources/:source/ingest/batch': {
    ...{ area: 'knowledge', path: `/api/v1/knowledge_sources/${documents}/ingest/batch`, body: {} },
  },
  'PUT /api/v1/knowledge_syncs/:sync/batches/:number': {
    ...{ area: 'knowledge', path: `/api/v1/knowledge_syncs/${sync.body.id}/batches/1` },
    body: { fence: sync.body.fence, cursor: 'c' },
  },
  'POST /v1/vector_stores': { area: 'knowledge', path: '/v1/vector_stores', body: { name: 'other' } },
  'POST /v1/vector_stores/:source/files': {
    area: 'knowledge',
    path: `/v1/vector_stores/${store}/files`,
    body: {},
  },
  'POST /v1/vector_stores/:source/file_batches': {
    ...{ area: 'knowledge', path: `/v1/vector_stores/${store}/file_batches`, body: {} },
  },
};

const named = operations
  .filter(
    ({ name }) => !name.includes('/developer/apps/:app/') && !/ \/api\/v1\/(files|uploads)|\/audit|\/ledger/.test(name),
  )
  .flatMap(({ name, members }) =>
    [...members].flatMap((member) =>
      (kindsNamedBy(name, member) ?? [])
        .filter((kind) => kind === 'file' && member.startsWith('body'))
        .map((kind) => ({ name, member, kind })),
    ),
  );

type Answer = { status: number; message: string };
type Ask = (scopes: readonly string[], request: Request, member: string) => Promise<Answer>;

/** The references whose outcome is not that of reading the named file with the same scopes. */
async function findWrong(ask: Ask, scopes: readonly string[]): Promise<string[]> {
  const wrong: string[] = [];
  for (const { name, member } of named) {
    const request = requests[name];
    assert.ok(request, `Add a request for ${name}, which names a file.`);
    if (!scopes.includes(request.area)) continue;
    const mayRead = ['read', 'files', 'files:read'].some((scope) => scopes.includes(scope));
    const { status, message } = await ask(scopes, request, member);
    const isRefused = status === 403 && /scopes of this key/.test(message);
    if (isRefused === mayRead) wrong.push(`${scopes.join()}: ${name} ${member} is ${status} ${message}`);
  }
  return wrong;
}

const keys = new Map<string, Promise<string>>();
const ask: Ask = async (scopes, { path, body }, member) => {
  const name = scopes.join();
  if (!keys.has(name)) keys.set(name, createKey(scopes));
  const patches = path.includes(ofFile) || path.includes('knowledge_documents');
  const method = path.includes('/batches/') ? 'PUT' : patches ? 'PATCH' : 'POST';
  const sent = withReference({ body }, member, 'file', file).body ?? {};
  const answer = await api<ErrorBody>(method, path, { key: (await keys.get(name)) ?? '', body: sent });
  return { status: answer.status, message: answer.body?.error?.message ?? '' };
};

test('every operation that names a file outside of files is known here', () => {
  const names = new Set(named.map(({ name }) => name));
  assert.deepEqual([...names].sort(), Object.keys(requests).sort());
});

test('a key names a file only with the scope to read files', async () => {
  for (const area of ['extractions', 'knowledge'])
    for (const more of [[], ['files:read']]) assert.deepEqual(await findWrong(ask, [area, ...more]), []);
  const random = createRandom(modelSeed);
  for (let round = 0; round < 2 * modelTimes; round++) {
    const scopes = [...areas, ...areas.map((area) => `${area}:read`), 'read'].filter(() => random() < 0.3);
    if (scopes.length > 0) assert.deepEqual(await findWrong(ask, scopes), []);
  }
});

test('the check finds an operation that does not check its references, and one that refuses too much', async () => {
  const careless: Ask = async () => ({ status: 201, message: '' });
  const strict: Ask = async () => ({ status: 403, message: 'The scopes of this key do not allow it.' });
  assert.equal((await findWrong(careless, ['knowledge'])).length > 0, true);
  assert.deepEqual(await findWrong(careless, ['knowledge', 'files:read']), []);
  assert.equal((await findWrong(strict, ['knowledge', 'files'])).length > 0, true);
});

test('a source of an unknown file is the same to a key without the scope as one of a file that exists', async () => {
  const key = await createKey(['knowledge']);
  const said = new Set<string>();
  for (const id of [file, `fil_${'1'.repeat(22)}`]) {
    const answer = await api('POST', '/api/v1/knowledge_sources', {
      key,
      body: { type: 'file/document', payload: { file: id }, user: user.id },
    });
    said.add(`${answer.status} ${answer.text}`);
  }
  assert.equal(said.size, 1, [...said].join('\n'));
});

test('the inbound URL of an installation is shown only to keys that may add documents', async () => {
  const agent = await provision.agent(app, {});
  const made = await create('/api/v1/installations', { agent: agent.id, kind: 'webhook/inbound' });
  for (const [scopes, shown] of [
    [['knowledge:read'], false],
    [['read'], false],
    [['knowledge'], true],
  ] as const) {
    const key = await createKey(scopes);
    for (const path of [`/api/v1/installations/${made}`, '/api/v1/installations']) {
      const { text, status } = await api('GET', path, { key });
      assert.equal(status, 200);
      assert.equal(text.includes('inbound_url'), shown, `${scopes.join()} ${path}`);
    }
  }
});

test('a key has functions woken for runs only with the scope to execute runs', async () => {
  const program = await create('/api/v1/automations', {
    ...{ name: 'Woken', lookup_key: 'woken', type: 'invoked' },
    workflow: { kind: 'WorkflowProgram', version: 1, name: 'woken' },
  });
  const url = 'https://receiver.invalid/hook';
  const hosting = await create('/api/v1/webhooks', { url, automations: [program] });
  const receiver = await create('/api/v1/webhooks', { url, events: ['never'] });
  const tries = (key: string, webhook: string, named: object) =>
    Promise.all([
      api('POST', '/api/v1/webhooks', { key, body: { url, ...named } }),
      api('PATCH', `/api/v1/webhooks/${webhook}`, { key, body: { url: 'https://other.invalid/hook' } }),
      api('PATCH', `/api/v1/webhooks/${webhook}`, { key, body: named }),
      api('POST', `/api/v1/webhooks/${webhook}/resume`, { key }),
      api('POST', `/api/v1/webhooks/${webhook}/rotate_secret`, { key, body: {} }),
    ]).then((answers) => answers.map(({ status }) => status));
  for (const scopes of [['webhooks'], ['webhooks', 'automations:read'], ['webhooks', 'read']]) {
    const key = await createKey(scopes);
    for (const automation of [program, 'woken', 'unknown'])
      assert.deepEqual(
        await tries(key, hosting, { automations: [automation] }),
        [403, 403, 403, 403, 403],
        `${scopes}`,
      );
    assert.deepEqual(await tries(key, receiver, { events: ['never'] }), [201, 200, 200, 200, 200], `${scopes}`);
  }
  const both = await createKey(['webhooks', 'automations']);
  assert.deepEqual(await tries(both, hosting, { automations: [program] }), [201, 200, 200, 200, 200]);
  const { body } = await api<{ url: string }>('GET', `/api/v1/webhooks/${hosting}`, { key: app.secretKey });
  assert.equal(body.url, 'https://other.invalid/hook');
});

test('a key erases only what it may delete, and exports a user only if it may read everything', async () => {
  const erase = async (scopes: string[], body: object) => {
    const { status } = await api('POST', '/api/v1/erasures', { key: await createKey(scopes), body });
    return status;
  };
  const spare = await provision.user(app);
  const source = await create('/api/v1/knowledge_sources', { type: 'knowledge/documents', user: user.id });
  const unknown = `usr_${'1'.repeat(22)}`;
  for (const [scopes, body] of [
    [['app'], { user: spare.id }],
    [['app'], { user: unknown }],
    [['app', 'knowledge'], { user: spare.id }],
    [['app', 'people:read'], { user: spare.id }],
    [['app'], { document }],
    [['app', 'people'], { source }],
    [['app', 'knowledge:read'], { source }],
    [['app', 'knowledge'], { source, files: true }],
    [['people', 'knowledge', 'files'], { user: spare.id }],
  ] as const)
    assert.equal(await erase([...scopes], body), 403, `${scopes} ${JSON.stringify(body)}`);
  assert.equal(await erase(['app', 'knowledge', 'files'], { source, files: true }), 202);

  const all = areas.map((area) => `${area}:read`);
  for (const scopes of [['app:read'], ['app', 'people'], all.filter((scope) => scope !== 'kv:read')])
    for (const id of [spare.id, unknown]) {
      const refused = await api('GET', `/api/v1/users/${id}/export`, { key: await createKey(scopes) });
      assert.equal(refused.status, 403, `${scopes}`);
    }
  for (const scopes of [['read'], all])
    assert.equal((await api('GET', `/api/v1/users/${spare.id}/export`, { key: await createKey(scopes) })).status, 200);
  assert.equal(await erase(['app', 'people'], { user: spare.id }), 202);
});
