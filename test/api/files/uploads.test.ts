import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sweepBlobs } from '../../../src/files/sweep.ts';
import { bytesOf, type FileBody, pixel } from '../../support/files.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const clock = new ManualClock();
const sizeMax = 3 * 1024 * 1024;
const server = await startTestServer({ clock, env: { QUARRY_UPLOAD_BYTES_MAX: String(sizeMax) } });
after(() => server.close());
const { api, provision, db, services, dataDir } = server;
const { app, org, member, viewer, otherUser } = await provision.world();
const team = await provision.team(app, { members: [[member, 'member']] });
const digest = (algorithm: 'sha256' | 'sha512', bytes: Uint8Array) =>
  `${algorithm.replace('sha', 'sha-')}=:${createHash(algorithm).update(bytes).digest('base64')}:`;

const upload = <T = FileBody>(body: Uint8Array | string, headers: Record<string, string> = {}, query = '') =>
  api<T>('POST', `/api/v1/files/uploads${query}`, {
    token: member.token,
    body,
    headers: { 'content-type': 'application/octet-stream', 'x-filename': 'a.bin', ...headers },
  });

/** Every file below the blob directory, temporary ones included. */
const blobFiles = () =>
  readdirSync(join(dataDir, 'blobs'), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());

test('a raw body of any type becomes a file, JSON too', async () => {
  const bytes = bytesOf(1_500_000);
  for (const type of ['application/octet-stream', 'application/json', 'text/plain; charset=utf-8', 'image/png']) {
    const { status, body } = await upload(bytes, { 'content-type': type, 'content-digest': digest('sha256', bytes) });
    assert.equal(status, 201);
    assert.deepEqual([body.size, body.content_type, body.user, body.org], [bytes.length, type, member.id, org.id]);
    assert.equal(body.checksum, createHash('sha256').update(bytes).digest('hex'));
    assert.ok(Buffer.from(await (await fetch(body.url)).arrayBuffer()).equals(bytes));
  }
  assert.equal((await upload('')).body.size, 0);
  const picture = await upload(pixel, { 'content-type': 'image/png' }, `?share=true&team=${team.id}`);
  assert.deepEqual([picture.body.image_source?.width, picture.body.user], [1, undefined]);
  assert.equal((await fetch(picture.body.share_url ?? '')).status, 200);
});

test('the filename may be percent-encoded or plain UTF-8', async () => {
  for (const [header, filename] of [
    ['a%20b.txt', 'a b.txt'],
    ['%E6%97%A5.txt', '日.txt'],
    [Buffer.from('日.txt').toString('latin1'), '日.txt'],
    ['..%2F..%2Fx%0d%0a', '../../x\r\n'],
    ['100%25', '100%'],
  ] as const)
    assert.equal((await upload('x', { 'x-filename': header })).body.filename, filename);
  for (const header of ['', '100%', '%ff', '%00', 'x'.repeat(501)]) {
    const { status, body } = await upload<ErrorBody>('x', { 'x-filename': header });
    assert.deepEqual([status, body.error.fields[0]?.field], [422, 'x-filename'], header.slice(0, 10));
  }
});

test('a digest is checked, and a body that does not match it leaves nothing', async () => {
  const bytes = bytesOf(100_000);
  const before = blobFiles().length;
  assert.equal((await upload(bytes, { 'content-digest': digest('sha512', bytes) })).status, 201);
  for (const header of [digest('sha256', pixel), digest('sha512', pixel), 'md5=:AAAA:', 'sha-256=:AAAA:', 'nonsense']) {
    const { status, body } = await upload<ErrorBody>(bytes, { 'content-digest': header });
    assert.deepEqual([status, body.error.fields[0]?.field], [422, 'content-digest'], header);
  }
  assert.equal(blobFiles().length, before + 1);
});

