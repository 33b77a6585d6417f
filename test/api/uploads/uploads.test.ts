import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sweepBlobs } from '../../../src/files/sweep.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { sweepUploads } from '../../../src/uploads/sweep.ts';
import { findDrift } from '../../../src/usage/store.ts';
import { openBreakingProxy } from '../../support/breaking-proxy.ts';
import { bytesOf, type FileBody, pixel } from '../../support/files.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';
import { metadataOf, offsetType, tus, uploadRequests, uploadWithClient } from '../../support/uploads.ts';

const clock = new ManualClock();
const sizeMax = 8 * 1024 * 1024;
const env = { QUARRY_RESUMABLE_BYTES_MAX: String(sizeMax), QUARRY_UNFINISHED_UPLOADS: '5' };
const server = await startTestServer({ clock, env });
after(() => server.close());
const { api, provision, db, services, dataDir } = server;
const { app, org, admin, member, otherUser, otherApp } = await provision.world();
const { create, append, head } = uploadRequests(api);
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const me = { token: member.token };

const partialFiles = () => {
  try {
    return readdirSync(join(dataDir, 'blobs', 'partial'));
  } catch {
    return [];
  }
};
const codeOf = ({ body }: { body: ErrorBody }) => body.error.code;

test('the official client uploads over connections that break, and the upload becomes one file with all its members', async () => {
  const proxy = await openBreakingProxy(server.baseUrl);
  try {
    const bytes = bytesOf(5_000_000);
    const team = await provision.team(app, { members: [[member, 'member']] });
    proxy.breakAfter = [700_000, 300_000, 1_000_000, 1_500_000];
    const acl = { grants: [{ principal_type: 'user', principal: admin.id, actions: ['read'] }] };
    const id = await uploadWithClient(bytes, {
      endpoint: `${proxy.url}/api/v1/uploads`,
      headers: { authorization: `Bearer ${member.token}` },
      metadata: {
        filename: 'scans/日.bin',
        filetype: 'application/x-scan',
        team: team.id,
        acl: JSON.stringify(acl),
        provider_metadata: '{"from":"a test"}',
      },
    });
    assert.equal(proxy.breakAfter.length, 0);
    const { body: file } = await api<FileBody>('GET', `/api/v1/files/${id}`, me);
    assert.deepEqual(
      [file.filename, file.content_type, file.size, file.checksum, file.team?.slice(-22), file.org, file.user],
      ['scans/日.bin', 'application/x-scan', bytes.length, sha256(bytes), team.id.slice(-22), org.id, undefined],
    );
    assert.deepEqual([file.acl, file.provider_metadata], [acl, { from: 'a test' }]);
    assert.ok(Buffer.from(await (await fetch(file.url)).arrayBuffer()).equals(bytes));
    assert.equal((await db`select 1 from files where app_id = ${app.app.uuid}`).length, 1);
    assert.deepEqual(partialFiles(), []);
  } finally {
    await proxy.close();
  }
});

test('HEAD returns where to continue, in any process; a PATCH at another offset is 409 and changes nothing', async () => {
  const second = await startTestServer({ clock, env, beside: server });
  try {
    const there = uploadRequests(second.api);
    const { body: upload, headers } = await create(me, 9);
    assert.equal(headers.get('location'), `/api/v1/uploads/${upload.id}`);
    assert.equal((await append(me, upload.id, 0, 'abc')).status, 204);
    const seen = await there.head(me, upload.id);
    assert.deepEqual(
      ['upload-offset', 'upload-length', 'upload-metadata', 'tus-resumable', 'cache-control'].map((name) =>
        seen.headers.get(name),
      ),
      [
        ...['3', '9', metadataOf({ filename: 'a.bin', content_type: 'application/octet-stream' })],
        ...['1.0.0', 'no-store'],
      ],
    );
    assert.equal(
      Date.parse(seen.headers.get('upload-expires') ?? ''),
      Math.floor(Date.parse(upload.expires_at) / 1_000) * 1_000,
    );
    for (const offset of [0, 2, 4, 9]) {
      const refused = await there.append<ErrorBody>(me, upload.id, offset, 'xyz');
      assert.deepEqual([refused.status, refused.body.error.details.offset], [409, 3]);
    }
    assert.equal((await there.append(me, upload.id, 3, 'def')).headers.get('upload-offset'), '6');
    const done = await append(me, upload.id, 6, 'ghi');
    assert.deepEqual([done.status, done.headers.get('x-file')], [204, upload.file]);
    const { body: file } = await api<FileBody>('GET', `/api/v1/files/${upload.file}`, me);
    assert.equal(file.checksum, sha256(Buffer.from('abcdefghi')));
    // A client whose last response was lost finds the end.
    assert.deepEqual(
      [(await head(me, upload.id)).headers.get('upload-offset'), (await append(me, upload.id, 9, '')).status],
      ['9', 204],
    );
    assert.equal((await append(me, upload.id, 9, 'x')).status, 413);
  } finally {
    await second.close();
  }
});

