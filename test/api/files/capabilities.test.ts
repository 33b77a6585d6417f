import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { production } from '../../../src/db/database.ts';
import { formatId, newUuid } from '../../../src/lib/ids.ts';
import { type FileBody, pixel } from '../../support/files.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const { api, provision, db } = server;
const app = await provision.app();
const key = app.secretKey;
const picture = (name = 'p.png') => ({ data: pixel.toString('base64'), filename: name, mime_type: 'image/png' });

type ImageSource = { file: string; url: string; mime_type: string; width?: number; height?: number };
type Shown = { id: string; profile_picture?: ImageSource; logo?: ImageSource };

const upload = (body: object) =>
  api<FileBody>('POST', '/api/v1/files', {
    key,
    body: { filename: 'p.png', content_type: 'image/png', data: pixel.toString('base64'), ...body },
  });
const patch = (id: string, body: object) => api<FileBody>('PATCH', `/api/v1/files/${id}`, { key, body });

async function opens(url: string | undefined): Promise<boolean> {
  assert.ok(url !== undefined);
  const answer = await fetch(url);
  const bytes = Buffer.from(await answer.arrayBuffer());
  assert.ok(answer.status === 404 || (answer.status === 200 && bytes.equals(pixel)), String(answer.status));
  return answer.status === 200;
}

test('sharing gives a URL that works without a credential; turning it off disables it, and turning it on restores it', async () => {
  const { body: file } = await upload({ share: true });
  assert.equal(file.shared, true);
  const answer = await fetch(file.share_url ?? '', { headers: { authorization: 'Bearer nonsense' } });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get('cache-control'), 'public, max-age=3600');
  assert.equal(answer.headers.get('content-type'), 'image/png');
  assert.equal(answer.headers.get('content-disposition'), null);
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
  assert.equal(answer.headers.get('content-security-policy'), "sandbox; default-src 'none'");
  assert.ok(Buffer.from(await answer.arrayBuffer()).equals(pixel));
  const off = await patch(file.id, { share: false });
  assert.deepEqual([off.status, off.body.shared, off.body.share_url], [200, false, undefined]);
  assert.equal(await opens(file.share_url), false);
  const on = await patch(file.id, { share: true });
  assert.equal(on.body.share_url, file.share_url);
  assert.equal(await opens(file.share_url), true);
  await api('DELETE', `/api/v1/files/${file.id}`, { key });
  assert.equal(await opens(file.share_url), false);
});

test('only files declared as images can be shared, at upload and later; an SVG is shown inline', async () => {
  const refused = await api<ErrorBody>('POST', '/api/v1/files', {
    key,
    body: { filename: 'a', content_type: 'text/plain', data: '', share: true },
  });
  assert.deepEqual([refused.status, refused.body.error.code], [422, 'not_an_image']);
  const { body: text } = await upload({ content_type: 'text/plain' });
  const later = await api<ErrorBody>('PATCH', `/api/v1/files/${text.id}`, { key, body: { share: true } });
  assert.deepEqual([later.status, later.body.error.code], [422, 'not_an_image']);
  assert.equal((await patch(text.id, { share: false })).status, 200);
  const { body: svg } = await upload({ content_type: 'image/svg+xml', share: true });
  const shown = await fetch(svg.share_url ?? '');
  assert.equal(shown.headers.get('content-type'), 'image/svg+xml');
  assert.equal(shown.headers.get('content-disposition'), null);
  await shown.arrayBuffer();
});

test('an agent’s picture: set, kept while other things change, replaced, removed, gone with the agent', async () => {
  const created = await api<Shown>('POST', '/api/v1/agents', { key, body: { name: 'A', profile_picture: picture() } });
  assert.equal(created.status, 201);
  const first = created.body.profile_picture;
  assert.deepEqual([first?.mime_type, first?.width, first?.height], ['image/png', 1, 1]);
  assert.equal(await opens(first?.url), true);
  const path = `/api/v1/agents/${created.body.id}`;
  const renamed = await api<Shown>('PATCH', path, { key, body: { name: 'B' } });
  assert.equal(renamed.body.profile_picture?.url, first?.url);
  const replaced = await api<Shown>('PATCH', path, { key, body: { profile_picture: picture('q.png') } });
  const second = replaced.body.profile_picture;
  assert.notEqual(second?.url, first?.url);
  assert.deepEqual([await opens(first?.url), await opens(second?.url)], [false, true]);
  assert.equal((await api('GET', `/api/v1/files/${first?.file}`, { key })).status, 404);
  const removed = await api<Shown>('PATCH', path, { key, body: { profile_picture: null } });
  assert.equal(removed.body.profile_picture, undefined);
  assert.equal(await opens(second?.url), false);
  const third = (await api<Shown>('PATCH', path, { key, body: { profile_picture: picture() } })).body.profile_picture;
  assert.equal((await api('DELETE', path, { key })).status, 204);
  assert.equal(await opens(third?.url), false);
  const left = await db`select 1 from files where app_id = ${app.app.uuid} and filename in ('p.png', 'q.png')
    and agent_id is not null`;
  assert.equal(left.length, 0);
});

