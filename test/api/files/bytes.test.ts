import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { production } from '../../../src/db/database.ts';
import { writeFile } from '../../../src/files/write.ts';
import { newUuid } from '../../../src/lib/ids.ts';
import { bytesOf, type FileBody, pixel } from '../../support/files.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startS3Server } from '../../support/s3-server.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

const clock = new ManualClock();
const server = await startTestServer({ clock });
after(() => server.close());
const app = await server.provision.app();
const bytes = bytesOf(200_000);

async function uploaded(from: TestServer, key: string, contents: Buffer, contentType: string, share = false) {
  const answer = await from.api<FileBody>('POST', '/api/v1/files', {
    key,
    body: { filename: 'a.bin', content_type: contentType, data: contents.toString('base64'), share },
  });
  assert.equal(answer.status, 201);
  return answer.body;
}

const file = await uploaded(server, app.secretKey, bytes, 'application/octet-stream');
const image = await uploaded(server, app.secretKey, bytes, 'image/png', true);

for (const [name, url] of [
  ['the signed URL', file.url],
  ['a capability URL', image.share_url ?? ''],
] as const)
  describe(`bytes by ${name}`, () => {
    const get = (headers: Record<string, string> = {}, method = 'GET') => fetch(url, { headers, method });
    const body = async (answer: Response) => Buffer.from(await answer.arrayBuffer());

    test('are sent whole with their length and tag', async () => {
      const answer = await get();
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get('content-length'), String(bytes.length));
      assert.equal(answer.headers.get('accept-ranges'), 'bytes');
      assert.equal(answer.headers.get('etag'), `"${file.checksum}"`);
      assert.ok((await body(answer)).equals(bytes));
    });

    test('are sent in ranges', async () => {
      for (const [range, start, end] of [
        ['bytes=0-0', 0, 1],
        ['bytes=100-70000', 100, 70_001],
        ['bytes=199990-', 199_990, 200_000],
        ['bytes=-5', 199_995, 200_000],
        ['bytes=0-999999', 0, 200_000],
      ] as const) {
        const answer = await get({ range });
        assert.equal(answer.status, 206, range);
        assert.equal(answer.headers.get('content-range'), `bytes ${start}-${end - 1}/200000`);
        assert.equal(answer.headers.get('content-length'), String(end - start));
        assert.ok((await body(answer)).equals(bytes.subarray(start, end)), range);
      }
      for (const range of ['bytes=5-2', 'lines=1-2', 'bytes=0-1,5-6']) assert.equal((await get({ range })).status, 200);
    });

    test('a range past the end is 416 with the size', async () => {
      const answer = await get({ range: 'bytes=200000-' });
      assert.equal(answer.status, 416);
      assert.equal(answer.headers.get('content-range'), 'bytes */200000');
    });

    test('are not sent again to a client that has them', async () => {
      const answer = await get({ 'if-none-match': `W/"${file.checksum}"` });
      assert.equal(answer.status, 304);
      assert.equal(answer.headers.get('etag'), `"${file.checksum}"`);
      assert.equal((await body(answer)).length, 0);
      assert.equal((await get({ 'if-none-match': '"other"' })).status, 200);
    });

    test('If-Range gives the range only of the version that it names', async () => {
      const range = 'bytes=0-9';
      assert.equal((await get({ range, 'if-range': `"${file.checksum}"` })).status, 206);
      assert.equal((await get({ range, 'if-range': '"other"' })).status, 200);
    });

    test('HEAD has the headers of GET and no body', async () => {
      const [head, whole] = [await get({}, 'HEAD'), await get()];
      assert.equal(head.status, 200);
      for (const [header, value] of whole.headers)
        if (!['date', 'x-request-id', 'connection', 'keep-alive'].includes(header))
          assert.equal(head.headers.get(header), value, header);
      assert.equal((await body(head)).length, 0);
      assert.equal((await get({ range: 'bytes=0-1' }, 'HEAD')).status, 200);
      assert.equal((await get({ 'if-none-match': `"${file.checksum}"` }, 'HEAD')).status, 304);
    });
  });

test('a signed URL ends after an hour, and GET of the file gives a fresh one', async () => {
  const old = await uploaded(server, app.secretKey, pixel, 'image/png', true);
  clock.advance(3_599_000);
  assert.equal((await fetch(old.url)).status, 200);
  clock.advance(2_000);
  assert.equal((await fetch(old.url)).status, 403);
  assert.equal((await fetch(old.share_url ?? '')).status, 200);
  const fresh = await server.api<FileBody>('GET', `/api/v1/files/${old.id}`, { key: app.secretKey });
  assert.equal((await fetch(fresh.body.url)).status, 200);
});

