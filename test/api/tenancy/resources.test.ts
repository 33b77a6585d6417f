import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { formatId, type IdKind, idPrefixes, newUuid } from '../../../src/lib/ids.ts';
import { pixel } from '../../support/files.ts';
import { type ApiOptions, type ErrorBody, startTestServer } from '../../support/server.ts';

/** Ids with every alias, members that have no value, pages, and the small print of provisioning. */

const server = await startTestServer();
after(() => server.close());
const { api, provision } = server;
const { app, org, member, otherApp, otherUser } = await provision.world();
const key = app.secretKey;
const team = await provision.team(app, { org, members: [[member, 'owner']] });
const agent = await provision.agent(app, { user: member, org });

type Made = { id: string; [member: string]: unknown };
async function post<T = Made>(path: string, body: object, who: ApiOptions = { key }): Promise<T> {
  const answer = await api<T>('POST', `/api/v1${path}`, { ...who, body });
  assert.equal(answer.status, 201, `${path} ${answer.text}`);
  return answer.body;
}
const text = { filename: 'a.txt', content_type: 'text/plain', data: Buffer.from('Text.').toString('base64') };
const aliases = (kind: IdKind, id: string) => idPrefixes[kind].map((prefix) => `${prefix}_${id.split('_')[1]}`);

test('every alias of an id is accepted in a path, and the response has the canonical one', async () => {
  const file = await post('/files', text);
  const extraction = await post('/extractions', { file: file.id, destination_kind: 'storage' });
  const sandbox = await post('/sandboxes', { name: 'S' });
  const installation = await post('/installations', { agent: agent.id, kind: 'webhook/inbound' });
  const thread = await post('/threads', { user: member.id });
  const apiKey = await post('/keys', { type: 'publishable' });
  for (const [kind, path, id] of [
    ['agent', '/agents', agent.id],
    ['team', '/teams', team.id],
    ['user', '/users', member.id],
    ['org', '/orgs', org.id],
    ['file', '/files', file.id],
    ['extraction', '/extractions', extraction.id],
    ['sandbox', '/sandboxes', sandbox.id],
    ['installation', '/installations', installation.id],
    ['thread', '/threads', thread.id],
    ['key', '/keys', apiKey.id],
  ] as const) {
    assert.match(id, new RegExp(`^${idPrefixes[kind][0]}_[0-9A-Za-z]{22}$`));
    for (const alias of aliases(kind, id)) {
      const answer = await api<Made>('GET', `/api/v1${path}/${alias}`, { key });
      assert.deepEqual([answer.status, answer.body.id], [200, id], alias);
    }
    for (const wrong of [
      id.slice(0, -1),
      `${id}0`,
      id.replace('_', ''),
      id.toUpperCase(),
      id.split('_')[1],
      `xxx_${id.split('_')[1]}`,
      `${idPrefixes[kind === 'org' ? 'user' : 'org'][0]}_${id.split('_')[1]}`,
      `${id.split('_')[0]}_${'z'.repeat(22)}`,
      `${id.split('_')[0]}_${'-'.repeat(22)}`,
      formatId(kind, newUuid()),
      `${id}%00`,
      `${id}%20`,
      '%ED%A0%80',
      'x'.repeat(5_000),
    ]) {
      const answer = await api<ErrorBody>('GET', `/api/v1${path}/${wrong}`, { key });
      const expected = wrong === '%ED%A0%80' ? [400, 404] : [404];
      assert.ok(expected.includes(answer.status), `${path}/${wrong}: ${answer.text}`);
    }
  }
});