test('while one process appends, another gets 423, and bytes from a broken connection are kept', async () => {
  const second = await startTestServer({ clock, env, beside: server });
  try {
    const there = uploadRequests(second.api);
    const { body: upload } = await create(me, 1_000_000);
    const slow = httpRequest(`${server.baseUrl}/api/v1/uploads/${upload.id}`, {
      method: 'PATCH',
      headers: { ...tus, ...offsetType, 'upload-offset': '0', authorization: `Bearer ${member.token}` },
    });
    slow.on('error', () => {});
    slow.write(bytesOf(300_000));
    const isHeld = async () =>
      (await db`select 1 from uploads where id = ${uuidOf(upload)} and holder is not null`).length > 0;
    await until(isHeld);
    for (const one of [
      await append<ErrorBody>(me, upload.id, 0, 'x'),
      await there.append<ErrorBody>(me, upload.id, 0, 'x'),
    ])
      assert.deepEqual([one.status, codeOf(one)], [423, 'locked']);
    assert.equal((await second.api('DELETE', `/api/v1/uploads/${upload.id}`, me)).status, 423);
    slow.destroy();
    await until(async () => !(await isHeld()));
    const offset = Number((await there.head(me, upload.id)).headers.get('upload-offset'));
    assert.ok(offset > 0 && offset <= 300_000);
    assert.equal((await there.append(me, upload.id, offset, bytesOf(1_000_000).subarray(offset))).status, 204);
    const { body: file } = await api<FileBody>('GET', `/api/v1/files/${upload.file}`, me);
    assert.equal(file.checksum, sha256(bytesOf(1_000_000)));
  } finally {
    await second.close();
  }
});

test('an upload whose release failed can be continued through another process', async () => {
  const second = await startTestServer({ clock, env, beside: server });
  try {
    const there = uploadRequests(second.api);
    const { body: upload } = await create(me, 6);
    await db`
      create function refuse_release() returns trigger language plpgsql as $$ begin
        raise exception 'no space' using errcode = '53100';
      end $$`;
    await db`
      create trigger refuse_release before update of holder on uploads
      for each row when (new.holder is null and old.holder is not null) execute function refuse_release()`;
    assert.equal((await append(me, upload.id, 0, 'abc')).status, 204);
    assert.equal((await there.append<ErrorBody>(me, upload.id, 3, 'def')).status, 423);
    await db`drop trigger refuse_release on uploads`;
    await until(async () => (await there.append<ErrorBody>(me, upload.id, 3, 'def')).status !== 423);
    const { body: file } = await api<FileBody>('GET', `/api/v1/files/${upload.file}`, me);
    assert.equal(file.checksum, sha256(Buffer.from('abcdef')));
  } finally {
    await second.close();
  }
});