describe('on S3', () => {
  let s3: Awaited<ReturnType<typeof startS3Server>>;
  let onS3: TestServer;
  before(async () => {
    s3 = await startS3Server();
    onS3 = await startTestServer({ env: onS3Env() });
  });

  function onS3Env(): Record<string, string> {
    const { bucket, endpoint = '', credentials } = s3.options;
    return {
      QUARRY_BLOB_STORE: 's3',
      QUARRY_S3_BUCKET: bucket,
      QUARRY_S3_ENDPOINT: endpoint,
      QUARRY_S3_PATH_STYLE: 'true',
      AWS_ACCESS_KEY_ID: credentials?.accessKeyId ?? '',
      AWS_SECRET_ACCESS_KEY: credentials?.secretAccessKey ?? '',
    };
  }

  after(async () => {
    await onS3.close();
    await s3.stop();
  });

  test('the download URL is the store’s own, and capability URLs stream through us', async () => {
    const { secretKey } = await onS3.provision.app();
    const stored = await uploaded(onS3, secretKey, bytes, 'image/svg+xml', true);
    const url = new URL(stored.url);
    assert.equal(url.origin, s3.options.endpoint);
    assert.equal(url.searchParams.get('response-content-type'), 'image/svg+xml');
    assert.equal(url.searchParams.get('response-content-disposition'), 'attachment; filename=a.bin');
    assert.ok(Buffer.from(await (await fetch(url)).arrayBuffer()).equals(bytes));
    const shared = await fetch(stored.share_url ?? '', { redirect: 'manual', headers: { range: 'bytes=10-19' } });
    assert.equal(shared.status, 206);
    assert.ok(Buffer.from(await shared.arrayBuffer()).equals(bytes.subarray(10, 20)));
    assert.equal((await onS3.api('DELETE', `/api/v1/files/${stored.id}`, { key: secretKey })).status, 204);
    assert.equal((await fetch(url)).status, 404);
  });

  test('the store’s own URLs ask for the same type and disposition as ours', async () => {
    const { secretKey } = await onS3.provision.app();
    const ours = await startTestServer({
      env: { ...onS3Env(), QUARRY_S3_PRESIGN: 'false' },
      beside: onS3,
    });
    try {
      for (const [filename, type] of [
        ['page.html', 'text/html; charset=utf-8'],
        ['drawing.svg', 'image/svg+xml'],
        ['photo.png', 'image/png'],
        ['Übung "1"; a=b.pdf', 'application/pdf'],
        ['script.js', 'text/javascript'],
      ] as const) {
        const body = { filename, content_type: type, data: 'YWJj' };
        const made = await onS3.api<FileBody>('POST', '/api/v1/files', { key: secretKey, body });
        // The tests' own S3 server ignores what a signed URL asks of the answer; S3 does what it says.
        const asked = new URL(made.body.url).searchParams;
        const again = await ours.api<FileBody>('GET', `/api/v1/files/${made.body.id}`, { key: secretKey });
        assert.ok(again.body.url.startsWith(ours.baseUrl), again.body.url);
        const fromUs = await fetch(again.body.url);
        for (const header of ['content-type', 'content-disposition'])
          assert.equal(asked.get(`response-${header}`), fromUs.headers.get(header), `${filename} ${header}`);
        assert.match(fromUs.headers.get('content-disposition') ?? '', /^(inline|attachment); filename=/);
      }
    } finally {
      await ours.close();
    }
  });
});

test('the owners of a new file come from their columns alone, whatever else the row has', async () => {
  const { db, blobs, log } = server.services;
  const row = { orgId: null, teamId: null, userId: null, agentId: null, id: newUuid(), filename: 'owner', size: 7 };
  const contents = { id: newUuid(), bytes: Buffer.from('abc'), filename: 'new.txt', contentType: 'text/plain' };
  const scope = { appId: app.app.uuid, sandboxId: production };
  const written = await writeFile({ db, blobs, log, imageSize: async () => undefined }, scope, contents, row);
  assert.deepEqual([written.id, written.filename, written.size], [contents.id, 'new.txt', 3]);
});
