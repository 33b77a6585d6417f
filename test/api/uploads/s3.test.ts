import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, test } from 'node:test';
import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { sweepBlobs } from '../../../src/files/sweep.ts';
import { openBreakingProxy } from '../../support/breaking-proxy.ts';
import { bytesOf, type FileBody } from '../../support/files.ts';
import { startS3Server } from '../../support/s3-server.ts';
import { startTestServer } from '../../support/server.ts';
import { uploadRequests, uploadWithClient } from '../../support/uploads.ts';

const s3 = await startS3Server();
const { bucket, endpoint = '' } = s3.options;
const env = {
  QUARRY_BLOB_STORE: 's3',
  QUARRY_S3_BUCKET: bucket,
  QUARRY_S3_ENDPOINT: endpoint,
  QUARRY_S3_PATH_STYLE: 'true',
  AWS_ACCESS_KEY_ID: 'test',
  AWS_SECRET_ACCESS_KEY: 'test',
};
const server = await startTestServer({ env });
const proxy = await openBreakingProxy(server.baseUrl);
const client = new S3Client({
  region: 'us-east-1',
  endpoint,
  forcePathStyle: true,
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
});
after(async () => {
  client.destroy();
  await proxy.close();
  await server.close();
  await s3.stop();
});
const { api, provision, db, services } = server;
const app = await provision.app();
const key = { key: app.secretKey };

const partialObjects = async () =>
  (await client.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: 'partial/' }))).KeyCount;

test('on S3 the bytes go through multipart uploads, and bytes from broken connections are kept', async () => {
  const bytes = bytesOf(19_000_000);
  proxy.breakAfter = [1_000_000, 9_500_000];
  const id = await uploadWithClient(bytes, {
    endpoint: `${proxy.url}/api/v1/uploads`,
    headers: { 'x-api-key': app.secretKey },
    metadata: { filename: 'a.bin', filetype: 'application/octet-stream' },
  });
  assert.deepEqual(proxy.breakAfter, []);
  const { body: file } = await api<FileBody>('GET', `/api/v1/files/${id}`, key);
  assert.equal(file.checksum, createHash('sha256').update(bytes).digest('hex'));
  assert.ok(Buffer.from(await (await fetch(file.url)).arrayBuffer()).equals(bytes));
  await sweepBlobs({ db, blobs: services.blobs });
  assert.deepEqual([await partialObjects(), (await db`select 1 from doomed_blobs`).length], [0, 0]);
});

test('another process continues an upload on S3 and reads its bytes once for their checksum', async () => {
  const second = await startTestServer({ env, beside: server });
  try {
    const bytes = bytesOf(9_000_000);
    const { body: upload } = await uploadRequests(api).create(key, bytes.length);
    const there = uploadRequests(second.api);
    assert.equal((await uploadRequests(api).append(key, upload.id, 0, bytes.subarray(0, 8_500_000))).status, 204);
    assert.equal((await there.append(key, upload.id, 8_500_000, bytes.subarray(8_500_000))).status, 204);
    const { body: file } = await api<FileBody>('GET', `/api/v1/files/${upload.file}`, key);
    assert.equal(file.checksum, createHash('sha256').update(bytes).digest('hex'));
  } finally {
    await second.close();
  }
});

test('a deleted upload leaves no object', async () => {
  const { create, append } = uploadRequests(api);
  const { body: upload } = await create(key, 12_000_000);
  assert.equal((await append(key, upload.id, 0, bytesOf(9_000_000))).headers.get('upload-offset'), '9000000');
  const { body: small } = await create(key, 9_000_000);
  await append(key, small.id, 0, bytesOf(1_000));
  assert.ok(((await partialObjects()) ?? 0) > 0);
  for (const { id } of [upload, small]) assert.equal((await api('DELETE', `/api/v1/uploads/${id}`, key)).status, 204);
  await sweepBlobs({ db, blobs: services.blobs });
  assert.equal(await partialObjects(), 0);
});