test('a body with another checksum than announced is 460, and none of it is kept', async () => {
  const { body: upload } = await create(me, 6);
  await append(me, upload.id, 0, 'abc');
  const checksum = (algorithm: string, text: string) =>
    `${algorithm} ${createHash(algorithm).update(text).digest('base64')}`;
  const wrong = await append<ErrorBody>(me, upload.id, 3, 'xyz', { 'upload-checksum': checksum('sha1', 'def') });
  assert.deepEqual([wrong.status, codeOf(wrong)], [460, 'checksum_mismatch']);
  assert.equal((await head(me, upload.id)).headers.get('upload-offset'), '3');
  assert.equal((await append(me, upload.id, 3, 'd', { 'upload-checksum': checksum('sha256', 'd') })).status, 204);
  assert.equal((await append(me, upload.id, 4, 'ef', { 'upload-checksum': checksum('sha512', 'ef') })).status, 204);
  const { body: file } = await api<FileBody>('GET', `/api/v1/files/${upload.file}`, me);
  assert.equal(file.checksum, sha256(Buffer.from('abcdef')));
});

test('an upload is visible only to its creator and to the app, in its sandbox', async () => {
  const { body: upload } = await create(me, 3);
  const sandbox = await provision.sandbox(app);
  for (const who of [
    { token: otherUser.token },
    { token: admin.token },
    { key: otherApp.secretKey },
    { key: sandbox.secretKey },
  ]) {
    for (const { status } of [
      await head(who, upload.id),
      await append(who, upload.id, 0, 'abc'),
      await api('DELETE', `/api/v1/uploads/${upload.id}`, who),
    ])
      assert.equal(status, 404);
    const { body: list } = await api<{ data: { id: string }[] }>('GET', '/api/v1/uploads', who);
    assert.ok(!list.data.some(({ id }) => id === upload.id));
  }
  for (const who of [me, { key: app.secretKey }]) {
    const { body: list } = await api<{ data: { id: string }[] }>('GET', '/api/v1/uploads', who);
    assert.equal(list.data[0]?.id, upload.id);
  }
  const finished = await append({ key: app.secretKey }, upload.id, 0, 'abc');
  const { body: file } = await api<FileBody>('GET', `/api/v1/files/${finished.headers.get('x-file')}`, me);
  assert.equal(file.user, member.id);
});

test('rights are checked again at the end: a user who has left the team gets 403 and no file', async () => {
  const user = await provision.user(app, { org });
  const team = await provision.team(app, { members: [[user, 'member']] });
  const { body: upload } = await create({ token: user.token }, 6, { team: team.id });
  assert.equal((await append({ token: user.token }, upload.id, 0, 'abc')).status, 204);
  await db`delete from team_memberships where team_id = ${team.uuid}`;
  services.credentials.forget();
  const refused = await append<ErrorBody>({ token: user.token }, upload.id, 3, 'def');
  assert.deepEqual([refused.status, codeOf(refused)], [403, 'forbidden']);
  assert.equal((await api('GET', `/api/v1/files/${upload.file}`, { key: app.secretKey })).status, 404);
  assert.equal((await api('DELETE', `/api/v1/uploads/${upload.id}`, { token: user.token })).status, 204);
});

test('a grant ends with its principal, and the rest of the list stays', async () => {
  const gone = await provision.user(app, { org });
  const grants = [gone, admin].map(({ id }) => ({ principal_type: 'user', principal: id, actions: ['read'] }));
  const { body: upload } = await create(me, 3, { acl: JSON.stringify({ grants }) });
  await db`delete from users where id = ${gone.uuid}`;
  await append(me, upload.id, 0, 'abc');
  const { body: file } = await api<FileBody>('GET', `/api/v1/files/${upload.file}`, me);
  assert.deepEqual(file.acl, { grants: [grants[1]] });
});

/** An upload whose bytes are all stored, and whose end was interrupted. */
async function interruptEnd(who: typeof me) {
  const { body: upload } = await create(who, 3);
  await db`create or replace function fail() returns trigger language plpgsql as
    $$ begin raise exception 'killed'; end $$`;
  await db`create trigger fail before insert on files for each row execute function fail()`;
  assert.equal((await append(who, upload.id, 0, 'abc')).status, 500);
  await db`drop trigger fail on files`;
  return upload;
}

