import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openS3Objects, type S3Objects } from '../../src/blob/s3.ts';
import { findCredentialsFile } from '../../src/boot/credentials-file.ts';
import { callQuarry } from '../support/command.ts';
import type { FileBody } from '../support/files.ts';
import { sendRequest } from '../support/request.ts';
import { startS3Server } from '../support/s3-server.ts';
import { type ServedProcess, startServe } from '../support/serve.ts';

/*
 * Backups of a whole installation, with the embedded database, into a bucket and from it into an empty one.
 */
const directory = mkdtempSync(join(tmpdir(), 'quarry-backup-bucket-'));
chmodSync(directory, 0o755);
const dataDir = join(directory, 'data');
const marker = 'the words of this file are in no object of the bucket';

let s3: Awaited<ReturnType<typeof startS3Server>>;
let objects: S3Objects;
let server: ServedProcess;
let env: Record<string, string>;
let key: string;

before(async () => {
  s3 = await startS3Server();
  objects = openS3Objects(s3.options, '');
  env = {
    QUARRY_DATA_DIR: dataDir,
    QUARRY_LOG_LEVEL: 'error',
    QUARRY_BACKUP_KEY: '9d0c2a4f6b8e1d3f5a7c9e0b2d4f6a8c',
    QUARRY_BACKUP_S3_ENDPOINT: s3.options.endpoint ?? '',
    QUARRY_BACKUP_S3_ACCESS_KEY_ID: 'test',
    QUARRY_BACKUP_S3_SECRET_ACCESS_KEY: 'test',
    QUARRY_S3_PATH_STYLE: 'true',
  };
  server = await startServe(env);
  key = findCredentialsFile(dataDir)?.secret_key ?? '';
});
after(async () => {
  await server.stop();
  await objects.close();
  await s3.stop();
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
});

const url = 's3://blobs/installations/one';

async function upload(text: string): Promise<FileBody> {
  const { status, body } = await sendRequest<FileBody>(server.baseUrl, 'POST', '/api/v1/files', {
    key,
    body: { filename: 'a.txt', content_type: 'text/plain', data: Buffer.from(text).toString('base64') },
  });
  assert.equal(status, 201);
  return body;
}

async function backUp(...options: string[]) {
  const ended = await callQuarry(['backup', '--to', url, ...options], { env });
  assert.equal(ended.code, 0, ended.stderr);
  return ended;
}

async function listKeys(): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key: name } of objects.list()) keys.push(name);
  return keys.sort();
}

/** Backups are named after the second in which they are taken. */
async function nextSecond(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 1000 - (Date.now() % 1000)));
}

test('a backup in a bucket is encrypted, incremental, pruned, verified and restored', async () => {
  const kept = await upload(marker);
  const first = await backUp();
  assert.match(first.stdout, /Backup of .*: \d+ rows, 1 blob of .* in s3:\/\/blobs\/installations\/one\/20\d\d-/);
  assert.match(first.stderr, /root secret is not in this backup.*data\/secret/);
  assert.match(first.stderr, /QUARRY_BACKUP_KEY/);

  const afterFirst = await listKeys();
  const firstBlobs = afterFirst.filter((name) => name.includes('/blobs/'));
  assert.equal(firstBlobs.length, 1);
  for (const name of afterFirst) {
    const bytes = Buffer.from(
      await objects
        .read(name)
        .then((body) => body.toArray())
        .then((all) => Buffer.concat(all)),
    );
    assert.equal(bytes.subarray(0, 4).toString(), 'QBK1', name);
    assert.ok(!bytes.includes(marker), name);
  }

  // The second backup writes only the new blob.
  const written = await modifiedAt(firstBlobs[0] ?? '');
  const second = await upload('second');
  await nextSecond();
  await backUp();
  assert.equal(await modifiedAt(firstBlobs[0] ?? ''), written);
  assert.equal((await listKeys()).filter((name) => name.includes('/blobs/')).length, 2);

  // The third keeps itself and the second; the blob of the deleted file stays while a kept backup refers to it.
  const deleted = await sendRequest(server.baseUrl, 'DELETE', `/api/v1/files/${second.id}`, { key });
  assert.ok(deleted.status < 300, deleted.text);
  await nextSecond();
  const third = await backUp('--keep', '2');
  assert.match(third.stdout, /1 older removed/);
  assert.equal((await listKeys()).filter((name) => name.includes('/blobs/')).length, 2);
  await nextSecond();
  await backUp('--keep', '1');
  assert.deepEqual(
    (await listKeys()).filter((name) => name.includes('/blobs/')),
    firstBlobs,
  );
  const listed = await callQuarry(['backup', 'list', url], { env });
  assert.equal(listed.stdout.trim().split('\n').length, 1);

  assert.equal((await callQuarry(['backup', 'verify', url], { env })).code, 0);
  const otherKey = { ...env, QUARRY_BACKUP_KEY: '00112233445566778899aabbccddeeff' };
  const refused = await callQuarry(['backup', 'verify', url], { env: otherKey });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /QUARRY_BACKUP_KEY is not the key/);

  await restoreElsewhere(kept);
});

async function restoreElsewhere(file: FileBody): Promise<void> {
  const elsewhere = { ...env, QUARRY_DATA_DIR: join(directory, 'restored') };
  const withoutSecret = await callQuarry(['restore', url], { env: elsewhere });
  assert.equal(withoutSecret.code, 1);
  assert.match(withoutSecret.stderr, /root secret/);
  mkdirSync(elsewhere.QUARRY_DATA_DIR, { recursive: true });
  writeFileSync(join(elsewhere.QUARRY_DATA_DIR, 'secret'), readFileSync(join(dataDir, 'secret')), { mode: 0o600 });
  const restored = await callQuarry(['restore', url], { env: elsewhere });
  assert.equal(restored.code, 0, restored.stderr);
  const other = await startServe(elsewhere);
  try {
    const found = await sendRequest<FileBody>(other.baseUrl, 'GET', `/api/v1/files/${file.id}`, { key });
    const { pathname, search } = new URL(found.body.url);
    assert.equal((await sendRequest(other.baseUrl, 'GET', `${pathname}${search}`)).text, marker);
  } finally {
    await other.stop();
  }
}

async function modifiedAt(name: string): Promise<number | undefined> {
  for await (const entry of objects.list(name)) return entry.modifiedAt.getTime();
  return undefined;
}

test('a bucket without a key, and wrong places, are refused before anything is written', async () => {
  const { QUARRY_BACKUP_KEY: _none, ...withoutKey } = env;
  const keyless = await callQuarry(['backup', '--to', 's3://blobs/other'], { env: withoutKey });
  assert.match(keyless.stderr, /set QUARRY_BACKUP_KEY/);
  for (const args of [
    ['backup'],
    ['backup', 'x', '--to', url],
    ['backup', 'x', '--keep', '2'],
    ['backup', '--to', url, '--keep', '0'],
  ])
    assert.equal((await callQuarry(args, { env })).code, 2, args.join(' '));
  const nowhere = await callQuarry(['backup', '--to', 'https://blobs/a'], { env });
  assert.match(nowhere.stderr, /write s3:\/\/bucket\/prefix/);
  const empty = await callQuarry(['restore', 's3://blobs/none'], {
    env: { ...env, QUARRY_DATA_DIR: join(directory, 'none') },
  });
  assert.match(empty.stderr, /no complete backup/);
  assert.ok((await listKeys()).every((name) => name.startsWith('installations/one/')));
});
