import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openDirectory } from '../../src/backup/archive.ts';
import { Progress } from '../../src/backup/progress.ts';
import { takeBackup } from '../../src/backup/take.ts';
import { verifyBackup } from '../../src/backup/verify.ts';
import { checkFiles } from '../../src/files/fsck.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createTestDatabase } from '../support/database.ts';
import { pixel } from '../support/files.ts';
import { knowledgeOf } from '../support/knowledge.ts';
import { type ApiResponse, startTestServer } from '../support/server.ts';
import { metadataOf, offsetType, tus } from '../support/uploads.ts';

/* The directories of file contents and of a backup are small file systems that become full and read-only. */
const dataDir = mkdtempSync(join(tmpdir(), 'quarry-disk-full-'));
const blobs = join(dataDir, 'blobs');
const backups = join(dataDir, 'backups');
for (const directory of [blobs, backups]) mkdirSync(directory);
const mount = (...args: string[]) => spawnSync('mount', args, { stdio: 'ignore' }).status === 0;
const isMounted =
  process.getuid?.() === 0 &&
  [blobs, backups].every((directory) => mount('-t', 'tmpfs', '-o', 'size=4m,mode=700', 'tmpfs', directory));
const skip = isMounted ? false : 'it mounts a file system, which needs root';

const database = await createTestDatabase();
const server = await startTestServer({
  installed: { ...database, dataDir, secret: randomBytes(32).toString('hex') },
  logLevel: 'silent',
});
after(async () => {
  await server.close();
  if (isMounted) spawnSync('umount', [blobs, backups]);
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
  await database.drop();
});
const { api, provision } = server;
const app = await provision.app();
const key = app.secretKey;
const user = await provision.user(app);
const org = await provision.org(app);
const knowledge = knowledgeOf(server, { key });

const bytes = randomBytes(90_000);
const data = bytes.toString('base64');
const text = 'Sentences that are long enough to be a document. '.repeat(2_000);

type Write = { name: string; send(): Promise<ApiResponse<{ id: string; error: { code: string } }>>; done: number };

/** Every request that stores bytes. */
async function listWrites(): Promise<Write[]> {
  const api_ = api<{ id: string; url: string; error: { code: string } }>;
  const document = await api_('POST', '/api/v1/files', {
    key,
    body: { filename: 'a.txt', content_type: 'text/plain', data: Buffer.from(text).toString('base64') },
  });
  assert.equal(document.status, 201);
  const agent = await api_('POST', '/api/v1/agents', { key, body: { name: 'Agent', org: org.id } });
  const link = await api_('POST', '/api/v1/files/upload_urls', {
    key,
    body: { filename: 'b.bin', content_type: 'application/octet-stream' },
  });
  const { pathname, search } = new URL(link.body.url);
  const upload = await api_('POST', '/api/v1/uploads', {
    key,
    headers: {
      ...tus,
      'upload-length': String(bytes.length),
      'upload-metadata': metadataOf({ filename: 'a.bin', content_type: 'application/octet-stream' }),
    },
  });
  assert.equal(upload.status, 201);
  const picture = { filename: 'p.png', mime_type: 'image/png', data: pixel.toString('base64') };
  const extraction = { file: document.body.id, destination_kind: 'storage' };
  return [
    {
      name: 'an upload in JSON',
      done: 201,
      send: () => api_('POST', '/api/v1/files', { key, body: { filename: 'a', content_type: 'a/b', data } }),
    },
    {
      name: 'an upload of raw bytes',
      done: 201,
      send: () =>
        api_('POST', '/api/v1/files/uploads', {
          key,
          body: bytes,
          headers: { 'content-type': 'application/octet-stream', 'x-filename': 'a.bin' },
        }),
    },
    {
      name: 'an upload by a URL',
      done: 201,
      send: () =>
        api_('PUT', pathname + search, { body: bytes, headers: { 'content-type': 'application/octet-stream' } }),
    },
    {
      name: 'a resumable upload',
      done: 204,
      send: async () => {
        const head = await api('HEAD', `/api/v1/uploads/${upload.body.id}`, { key, headers: tus });
        const offset = Number(head.headers.get('upload-offset'));
        return api_('PATCH', `/api/v1/uploads/${upload.body.id}`, {
          key,
          body: bytes.subarray(offset),
          headers: { ...tus, ...offsetType, 'upload-offset': String(offset) },
        });
      },
    },
    {
      name: 'the picture of an agent',
      done: 200,
      send: () => api_('PATCH', `/api/v1/agents/${agent.body.id}`, { key, body: { profile_picture: picture } }),
    },
    {
      name: 'the logo of an organisation',
      done: 200,
      send: () => api_('PATCH', `/api/v1/orgs/${org.id}`, { key, body: { logo: picture } }),
    },
    {
      name: 'an extraction into files',
      done: 201,
      send: () => api_('POST', '/api/v1/extractions', { key, body: extraction }),
    },
    {
      name: 'an extraction into the config',
      done: 201,
      send: () =>
        api_('POST', '/api/v1/extractions', {
          key,
          body: { ...extraction, destination_kind: 'config', destination_path: 'a', agent: agent.body.id },
        }),
    },
  ];
}