test('an interrupted completion is repeated by the next request, and creates one file', async () => {
  const upload = await interruptEnd(me);
  const seen = await head(me, upload.id);
  assert.deepEqual([seen.headers.get('upload-offset'), seen.headers.get('x-file')], ['3', upload.file]);
  assert.equal((await db`select 1 from files where id = ${uuidOf(upload)}`).length, 1);
  // The file ends the upload.
  assert.equal((await api('DELETE', `/api/v1/files/${upload.file}`, me)).status, 204);
  assert.equal((await head(me, upload.id)).status, 404);
});

test('a key that may only read shows an upload whose end was interrupted, and does not finish it', async () => {
  const upload = await interruptEnd(me);
  const createKey = async (scopes: string[]) => {
    const body = { type: 'secret', scopes };
    return (await api<{ full_key: string }>('POST', '/api/v1/keys', { key: app.secretKey, body })).body.full_key;
  };
  for (const scopes of [['files:read'], ['read'], ['read', 'kv']]) {
    const key = await createKey(scopes);
    const shown = await api<typeof upload>('GET', `/api/v1/uploads/${upload.id}`, { key });
    assert.deepEqual([shown.status, shown.body.state, shown.body.offset], [200, 'uploading', 3]);
    assert.equal((await head({ key }, upload.id)).headers.get('x-file'), null);
  }
  assert.equal((await db`select 1 from files where id = ${uuidOf(upload)}`).length, 0);
  const finished = await head({ key: await createKey(['files']) }, upload.id);
  assert.equal(finished.headers.get('x-file'), upload.file);
});

test('repeating a creation with its Idempotency-Key returns the same upload', async () => {
  const headers = { 'idempotency-key': 'once' };
  const first = await create(me, 6, {}, { headers, body: Buffer.from('abc') });
  const again = await create(me, 6, {}, { headers, body: Buffer.from('abc') });
  assert.deepEqual([again.body.id, again.headers.get('location')], [first.body.id, `/api/v1/uploads/${first.body.id}`]);
  assert.equal((await create(me, 7, {}, { headers, body: Buffer.from('abc') })).status, 422);
  assert.equal((await append(me, first.body.id, 3, 'def')).status, 204);
});

test('an app’s unfinished uploads are limited, and count against its quota of bytes', async () => {
  const small = await provision.app();
  const who = { key: small.secretKey };
  await db`insert into app_quotas (app_id, measure, operator_bound) values (${small.app.uuid}, 'file_bytes', 10)`;
  assert.equal((await create(who, 8)).status, 201);
  const over = await create<ErrorBody>(who, 3);
  assert.deepEqual([over.status, codeOf(over)], [422, 'quota_exceeded']);
  for (let count = 1; count < 5; count++)
    assert.equal((await create(who, 0 + (count === 1 ? 2 : 1))).status, count === 1 ? 201 : 422);
  await db`delete from app_quotas where app_id = ${small.app.uuid}`;
  while ((await db`select 1 from uploads where app_id = ${small.app.uuid}`).length < 5) await create(who, 1);
  const sixth = await create<ErrorBody>(who, 1);
  assert.deepEqual([sixth.status, codeOf(sixth)], [429, 'rate_limited']);
  assert.ok(sixth.headers.get('retry-after'));
});

test('a number in provider_metadata that cannot be stored exactly is 422 on its member, like in a JSON body', async () => {
  const refused = await create<ErrorBody>(me, 1, { provider_metadata: '{"page":{"number":9007199254740993}}' });
  assert.deepEqual([refused.status, refused.body.error.fields[0]?.field], [422, 'provider_metadata.page.number']);
  const kept = await create(me, 1, { provider_metadata: '{"number":9007199254740992}' });
  assert.equal(kept.status, 201, kept.text);
  assert.equal((await api('DELETE', `/api/v1/uploads/${kept.body.id}`, { ...me, headers: tus })).status, 204);
});