test('an org’s logo: set, replaced, removed, gone with the org and with its file', async () => {
  const created = await api<Shown>('POST', '/api/v1/orgs', { key, body: { name: 'O', logo: picture('logo.png') } });
  const first = created.body.logo;
  assert.equal(await opens(first?.url), true);
  const path = `/api/v1/orgs/${created.body.id}`;
  const second = (await api<Shown>('PATCH', path, { key, body: { logo: picture('logo.png') } })).body.logo;
  assert.deepEqual([await opens(first?.url), await opens(second?.url)], [false, true]);
  assert.equal((await api('DELETE', `/api/v1/files/${second?.file}`, { key })).status, 204);
  assert.equal(await opens(second?.url), false);
  assert.equal((await api<Shown>('GET', path, { key })).body.logo, undefined);
  const third = (await api<Shown>('PATCH', path, { key, body: { logo: picture('logo.png') } })).body.logo;
  assert.equal((await api('DELETE', path, { key })).status, 204);
  assert.equal(await opens(third?.url), false);
  const left = await db`select 1 from files where app_id = ${app.app.uuid} and filename = 'logo.png'`;
  assert.equal(left.length, 0);
});

test('a file that is not a picture is 422 on its member and changes nothing', async () => {
  for (const [value, field] of [
    [{ ...picture(), mime_type: 'text/plain' }, 'profile_picture.mime_type'],
    [{ ...picture(), data: 'no base64' }, 'profile_picture.data'],
    [{ data: '', mime_type: 'image/png' }, 'profile_picture.filename'],
  ] as const) {
    const { status, body } = await api<ErrorBody>('POST', '/api/v1/agents', {
      key,
      body: { name: 'never made', profile_picture: value },
    });
    assert.deepEqual([status, body.error.fields[0]?.field], [422, field]);
  }
  assert.equal((await db`select 1 from agents where name = 'never made'`).length, 0);
});

test('every invalid capability gets the same 404, byte for byte', async () => {
  const agent = await api<Shown>('POST', '/api/v1/agents', { key, body: { name: 'A', profile_picture: picture() } });
  const avatar = new URL(agent.body.profile_picture?.url ?? '');
  const { body: shared } = await upload({ share: true });
  const { body: unshared } = await upload({});
  const shareToken = new URL(shared.share_url ?? '').searchParams.get('token') ?? '';
  const avatarToken = avatar.searchParams.get('token') ?? '';
  const other = await provision.app();
  const elsewhere = await api<FileBody>('POST', '/api/v1/files', {
    key: other.secretKey,
    body: { filename: 'p.png', content_type: 'image/png', data: pixel.toString('base64'), share: true },
  });
  const path = (id: string, role: string, query: string) => `/api/v1/files/${id}/${role}${query}`;
  const token = (value: string) => `?token=${encodeURIComponent(value)}`;
  const flipped = `${shareToken.slice(0, -1)}${shareToken.endsWith('A') ? 'E' : 'A'}`;
  const wrong = [
    path(formatId('file', newUuid()), 'share', token(shareToken)),
    path('fil_x', 'share', token(shareToken)),
    path('%00', 'share', token(shareToken)),
    path(shared.id, 'share', ''),
    path(shared.id, 'share', '?token='),
    path(shared.id, 'share', `?token=${shareToken}&token=${shareToken}`),
    path(shared.id, 'share', `?token[]=${shareToken}`),
    path(shared.id, 'share', '?token=%00'),
    path(shared.id, 'share', '?token=%zz'),
    path(shared.id, 'share', token(flipped)),
    path(shared.id, 'share', token(`${shareToken}=`)),
    path(shared.id, 'share', token(`${shareToken} `)),
    path(shared.id, 'share', token(avatarToken)),
    path(shared.id, 'avatar', token(shareToken)),
    path(shared.id, 'org_logo', token(shareToken)),
    path(unshared.id, 'share', token(shareToken)),
    path(elsewhere.body.id, 'share', token(shareToken)),
    path(agent.body.profile_picture?.file ?? '', 'share', token(avatarToken)),
    path(agent.body.profile_picture?.file ?? '', 'org_logo', token(avatarToken)),
  ];
  const seen = new Set<string>();
  for (const target of wrong) {
    const answer = await api('GET', target);
    assert.equal(answer.status, 404, target);
    const headers = [...answer.headers].filter(
      ([name]) => !['date', 'x-request-id', 'connection', 'keep-alive'].includes(name),
    );
    seen.add(JSON.stringify([answer.text, headers]));
    const head = await api('HEAD', target);
    assert.deepEqual([head.status, head.text], [404, ''], target);
  }
  assert.equal(seen.size, 1, [...seen].join('\n'));
  assert.equal(await opens(shared.share_url), true);
  assert.equal(await opens(avatar.href), true);
});

test('capability URLs survive a rotation of the root secret', async () => {
  const { Capabilities } = await import('../../../src/tenancy/capability.ts');
  const { Secrets } = await import('../../../src/tenancy/secrets.ts');
  const [before, later] = ['a'.repeat(10), 'b'.repeat(10)].map((seed) => `${seed}0123456789abcdefghijklmnop`) as [
    string,
    string,
  ];
  const old = new Secrets(before);
  const appId = newUuid();
  const wrapped = old.wrap(Buffer.alloc(32, 7));
  await db`insert into apps (id, developer_id, name, capability_key)
    values (${appId}, ${app.developerUuid}, 'rotated', ${wrapped})`;
  await db`insert into sandboxes (app_id, id, name) values (${appId}, ${production}, 'Production')`;
  const file = newUuid();
  const token = await new Capabilities({ db, secrets: old }).token(appId, file, 'share');
  const rotated = new Capabilities({ db, secrets: new Secrets(later, before) });
  assert.equal(await rotated.token(appId, file, 'share'), token);
  const [row] = await db<[{ capabilityKey: Buffer }]>`select capability_key from apps where id = ${appId}`;
  const afterwards = new Capabilities({ db, secrets: new Secrets(later) });
  assert.ok(afterwards.verifies(afterwards.read(token), row.capabilityKey, file, 'share'));
  assert.ok(!afterwards.verifies(afterwards.read(token), row.capabilityKey, file, 'avatar'));
});