test('the largest body fits; one byte more is 413, announced or not, and leaves nothing', async () => {
  assert.equal((await upload(bytesOf(sizeMax))).status, 201);
  const before = blobFiles().length;
  const { status, body } = await upload<ErrorBody>(bytesOf(sizeMax + 1));
  assert.deepEqual([status, body.error.code], [413, 'payload_too_large']);
  const chunked = await new Promise<number | undefined>((resolve, reject) => {
    const outgoing = httpRequest(`${server.baseUrl}/api/v1/files/uploads`, {
      method: 'POST',
      headers: { authorization: `Bearer ${member.token}`, 'content-type': 'x/y', 'x-filename': 'a' },
    });
    outgoing.on('response', (answer) => {
      resolve(answer.statusCode);
      outgoing.destroy();
    });
    outgoing.on('error', reject);
    // The server reads all of it before it responds: an unread rest would reset the connection, and lose the response.
    outgoing.write(bytesOf(sizeMax + 1));
  });
  assert.equal(chunked, 413);
  assert.equal(blobFiles().length, before);
});

test('an invalid raw upload is refused on its member', async () => {
  assert.equal((await upload('x', { 'content-type': 'nonsense' })).status, 415);
  for (const type of ['a/b; c', 'text/plain;']) {
    const { status, body } = await upload<ErrorBody>('x', { 'content-type': type });
    assert.deepEqual([status, body.error.fields[0]?.field], [422, 'content-type'], type);
  }
  assert.equal((await upload('x', { 'content-type': 'text/plain' }, '?share=true')).status, 422);
  assert.equal((await upload('x', {}, '?share=maybe')).status, 422);
  assert.equal((await upload('x', {}, `?user=${otherUser.id}`)).status, 422);
  assert.equal((await upload('x', {}, `?user=${viewer.id}`)).status, 403);
});