test('an upload whose picture states a size that no picture has becomes a file of unknown size', async () => {
  const png = Buffer.from(pixel);
  png.writeUInt32BE(2 ** 31, 16);
  const done = await create(me, png.length, { content_type: 'image/png' }, { body: png });
  assert.deepEqual([done.status, done.body.state], [201, 'finished'], done.text);
  const { body } = await api<{ width?: number }>('GET', `/api/v1/files/${done.body.file}`, me);
  assert.equal(body.width, undefined);
});

test('the creation may contain bytes, and an empty upload is a file immediately', async () => {
  const members = { content_type: 'image/png', share: 'true' };
  const whole = await create(me, pixel.length, members, { body: pixel });
  assert.deepEqual([whole.status, whole.body.state, whole.body.offset], [201, 'finished', pixel.length]);
  const { body: picture } = await api<FileBody>('GET', `/api/v1/files/${whole.body.file}`, me);
  assert.deepEqual([picture.image_source?.width, picture.user, picture.shared], [1, member.id, true]);
  const part = await create(me, 10, {}, { body: Buffer.from('abc') });
  assert.deepEqual([part.body.state, part.headers.get('upload-offset')], ['uploading', '3']);
  assert.equal((await append(me, part.body.id, 3, 'defghij')).headers.get('x-file'), part.body.file);
  const empty = await create(me, 0);
  assert.deepEqual([empty.status, empty.body.state], [201, 'finished']);
  assert.equal((await api<FileBody>('GET', `/api/v1/files/${empty.body.file}`, me)).body.size, 0);
});

test('OPTIONS says what is supported, and a browser may read the headers', async () => {
  const options = await api('OPTIONS', '/api/v1/uploads');
  assert.deepEqual(
    [options.status, options.headers.get('tus-version'), options.headers.get('tus-max-size')],
    [204, '1.0.0', String(sizeMax)],
  );
  assert.match(options.headers.get('tus-extension') ?? '', /creation-with-upload,termination,checksum,expiration/);
  const origin = { origin: 'https://example.test', 'access-control-request-method': 'PATCH' };
  const preflight = await api('OPTIONS', '/api/v1/uploads/upl_x', { headers: origin });
  assert.match(preflight.headers.get('access-control-allow-methods') ?? '', /PATCH/);
  assert.ok(preflight.headers.get('x-request-id'));
  const seen = await api('GET', '/api/v1/uploads', { ...me, headers: origin });
  assert.match(seen.headers.get('access-control-expose-headers') ?? '', /upload-offset/);
});

