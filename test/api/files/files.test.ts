import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, test } from 'node:test';
import { formatId, newUuid } from '../../../src/lib/ids.ts';
import { bytesOf, type FileBody, pixel } from '../../support/files.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const { api, provision } = server;
const world = await provision.world();
const { app, org, otherOrg, admin, member, viewer, otherUser, loner, otherApp, stranger } = world;
const team = await provision.team(app, {
  org,
  members: [
    [member, 'member'],
    [admin, 'admin'],
  ],
});
const secret = { key: app.secretKey };

const base64 = (text: string) => Buffer.from(text).toString('base64');
const text = (data = 'hello', more: object = {}) => ({
  filename: 'a.txt',
  content_type: 'text/plain',
  data: base64(data),
  ...more,
});
const upload = (who: object, body: object = text()) => api<FileBody>('POST', '/api/v1/files', { ...who, body });
const as = (user: { token: string }) => ({ token: user.token });

test('an upload returns 201 with the file, and its URL returns the bytes', async () => {
  const { status, body } = await upload(as(member));
  assert.equal(status, 201);
  assert.match(body.id, /^fil_[0-9A-Za-z]{22}$/);
  assert.deepEqual(
    { ...body, id: '', url: '', created_at: '', updated_at: '' },
    {
      id: '',
      filename: 'a.txt',
      content_type: 'text/plain',
      size: 5,
      checksum: createHash('sha256').update('hello').digest('hex'),
      url: '',
      shared: false,
      app: app.app.id,
      org: org.id,
      user: member.id,
      acl: { grants: [] },
      provider_metadata: {},
      created_at: '',
      updated_at: '',
    },
  );
  const download = await fetch(body.url);
  assert.equal(download.status, 200);
  assert.equal(await download.text(), 'hello');
  assert.equal(download.headers.get('content-type'), 'text/plain');
  assert.equal(download.headers.get('content-disposition'), 'inline; filename=a.txt');
  assert.equal(download.headers.get('x-content-type-options'), 'nosniff');
});

test('who owns a new file: the caller, a team before a user, the org of an agent', async () => {
  const agent = await provision.agent(app, { org: otherOrg });
  const teamed = await upload(secret, text('x', { team: team.id, user: member.id }));
  assert.deepEqual([teamed.body.team?.slice(0, 5), teamed.body.user], ['team_', undefined]);
  const forUser = await upload(secret, text('x', { user: member.id }));
  assert.deepEqual([forUser.body.user, forUser.body.org], [member.id, org.id]);
  const forAgent = await upload(secret, text('x', { agent: agent.id }));
  assert.deepEqual([forAgent.body.agent, forAgent.body.org, forAgent.body.user], [agent.id, otherOrg.id, undefined]);
  const nobodys = await upload(secret);
  assert.deepEqual([nobodys.body.user, nobodys.body.team, nobodys.body.org], [undefined, undefined, undefined]);
  assert.equal((await upload(as(loner))).body.user, loner.id);
  const mismatch = await api<ErrorBody>('POST', '/api/v1/files', {
    ...secret,
    body: text('x', { agent: agent.id, org: org.id }),
  });
  assert.deepEqual([mismatch.status, mismatch.body.error.fields[0]?.field], [422, 'org']);
});

test('an owner that the caller cannot see is 422 on its member, a visible one it may not act for is 403', async () => {
  const refused = (body: object, who: object = as(member)) => api<ErrorBody>('POST', '/api/v1/files', { ...who, body });
  for (const [member_, id] of [
    ['user', otherUser.id],
    ['user', stranger.id],
    ['user', formatId('user', newUuid())],
    ['team', formatId('team', newUuid())],
    ['org', otherOrg.id],
    ['agent', formatId('agent', newUuid())],
    ['agent', 'agt_x'],
    ['org', member.id],
  ] as const) {
    const { status, body } = await refused(text('x', { [member_]: id }));
    assert.deepEqual([status, body.error.fields[0]?.field], [422, member_], `${member_} ${id}`);
  }
  assert.equal((await refused(text('x', { user: viewer.id }))).status, 403);
  const orgAgent = await provision.agent(app, { org });
  assert.equal((await refused(text('x', { agent: orgAgent.id }), as(viewer))).status, 403);
  assert.equal((await refused(text('x', { agent: orgAgent.id }), as(admin))).status, 201);
});