test('an interrupted upload leaves neither row nor blob nor note', async () => {
  const [before] = await db<[{ count: number }]>`select count(*)::int as count from files`;
  const filesBefore = blobFiles().length;
  const outgoing = httpRequest(`${server.baseUrl}/api/v1/files/uploads`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${member.token}`,
      'content-type': 'x/y',
      'x-filename': 'a',
      'content-length': '1000000',
    },
  });
  outgoing.on('error', () => {});
  await new Promise((resolve) => outgoing.write(bytesOf(200_000), resolve));
  await until(() => blobFiles().length > filesBefore);
  outgoing.destroy();
  await until(async () => (await db`select 1 from doomed_blobs`).length === 0 && blobFiles().length === filesBefore);
  const [afterwards] = await db<[{ count: number }]>`select count(*)::int as count from files`;
  assert.equal(afterwards.count, before.count);
});

test('an upload URL accepts one file, once, of the declared size and digest, until it expires', async () => {
  type Link = { file: string; method: string; url: string; expires_at: string };
  const make = async (more: object = {}) => {
    const answer = await api<Link>('POST', '/api/v1/files/upload_urls', {
      token: member.token,
      body: { filename: 'a.png', content_type: 'image/png', team: team.id, share: true, ...more },
    });
    assert.equal(answer.status, 201, answer.text);
    return answer.body;
  };
  const put = async (url: string, body: Uint8Array, headers: Record<string, string> = {}) => {
    const answer = await fetch(url, { method: 'PUT', body: Uint8Array.from(body), headers });
    return { status: answer.status, body: (await answer.json()) as FileBody };
  };
  const link = await make();
  const made = await put(link.url, pixel, { authorization: 'Bearer nonsense', 'content-type': 'text/html' });
  assert.equal(made.status, 201);
  assert.deepEqual(
    [made.body.id, made.body.content_type, made.body.team?.slice(0, 5), made.body.shared, made.body.acl],
    [link.file, 'image/png', 'team_', true, undefined],
  );
  assert.equal((await put(link.url, pixel)).status, 409);
  const files = blobFiles().length;
  const small = await make({ size: 10 });
  assert.equal((await put(small.url, pixel)).status, 413);
  const exact = await make({ checksum: createHash('sha256').update(pixel).digest('hex').toUpperCase() });
  assert.equal((await put(exact.url, bytesOf(5))).status, 422);
  assert.equal((await put(exact.url, pixel, { 'content-digest': digest('sha256', bytesOf(5)) })).status, 422);
  assert.equal(blobFiles().length, files);
  assert.equal((await put(exact.url, pixel)).status, 201);
  const forged = new URL((await make()).url);
  const token = forged.searchParams.get('token') ?? '';
  for (const value of [`${token}A`, token.slice(1), '', 'a.b'])
    assert.equal((await put(`${forged.origin}${forged.pathname}?token=${value}`, pixel)).status, 403);
  const late = await make({ expires_in: 60 });
  clock.advance(62_000);
  assert.equal((await put(late.url, pixel)).status, 403);
  const gone = await provision.user(app);
  const orphan = await api<Link>('POST', '/api/v1/files/upload_urls', {
    key: app.secretKey,
    body: { filename: 'a', content_type: 'text/plain', user: gone.id },
  });
  await api('DELETE', `/api/v1/users/${gone.id}`, { key: app.secretKey });
  assert.equal((await put(orphan.body.url, pixel)).status, 422);
  assert.equal(blobFiles().length, files + 1);
});

test('the contents of deleted files are kept for the days in which a database may be recovered', async () => {
  const keeping = await startTestServer({ beside: server, env: { QUARRY_DELETED_BLOB_DAYS: '7' } });
  try {
    const made = await keeping.api<FileBody>('POST', '/api/v1/files', {
      key: app.secretKey,
      body: { filename: 'a', content_type: 'text/plain', data: 'eA==', user: member.id },
    });
    const [row] = await db<{ blobKey: string }[]>`select blob_key from files order by created_at desc limit 1`;
    const key = row?.blobKey ?? '';
    assert.equal((await keeping.api('DELETE', `/api/v1/files/${made.body.id}`, { key: app.secretKey })).status, 204);
    const sweep = () => sweepBlobs({ ...keeping.services, deletedBlobDays: 7 });
    for (const [age, kept] of [
      ['6 days 23 hours', true],
      ['7 days 1 second', false],
    ] as const) {
      await db`update doomed_blobs set due_at = now() - ${age}::interval where blob_key = ${key}`;
      await sweep();
      assert.equal((await keeping.services.blobs.stat(key)) !== undefined, kept, age);
    }
  } finally {
    await keeping.close();
  }
});

test('a blob that its store does not delete keeps no other from being deleted', async () => {
  const keys = ['locked', 'free'].map((name) => `${app.app.uuid}/${name}`);
  for (const [at, key] of keys.entries()) {
    await services.blobs.put(key, Buffer.from('x'), { contentType: 'text/plain' });
    await db`
      insert into doomed_blobs (app_id, blob_key, due_at)
      values (${app.app.uuid}, ${key}, now() - interval '1 hour' + ${at} * interval '1 minute')`;
  }
  const remove = async (key: string) => {
    if (key === keys[0]) throw new Error('The object is locked.');
    await services.blobs.remove(key);
  };
  const sweep = () => sweepBlobs({ db, blobs: { ...services.blobs, remove } });
  await assert.rejects(sweep(), /locked/);
  assert.equal((await sweep()).blobs, 1);
  assert.equal(await services.blobs.stat(keys[1] ?? ''), undefined);
  await db`update doomed_blobs set due_at = now() where blob_key = ${keys[0] ?? ''}`;
  assert.equal((await sweepBlobs(services)).blobs, 1);
});

test('blobs are deleted with their rows: immediately, or by the sweep after a cascade', async () => {
  const guest = await provision.user(app);
  const made = await api<FileBody>('POST', '/api/v1/files', {
    key: app.secretKey,
    body: { filename: 'a', content_type: 'text/plain', data: 'eA==', user: guest.id },
  });
  const key = (
    await db<[{ blobKey: string }]>`select blob_key from files where id in
    (select id from files where user_id = ${guest.uuid})`
  )[0].blobKey;
  assert.equal(made.status, 201);
  await api('DELETE', `/api/v1/users/${guest.id}`, { key: app.secretKey });
  assert.ok(await services.blobs.stat(key));
  assert.equal((await sweepBlobs(services)).blobs, 1);
  assert.equal(await services.blobs.stat(key), undefined);
  assert.equal((await db`select 1 from doomed_blobs`).length, 0);
  assert.deepEqual(await sweepBlobs(services), { blobs: 0, temporary: 0 });
});