test('awkward requests are clear 4xx, and change nothing', async () => {
  const before = (await db`select 1 from uploads`).length;
  const creations: [number, string, Parameters<typeof create>][] = [
    [422, 'upload-length', [me, 'many']],
    [422, 'upload-length', [me, '-1']],
    [422, 'upload-length', [me, '9'.repeat(17)]],
    [422, 'share', [me, 1, { share: 'yes' }]],
    [422, 'acl', [me, 1, { acl: '{' }]],
    [422, 'acl.grants.0.actions', [me, 1, { acl: '{"grants":[{"principal_type":"everyone"}]}' }]],
    [422, 'color', [me, 1, { color: 'red' }]],
    [422, 'filename', [me, 1, { filename: '' }]],
    [422, 'filename', [me, 1, { filename: 'x'.repeat(501) }]],
    [422, 'filename', [me, 1, { filename: 'a\0b' }]],
    [422, 'content_type', [me, 1, { content_type: 'nonsense' }]],
    [422, 'content_type', [me, 1, { filetype: 'image/png' }]],
    [422, 'team', [me, 1, { team: 'tem_nobody' }]],
    [422, 'filename', [me, 1, {}, { headers: { 'upload-metadata': 'filename !!!' } }]],
    [422, 'filename', [me, 1, {}, { headers: { 'upload-metadata': 'filename /w==' } }]],
    [422, 'upload-metadata', [me, 1, {}, { headers: { 'upload-metadata': 'filename YQ== YQ==' } }]],
    [422, 'filename', [me, 1, {}, { headers: { 'upload-metadata': '' } }]],
    [422, 'upload-checksum', [me, 1, {}, { body: Buffer.from('a'), headers: { 'upload-checksum': 'crc32 AAAA' } }]],
  ];
  for (const [status, field, request] of creations) {
    const refused = await create<ErrorBody>(...request);
    assert.deepEqual(
      [refused.status, refused.body.error.fields[0]?.field],
      [status, field],
      JSON.stringify(request.slice(1)),
    );
  }
  const plain: [number, string, Parameters<typeof create>][] = [
    [413, 'payload_too_large', [me, sizeMax + 1]],
    [413, 'payload_too_large', [me, 2, {}, { body: Buffer.from('abc') }]],
    [412, 'precondition_failed', [me, 1, {}, { headers: { 'tus-resumable': '0.2.2' } }]],
    [415, 'unsupported_media_type', [me, 1, {}, { body: Buffer.from('a'), headers: { 'content-type': 'text/plain' } }]],
    [422, 'not_an_image', [me, 1, { share: 'true' }]],
    [401, 'unauthenticated', [{ key: app.publishableKey }, 1]],
  ];
  for (const [status, code, request] of plain) {
    const refused = await create<ErrorBody>(...request);
    assert.deepEqual([refused.status, codeOf(refused)], [status, code], JSON.stringify(request.slice(1)));
  }
  assert.equal((await db`select 1 from uploads`).length, before);

  const { body: upload } = await create(me, 3);
  const at = `/api/v1/uploads/${upload.id}`;
  for (const [status, headers] of [
    [412, { ...offsetType, 'upload-offset': '0' }],
    [415, { ...tus, 'content-type': 'text/plain', 'upload-offset': '0' }],
    [415, { ...tus, ...offsetType, 'upload-offset': '0', 'content-encoding': 'gzip' }],
    [422, { ...tus, ...offsetType }],
    [422, { ...tus, ...offsetType, 'upload-offset': '0x0' }],
    [413, { ...tus, ...offsetType, 'upload-offset': '0' }],
  ] as const)
    assert.equal((await api('PATCH', at, { ...me, body: 'abcd', headers })).status, status, JSON.stringify(headers));
  for (const id of ['upl_x', upload.file, 'a'.repeat(300)]) assert.equal((await head(me, id)).status, 404);
  assert.equal((await head(me, upload.id)).headers.get('upload-offset'), '0');
  assert.equal((await api('PUT', at, me)).status, 405);
  assert.equal((await api('DELETE', at, me)).status, 204);
});

test('a deleted upload leaves nothing, and neither does one that has expired', async () => {
  const used = async () =>
    (await db<[{ used: number }]>`select app_used(${app.app.uuid}, ${app.sandboxUuid}, 'file_bytes') as used`)[0].used;
  const before = await used();
  const { body: deleted } = await create(me, 1_000);
  await append(me, deleted.id, 0, 'abc');
  assert.equal(await used(), before + 1_000);
  assert.equal((await api('DELETE', `/api/v1/uploads/${deleted.id}`, { ...me, headers: tus })).status, 204);
  assert.deepEqual([await used(), (await head(me, deleted.id)).status], [before, 404]);
  const { body: expired } = await create(me, 2_000);
  await append(me, expired.id, 0, 'abc');
  clock.advance(24 * 3_600_000 - 1);
  const key = { key: app.secretKey };
  assert.equal((await head(key, expired.id)).status, 200);
  clock.advance(2);
  assert.equal((await head(key, expired.id)).status, 404);
  assert.equal((await append(key, expired.id, 3, 'x')).status, 404);
  await sweepUploads({ db, clock });
  assert.equal(await used(), before);
  await sweepBlobs({ db, blobs: services.blobs });
  assert.deepEqual([partialFiles(), await db.begin(findDrift)], [[], []]);
});

const uuidOf = ({ id }: { id: string }) => parseId('upload', id) ?? '';