test('every alias is accepted in a body and a query; a wrong one is 422 on its member', async () => {
  for (const alias of aliases('agent', agent.id)) {
    assert.equal((await post('/files', { ...text, agent: alias })).agent, agent.id);
    assert.equal((await api('GET', `/api/v1/files?agent=${alias}`, { key })).status, 200);
    assert.equal((await api('GET', `/api/v1/config?agent=${alias}`, { key })).status, 200);
  }
  for (const alias of aliases('team', team.id)) {
    const file = await post('/files', { ...text, team: alias });
    assert.equal(file.team, team.id.replace('tem_', 'team_'), 'files say team_');
    assert.equal(file.user, undefined);
    assert.equal((await post('/agents', { name: 'A', team: alias })).team, team.id);
  }
  for (const alias of aliases('user', member.id)) {
    assert.equal((await post('/files', { ...text, user: alias })).user, member.id);
    assert.equal((await api('GET', `/api/v1/agents?user=${alias}`, { key })).status, 200);
    assert.equal((await api('GET', `/api/v1/kv?user=${alias}`, { key })).status, 200);
  }
  for (const [field, wrong] of [
    ['agent', member.id],
    ['agent', 'agt_x'],
    ['team', 'team_'],
    ['user', formatId('user', newUuid())],
    ['org', formatId('org', newUuid())],
    ['org', ''],
  ] as const) {
    const answer = await api<ErrorBody>('POST', '/api/v1/files', { key, body: { ...text, [field]: wrong } });
    assert.deepEqual([answer.status, answer.body.error.fields[0]?.field], [422, field], `${field} ${answer.text}`);
  }
});

test('an agent can also be named in a path by its lookup key', async () => {
  const made = await post('/agents', { name: 'K', lookup_key: 'support bot/1' });
  const path = `/api/v1/agents/${encodeURIComponent('support bot/1')}`;
  assert.equal((await api<Made>('GET', path, { key })).body.id, made.id);
  const taken = await api<ErrorBody>('POST', '/api/v1/agents', {
    key,
    body: { name: 'L', lookup_key: 'support bot/1' },
  });
  assert.deepEqual([taken.body.error.code, taken.body.error.fields[0]?.field], ['already_exists', 'lookup_key']);
  assert.equal((await api('GET', path, { key: otherApp.secretKey })).status, 404);
  assert.equal((await api('PATCH', path, { key, body: { name: 'M' } })).status, 200);
  assert.equal((await api('DELETE', path, { key })).status, 204);
});