test('data is base64 as RFC 4648 section 4 spells it, and nothing else', async () => {
  for (const data of ['aGVsbG8', 'aGVs bG8=', 'aGVsbG8=\n', '-_-_', 'aGVsbG9=', '====', 'a', 'é', 'aGVsbG8==']) {
    const { status, body } = await api<ErrorBody>('POST', '/api/v1/files', { ...secret, body: text('', { data }) });
    assert.deepEqual([status, body.error.code, body.error.fields[0]?.field], [422, 'invalid_parameters', 'data'], data);
    assert.match(body.error.message, /base64/);
  }
  const empty = await upload(secret, text(''));
  assert.deepEqual([empty.status, empty.body.size], [201, 0]);
  assert.equal((await (await fetch(empty.body.url)).arrayBuffer()).byteLength, 0);
});

test('an invalid body is 422 naming the member', async () => {
  for (const [body, field] of [
    [{ content_type: 'text/plain', data: '' }, 'filename'],
    [{ filename: 'a', data: '' }, 'content_type'],
    [{ filename: 'a', content_type: 'text/plain' }, 'data'],
    [text('x', { filename: '' }), 'filename'],
    [text('x', { filename: 'a\u0000b' }), 'filename'],
    [text('x', { filename: 7 }), 'filename'],
    [text('x', { content_type: 'text' }), 'content_type'],
    [text('x', { content_type: 'text/plain\r\nset-cookie: a=b' }), 'content_type'],
    [text('x', { size: 4 }), 'size'],
    [text('x', { share: 'true' }), 'share'],
    [text('x', { org: null }), 'org'],
    [text('x', { acl: { grants: [{ principal_type: 'everyone', actions: [] }] } }), 'acl.grants.0.actions'],
    [text('x', { acl: { remove: [{ principal_type: 'everyone', actions: ['read'] }] } }), 'acl.remove.0.actions'],
    [text('x', { acl: { grants: [{ principal_type: 'role', actions: ['read'] }] } }), 'acl.grants.0.principal_type'],
  ] as [object, string][]) {
    const { status, body: answer } = await api<ErrorBody>('POST', '/api/v1/files', { ...secret, body });
    assert.deepEqual([status, answer.error.fields[0]?.field], [422, field], JSON.stringify(body));
  }
});

test('an upload of 11 MiB fits', async () => {
  const bytes = bytesOf(11 * 1024 * 1024);
  const { status, body } = await upload(secret, text('', { data: bytes.toString('base64') }));
  assert.deepEqual([status, body.size], [201, bytes.length]);
  assert.ok(Buffer.from(await (await fetch(body.url)).arrayBuffer()).equals(bytes));
});

test('a filename is stored as given and reaches no header unescaped', async () => {
  for (const filename of [
    '../../etc/passwd',
    'a"b\\c.txt',
    'x\r\nset-cookie: a=b',
    '\u202egpj.exe',
    'žluť 日本 😀.txt',
  ]) {
    const { body } = await upload(secret, text('x', { filename }));
    assert.equal(body.filename, filename);
    const download = await fetch(body.url);
    assert.equal(download.headers.get('set-cookie'), null);
    const disposition = download.headers.get('content-disposition') ?? '';
    assert.match(disposition, /^inline; filename=[ -~]+; filename\*=UTF-8''[\w%.!-]+$/);
    assert.equal(decodeURIComponent(disposition.split("UTF-8''")[1] ?? ''), filename);
  }
});

test('active content is served as a download in a sandbox', async () => {
  for (const content_type of [
    'text/html',
    'image/svg+xml',
    'application/xhtml+xml',
    'text/javascript',
    'x-a/unknown',
  ]) {
    const { body } = await upload(secret, text('<script>', { content_type }));
    const download = await fetch(body.url);
    assert.match(download.headers.get('content-disposition') ?? '', /^attachment;/, content_type);
    assert.match(download.headers.get('content-security-policy') ?? '', /^sandbox;/);
    await download.arrayBuffer();
  }
});