/** Leaves no byte free. */
function fill(directory: string): void {
  const file = openSync(join(directory, 'filler'), 'a');
  try {
    for (const size of [4_096, 1]) for (;;) if (!fits(file, size)) break;
  } finally {
    closeSync(file);
  }
}

function fits(file: number, size: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(size)) === size;
  } catch {
    return false;
  }
}

for (const [what, damage, heal] of [
  ['full', () => fill(blobs), () => rmSync(join(blobs, 'filler'))],
  ['read-only', () => assert.ok(mount('-o', 'remount,ro', blobs)), () => assert.ok(mount('-o', 'remount,rw', blobs))],
] as const)
  test(`a ${what} disk returns 503 for every write, reads continue, and free space is enough to recover`, {
    skip,
  }, async (context) => {
    const writes = await listWrites();
    const kept = await api<{ id: string; url: string }>('POST', '/api/v1/files', {
      key,
      body: { filename: 'kept.txt', content_type: 'text/plain', data: Buffer.from('Kept.').toString('base64') },
    });
    const source = await knowledge.createSource({ org: org.id });
    const files = async () =>
      (await api<{ total_entries: number }>('GET', '/api/v1/files', { key })).body.total_entries;
    const before = await files();
    damage();
    let isDamaged = true;
    const mend = () => {
      if (isDamaged) heal();
      isDamaged = false;
    };
    context.after(mend);
    for (const { name, send } of writes) {
      const { status, body, headers, text: said } = await send();
      assert.deepEqual([name, status, body?.error?.code], [name, 503, 'unavailable'], said);
      assert.match(headers.get('retry-after') ?? '', /^\d+$/, name);
    }
    assert.equal(await files(), before, 'half of something was written');
    const { pathname, search } = new URL(kept.body.url);
    assert.equal((await api('GET', pathname + search)).text, 'Kept.');
    const put = await api('PUT', '/api/v1/kv/key', { key, body: { user: user.id, value: what } });
    assert.equal(put.status, 200);
    // A document that is pushed is stored in the database.
    await knowledge.push(source, text);
    mend();
    for (const { name, send, done } of writes) {
      const { status, text: said } = await send();
      assert.deepEqual([name, status], [name, done], said);
    }
    const later = new Date(Date.now() + 3 * 3_600_000);
    const { services, db } = server;
    const findings: unknown[] = [];
    await checkFiles({ db, blobs: services.blobs, now: later }, false, (finding) => findings.push(finding));
    assert.deepEqual(findings, []);
  });

test('a backup to a full disk leaves nothing behind, and succeeds when there is space', {
  skip,
}, async () => {
  const { directTarget, secrets, blobs: store } = server.services;
  const progress = new Progress(() => {});
  const deps = { target: directTarget, blobs: store, secrets, clock: systemClock, version: '0.0.0', progress };
  const target = join(backups, 'first');
  fill(backups);
  await assert.rejects(takeBackup(deps, target), { code: 'ENOSPC' });
  assert.deepEqual(readdirSync(backups), ['filler']);
  rmSync(join(backups, 'filler'));
  await takeBackup(deps, target);
  await verifyBackup(openDirectory(target), progress);
});