test('a member without a value is left out, never null, and timestamps have milliseconds and Z', async () => {
  const picture = { data: pixel.toString('base64'), filename: 'p.png', mime_type: 'image/png' };
  const made: Made[] = [
    await post('/orgs', { name: 'O' }),
    await post('/orgs', { name: 'O', slug: 's', logo: picture }),
    await post('/users', { email: 'bare@example.test' }),
    await post('/teams', { name: 'T' }),
    await post('/agents', { name: 'A' }),
    await post('/agents', { name: 'A', profile_picture: picture }),
    await post('/threads', {}),
    await post('/installations', { agent: agent.id, kind: 'thread/messages' }),
    await post('/files', text),
    await post('/keys', { type: 'secret' }),
    await post('/sandboxes', { name: 'S' }),
    await post('/extractions', { file: (await post('/files', text)).id, destination_kind: 'storage' }),
  ];
  for (const object of made) {
    assertNoNull(object, '');
    for (const at of [object.created_at, object.updated_at ?? object.created_at])
      assert.match(String(at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  }
  const logo = made[1]?.logo as Record<string, unknown>;
  assert.deepEqual([logo.mime_type, logo.width, logo.height], ['image/png', 1, 1]);
  assert.match(String(logo.url), /\/org_logo\?token=/);
});

function assertNoNull(value: unknown, path: string): void {
  assert.notEqual(value, null, path);
  if (typeof value !== 'object' || value === null) return;
  for (const [name, inner] of Object.entries(value)) assertNoNull(inner, `${path}.${name}`);
}

test('pages: newest first, exact totals, sizes clamped to 100, past the end empty', async () => {
  const scope = await provision.app();
  const here = { key: scope.secretKey };
  type List = {
    data: Made[];
    page: number;
    page_size: number;
    total_entries: number;
    total_pages: number;
    has_next: boolean;
    has_prev: boolean;
  };
  const list = async (query: string) => (await api<List>('GET', `/api/v1/orgs?${query}`, here)).body;
  const empty = await list('');
  assert.deepEqual(empty, {
    data: [],
    page: 1,
    page_size: 25,
    total_entries: 0,
    total_pages: 0,
    has_next: false,
    has_prev: false,
  });
  const ids: string[] = [];
  for (let at = 0; at < 7; at++) ids.push((await post('/orgs', { name: `Org ${at}` }, here)).id);
  assert.deepEqual([...ids].sort(), ids, 'ids sort by creation time');
  const newest = [...ids].reverse();
  const first = await list('page_size=3');
  assert.deepEqual(
    first.data.map(({ id }) => id),
    newest.slice(0, 3),
  );
  const { data: _data, ...numbers } = first;
  assert.deepEqual(numbers, {
    page: 1,
    page_size: 3,
    total_entries: 7,
    total_pages: 3,
    has_next: true,
    has_prev: false,
  });
  const last = await list('page_size=3&page=3');
  assert.deepEqual([last.data.map(({ id }) => id), last.has_next, last.has_prev], [newest.slice(6), false, true]);
  const past = await list('page_size=3&page=9');
  assert.deepEqual([past.data, past.total_entries, past.total_pages, past.has_next], [[], 7, 3, false]);
  const far = await list('page=2147483647&page_size=100');
  assert.deepEqual([far.data, far.total_entries], [[], 7]);
  assert.equal((await list('page_size=1000')).page_size, 100);
  assert.equal((await list('search=org%206')).total_entries, 1);
  assert.equal((await list('search=%25')).total_entries, 0);
});

test('provisioning: create 201 with the bare object, PATCH 200, DELETE 204 without a body', async () => {
  for (const [path, body] of [
    ['/orgs', { name: 'O' }],
    ['/users', { email: 'p@example.test' }],
    ['/teams', { name: 'T' }],
    ['/agents', { name: 'A' }],
    ['/threads', { title: 'T' }],
    ['/sandboxes', { name: 'S' }],
    ['/installations', { agent: agent.id, kind: 'webhook/inbound' }],
  ] as const)
    for (const [prefix, who] of [
      ['/api/v1', { key }],
      [`/protected/api/v1/developer/apps/${app.app.id}`, { token: app.developerToken }],
    ] as const) {
      const made = await api<Made>('POST', `${prefix}${path}`, { ...who, body });
      assert.deepEqual([made.status, made.body.app], [201, app.app.id], made.text);
      const one = `${prefix}${path}/${made.body.id}`;
      assert.equal((await api('PATCH', one, { ...who, body: {} })).status, 200);
      const gone = await api('DELETE', one, who);
      assert.deepEqual([gone.status, gone.text], [204, '']);
      assert.equal((await api('GET', one, who)).status, 404);
      assert.equal((await api('DELETE', one, who)).status, 404);
      assert.equal((await api('PATCH', one, { ...who, body: {} })).status, 404);
    }
});

test('an e-mail is unique in production and in each sandbox, in upper or lower case', async () => {
  const body = { email: 'Same@Example.test' };
  const sandbox = await provision.sandbox(app);
  await post('/users', body);
  await post('/users', body, { key: sandbox.secretKey });
  await post('/users', body, { key: otherApp.secretKey });
  for (const email of ['Same@Example.test', 'same@example.TEST']) {
    const again = await api<ErrorBody>('POST', '/api/v1/users', { key, body: { email } });
    assert.deepEqual(
      [again.status, again.body.error.code, again.body.error.fields[0]?.field],
      [422, 'already_exists', 'email'],
    );
    const renamed = await api<ErrorBody>('PATCH', `/api/v1/users/${member.id}`, { key, body: { email } });
    assert.equal(renamed.body.error.code, 'already_exists');
  }
  for (const email of ['', 'x', 'a@', '@b', 'a b@c.de', `${'x'.repeat(300)}@example.test`])
    assert.equal((await api('POST', '/api/v1/users', { key, body: { email } })).status, 422, email);
});

test('a member is one user or one agent; adding it twice is already_exists', async () => {
  const members = `/api/v1/teams/${team.id}/members`;
  for (const [body, field] of [
    [{}, 'user'],
    [{ user: member.id, agent: agent.id }, 'agent'],
    [{ user: formatId('user', newUuid()) }, 'user'],
    [{ agent: member.id }, 'agent'],
    [{ user: otherUser.id, role: 'boss' }, 'role'],
  ] as const) {
    const answer = await api<ErrorBody>('POST', members, { key, body });
    assert.equal(answer.status, 422, JSON.stringify(body));
    assert.ok(
      answer.body.error.fields.some((each) => each.field === field),
      answer.text,
    );
  }
  const twice = await api<ErrorBody>('POST', members, { key, body: { user: member.id } });
  assert.deepEqual([twice.status, twice.body.error.code], [422, 'already_exists']);
  const added = await api<Made>('POST', members, { key, body: { agent: agent.id, role: 'member' } });
  assert.match(added.body.id, /^tmb_/);
  for (const name of [added.body.id, agent.id, agent.id.replace('agt_', 'agi_')])
    assert.equal((await api<Made>('GET', `${members}/${name}`, { key })).body.id, added.body.id, name);
  assert.equal((await api('DELETE', members, { key, body: { agent: agent.id } })).status, 204);
  assert.equal((await api('GET', `${members}/${added.body.id}`, { key })).status, 404);
});

test('minting a session returns 201 with a user; installations have only the known kinds', async () => {
  const minted = await post(`/users/${member.id}/tokens`, {});
  assert.deepEqual(Object.keys(minted).sort(), [
    'access_token',
    'expires_in',
    'refresh_token',
    'token',
    'token_type',
    'user',
  ]);
  for (const kind of ['connectors/x/emails', 'webhook', ''])
    assert.equal((await api('POST', '/api/v1/installations', { key, body: { agent: agent.id, kind } })).status, 422);
});

test('a picture must be declared as an image with data in base64; null removes it', async () => {
  const data = pixel.toString('base64');
  for (const [field, picture] of [
    ['profile_picture.mime_type', { data, filename: 'p.png', mime_type: 'text/html' }],
    ['profile_picture.data', { data: `${data}\n`, filename: 'p.png', mime_type: 'image/png' }],
    ['profile_picture.data', { data: 'a_-b', filename: 'p.png', mime_type: 'image/png' }],
    ['profile_picture.filename', { data, mime_type: 'image/png' }],
  ] as const) {
    const answer = await api<ErrorBody>('POST', '/api/v1/agents', {
      key,
      body: { name: 'A', profile_picture: picture },
    });
    assert.equal(answer.status, 422);
    assert.ok(
      answer.body.error.fields.some((each) => each.field === field),
      answer.text,
    );
    assert.doesNotMatch(answer.text, /must be null|anyOf/);
  }
  type Agent = Made & { profile_picture?: { url: string } };
  const made = await post<Agent>('/agents', {
    name: 'A',
    profile_picture: { data, filename: 'p.png', mime_type: 'image/png' },
  });
  const renamed = await api<Agent>('PATCH', `/api/v1/agents/${made.id}`, { key, body: { name: 'B' } });
  assert.equal(renamed.body.profile_picture?.url, made.profile_picture?.url, 'the URL lives as long as the picture');
  const bare = await api<Agent>('PATCH', `/api/v1/agents/${made.id}`, { key, body: { profile_picture: null } });
  assert.deepEqual([bare.status, bare.body.profile_picture], [200, undefined]);
  assert.equal((await fetch(made.profile_picture?.url ?? '')).status, 404);
});

test('a picture of megabytes is stored byte for byte, and a wrong one creates nothing', async () => {
  const bytes = Buffer.concat([pixel, Buffer.alloc(2_000_000, 'picture')]);
  const picture = { data: bytes.toString('base64'), filename: 'p.png', mime_type: 'image/png' };
  for (const [path, member] of [
    ['/agents', 'profile_picture'],
    ['/orgs', 'logo'],
  ] as const) {
    const made = await post<Made & Record<string, { url: string }>>(path, { name: 'Pictured', [member]: picture });
    const served = await fetch(made[member]?.url ?? '');
    assert.ok(Buffer.from(await served.arrayBuffer()).equals(bytes), path);
    const total = async () =>
      (await api<{ total_entries: number }>('GET', `/api/v1${path}`, { key })).body.total_entries;
    const before = await total();
    const wrong = { ...picture, data: `${picture.data.slice(0, -4)}a_-b` };
    const refused = await api<ErrorBody>('POST', `/api/v1${path}`, { key, body: { name: 'None', [member]: wrong } });
    assert.deepEqual([refused.status, refused.body.error.fields[0]?.field], [422, `${member}.data`]);
    assert.equal(await total(), before);
  }
});