test('an image has an image source with its size in pixels', async () => {
  const image = { filename: 'p.png', content_type: 'image/png', data: pixel.toString('base64') };
  const { body } = await upload(secret, image);
  assert.deepEqual(
    { ...body.image_source, url: '', refresh_url: '' },
    { file: body.id, url: '', refresh_url: '', mime_type: 'image/png', width: 1, height: 1 },
  );
  const broken = await upload(secret, { ...image, data: base64('no picture') });
  assert.equal(broken.status, 201);
  assert.equal(broken.body.image_source?.mime_type, 'image/png');
  assert.ok(!('width' in (broken.body.image_source ?? {})));
  assert.equal((await upload(secret)).body.image_source, undefined);
});

test('a picture that states a size that no picture has is stored, and its size is unknown', async () => {
  const png = Buffer.from(pixel);
  png.writeUInt32BE(2 ** 31, 16);
  const bmp = Buffer.alloc(54);
  bmp.write('BM');
  bmp.writeUInt32LE(40, 14);
  bmp.writeUInt32LE(0x7fffffff, 18);
  bmp.writeInt32LE(-0x80000000, 22);
  const tiff = Buffer.alloc(64);
  tiff.write('II*\0', 'latin1');
  tiff.writeUInt32LE(8, 4);
  tiff.writeUInt16LE(2, 8);
  for (const [n, tag] of [0x100, 0x101].entries()) {
    tiff.writeUInt16LE(tag, 10 + n * 12);
    tiff.writeUInt16LE(4, 12 + n * 12);
    tiff.writeUInt32LE(1, 14 + n * 12);
    tiff.writeUInt32LE(0xffffffff, 18 + n * 12);
  }
  const svg = (width: string) => Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="5"/>`);
  for (const [type, bytes] of [
    ['image/png', png],
    ['image/bmp', bmp],
    ['image/tiff', tiff],
    ['image/svg+xml', svg('2147483648')],
    ['image/svg+xml', svg('1e300')],
    ['image/svg+xml', svg('0.2')],
  ] as const) {
    const body = { filename: 'a', content_type: type, data: bytes.toString('base64') };
    const made = await api<FileBody & { width?: number }>('POST', '/api/v1/files', { ...secret, body });
    assert.equal(made.status, 201, `${type}: ${made.text}`);
    const found = await api<{ image_source?: { width?: number } }>('GET', `/api/v1/files/${made.body.id}`, secret);
    assert.equal(found.body.image_source?.width, undefined, type);
  }
});

test('GET returns the file to callers who can see it, and 404 to all others', async () => {
  const { body: file } = await upload(as(member));
  for (const who of [as(member), secret, { token: app.developerToken, headers: { 'x-app': app.app.id } }])
    assert.equal((await api('GET', `/api/v1/files/${file.id}`, who)).status, 200);
  const absent = await api('GET', `/api/v1/files/${formatId('file', newUuid())}`, as(viewer));
  const sandbox = await provision.sandbox(app);
  for (const who of [
    as(viewer),
    as(admin),
    as(loner),
    as(stranger),
    { key: otherApp.secretKey },
    { key: sandbox.secretKey },
  ]) {
    for (const method of ['GET', 'DELETE', 'PATCH']) {
      const hidden = await api(method, `/api/v1/files/${file.id}`, {
        ...who,
        ...(method === 'PATCH' ? { body: { filename: 'b' } } : {}),
      });
      assert.equal(hidden.status, 404);
      assert.deepEqual(hidden.body, absent.body);
    }
  }
  assert.equal((await api('GET', '/api/v1/files/fil_x', secret)).status, 404);
  assert.equal((await api('GET', `/api/v1/files/${member.id}`, secret)).status, 404);
});

test('no credential is 401, a publishable key alone too, a developer without an app 403', async () => {
  for (const [method, path] of [
    ['POST', '/api/v1/files'],
    ['GET', '/api/v1/files'],
    ['GET', `/api/v1/files/${formatId('file', newUuid())}`],
    ['PATCH', `/api/v1/files/${formatId('file', newUuid())}`],
    ['DELETE', `/api/v1/files/${formatId('file', newUuid())}`],
    ['POST', '/api/v1/files/uploads'],
    ['POST', '/api/v1/files/upload_urls'],
  ] as const) {
    assert.equal((await api(method, path)).status, 401, `${method} ${path}`);
    assert.equal((await api(method, path, { key: app.publishableKey })).status, 401);
    const { status, body } = await api<ErrorBody>(method, path, { token: app.developerToken });
    assert.deepEqual([status, body.error.code], [403, 'app_scope_required']);
  }
});

test('PATCH changes the given members and keeps the others', async () => {
  const { body: file } = await upload(as(member));
  const change = (body: object) => api<FileBody>('PATCH', `/api/v1/files/${file.id}`, { ...as(member), body });
  const renamed = await change({ filename: 'b.txt' });
  assert.deepEqual([renamed.status, renamed.body.filename, renamed.body.checksum], [200, 'b.txt', file.checksum]);
  assert.ok(renamed.body.updated_at > file.updated_at);
  const first = await change({ provider_metadata: { a: 1, b: { c: [null, 'x'] } } });
  assert.deepEqual(first.body.provider_metadata, { a: 1, b: { c: [null, 'x'] } });
  const second = await change({ provider_metadata: { d: 2 } });
  assert.deepEqual([second.body.provider_metadata, second.body.filename], [{ d: 2 }, 'b.txt']);
  const nothing = await change({});
  assert.deepEqual([nothing.status, nothing.body.updated_at], [200, second.body.updated_at]);
  for (const [body, field] of [
    [{ content_type: 'text/html' }, 'content_type'],
    [{ data: '' }, 'data'],
    [{ filename: null }, 'filename'],
    [{ filename: '' }, 'filename'],
    [{ provider_metadata: null }, 'provider_metadata'],
    [{ provider_metadata: [] }, 'provider_metadata'],
    [{ provider_metadata: { a: 'x'.repeat(300_000) } }, 'provider_metadata'],
    [{ share: null }, 'share'],
  ] as [object, string][]) {
    const { status, body: answer } = await api<ErrorBody>('PATCH', `/api/v1/files/${file.id}`, { ...as(member), body });
    assert.deepEqual([status, answer.error.fields[0]?.field], [422, field], JSON.stringify(body).slice(0, 80));
  }
});

test('DELETE removes the file, its bytes and its URLs; a team member may change but not delete it', async () => {
  const { body: file } = await upload(as(member), text('x', { team: team.id }));
  assert.equal(
    (await api('PATCH', `/api/v1/files/${file.id}`, { ...as(member), body: { filename: 'c' } })).status,
    200,
  );
  assert.equal((await api('DELETE', `/api/v1/files/${file.id}`, as(member))).status, 403);
  const removed = await api('DELETE', `/api/v1/files/${file.id}`, as(admin));
  assert.deepEqual([removed.status, removed.text], [204, '']);
  assert.equal((await api('DELETE', `/api/v1/files/${file.id}`, as(admin))).status, 404);
  assert.equal((await fetch(file.url)).status, 404);
});

test('the list shows what is visible to the caller, newest first, with filters', async () => {
  const scope = await provision.world();
  const own = { token: scope.member.token };
  const server_ = { key: scope.app.secretKey };
  const names: string[] = [];
  for (const [filename, content_type] of [
    ['Report 100%.PDF', 'application/pdf'],
    ['photo_1.png', 'image/png; a=b'],
    ['photo2.jpg', 'image/jpeg'],
  ] as const)
    names.push((await upload(own, text('x', { filename, content_type }))).body.filename);
  await upload(server_, text('x', { filename: 'of the org', org: scope.org.id }));
  await upload({ token: scope.otherUser.token });
  type List = { data: FileBody[]; total_entries: number; page_size: number; has_next: boolean };
  const list = async (query = '', who: object = own) => (await api<List>('GET', `/api/v1/files${query}`, who)).body;
  assert.deepEqual(
    (await list()).data.map((file) => file.filename),
    ['of the org', ...names.toReversed()],
  );
  assert.equal((await list('', server_)).total_entries, 5);
  assert.equal((await list('', { key: scope.otherApp.secretKey })).total_entries, 0);
  assert.equal((await list('?content_type=image/*')).total_entries, 2);
  assert.equal((await list('?content_type=IMAGE/PNG')).total_entries, 1);
  assert.equal((await list('?content_type=image/p')).total_entries, 0);
  assert.equal((await list('?search=PHOTO')).total_entries, 2);
  assert.equal((await list('?search=photo_')).total_entries, 1);
  assert.equal((await list('?search=100%25')).total_entries, 1);
  assert.equal((await list(`?user=${scope.member.id}`, server_)).total_entries, 3);
  assert.equal((await list(`?org=${scope.otherOrg.id}`, server_)).total_entries, 1);
  assert.equal((await list(`?org=${scope.otherOrg.id}`)).total_entries, 0);
  assert.equal((await list(`?team=${formatId('team', newUuid())}`)).total_entries, 0);
  assert.equal((await api('GET', '/api/v1/files?user=nobody', own)).status, 422);
  assert.equal((await api('GET', '/api/v1/files?page=0', own)).status, 422);
  const paged = await list('?page_size=2&page=2');
  assert.deepEqual([paged.data.length, paged.total_entries, paged.has_next], [2, 4, false]);
  assert.equal((await list('?page_size=1000')).page_size, 100);
});

test('a signed URL works without a credential until it expires, and only for its file', async () => {
  const { body: file } = await upload(as(member));
  const { body: other } = await upload(as(member), text('other'));
  const url = new URL(file.url);
  assert.equal(url.pathname, `/api/v1/files/${file.id}/content`);
  assert.equal(
    (await fetch(url, { headers: { authorization: 'Bearer nonsense', 'x-api-key': 'sk_bad' } })).status,
    200,
  );
  const changed = (change: (forged: URL) => void) => {
    const forged = new URL(url);
    change(forged);
    return forged;
  };
  for (const forged of [
    changed((u) => u.searchParams.set('expires', String(Number(u.searchParams.get('expires')) + 1))),
    changed((u) => u.searchParams.set('expires', 'soon')),
    changed((u) => u.searchParams.delete('expires')),
    changed((u) => u.searchParams.delete('signature')),
    changed((u) => u.searchParams.append('signature', u.searchParams.get('signature') ?? '')),
    changed((u) => u.searchParams.set('signature', 'AAAA')),
    changed((u) => {
      u.pathname = new URL(other.url).pathname;
    }),
  ])
    assert.equal((await fetch(forged)).status, 403, forged.search);
  for (const role of ['avatar', 'org_logo', 'share'])
    assert.equal(
      (await fetch(`${server.baseUrl}/api/v1/files/${file.id}/${role}?token=${url.searchParams.get('signature')}`))
        .status,
      404,
    );
});

test('the list of files is sorted by name, size or time, and a prefix shows one folder', async () => {
  const app = await server.provision.app();
  const make = (filename: string, text: string) =>
    server.api('POST', '/api/v1/files', {
      key: app.secretKey,
      body: { filename, content_type: 'text/plain', data: Buffer.from(text).toString('base64') },
    });
  for (const [name, text] of [
    ['reports/b.txt', 'bb'],
    ['reports/a.txt', 'a'],
    ['notes.txt', 'cccc'],
  ] as const)
    assert.equal((await make(name, text)).status, 201);
  const names = async (query: string) => {
    const { body } = await server.api<{ data: { filename: string }[] }>('GET', `/api/v1/files?${query}`, {
      key: app.secretKey,
    });
    return body.data.map(({ filename }) => filename);
  };
  assert.deepEqual(await names('sort=filename'), ['notes.txt', 'reports/a.txt', 'reports/b.txt']);
  assert.deepEqual(await names('sort=-size'), ['notes.txt', 'reports/b.txt', 'reports/a.txt']);
  assert.deepEqual(await names('sort=created_at'), ['reports/b.txt', 'reports/a.txt', 'notes.txt']);
  assert.deepEqual(await names('prefix=reports/&sort=size'), ['reports/a.txt', 'reports/b.txt']);
  assert.deepEqual(await names('prefix=reports%25'), []);
  const wrong = await server.api('GET', '/api/v1/files?sort=colour', { key: app.secretKey });
  assert.equal(wrong.status, 422);
});
