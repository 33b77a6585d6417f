import assert from 'node:assert/strict';
import { unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { checkFiles, type Finding, WrongBlobStoreError } from '../../../src/files/fsck.ts';
import { newUuid } from '../../../src/lib/ids.ts';
import type { FileBody } from '../../support/files.ts';
import { startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const { api, provision, db, services, dataDir } = server;
const app = await provision.app();

async function createFile(): Promise<{ id: string; path: string; key: string }> {
  const { body } = await api<FileBody>('POST', '/api/v1/files', {
    key: app.secretKey,
    body: { filename: 'a', content_type: 'text/plain', data: 'aGVsbG8=' },
  });
  const [row] = await db<[{ blobKey: string }]>`select blob_key from files order by created_at desc, id desc limit 1`;
  return { id: body.id, key: row.blobKey, path: pathOf(row.blobKey) };
}

function pathOf(key: string): string {
  const [folder = '', name = ''] = key.split('/');
  return join(dataDir, 'blobs', folder, name.slice(-2), name);
}

async function fsck(repair: boolean, now = new Date()) {
  const findings: Finding[] = [];
  const report = await checkFiles({ db, blobs: services.blobs, now }, repair, (finding) => findings.push(finding));
  return { report, findings: findings.map(({ kind, file, repair: done }) => [kind, file, done]) };
}

test('an intact store has no findings, even while a blob is being written', async () => {
  await createFile();
  await services.blobs.put(`${app.app.uuid}/${newUuid()}`, Buffer.from('young'), { contentType: 'text/plain' });
  const { report } = await fsck(true);
  assert.deepEqual(report, { files: 1, blobs: 2, findings: 0, unrepaired: 0 });
});

test('missing, changed and orphaned blobs are found, and repaired where possible', async () => {
  const later = new Date(Date.now() + 2 * 60 * 60 * 1_000);
  const [lost, longer, changed] = [await createFile(), await createFile(), await createFile()];
  unlinkSync(lost.path);
  writeFileSync(longer.path, 'hello and more');
  writeFileSync(changed.path, 'jello');
  utimesSync(changed.path, 0, 0);
  const byKind = (findings: unknown[][]) => findings.map((finding) => finding.join(' ')).sort();
  const wrong = await fsck(false, later);
  assert.deepEqual(byKind(wrong.findings), [
    `checksum_mismatch ${changed.id} `,
    `missing_blob ${lost.id} `,
    `size_mismatch ${longer.id} `,
    'unreferenced_blob  ',
  ]);
  assert.equal(wrong.report.unrepaired, 4);
  const repaired = await fsck(true, later);
  assert.deepEqual(byKind(repaired.findings), [
    `checksum_mismatch ${changed.id} left`,
    `missing_blob ${lost.id} file_deleted`,
    `size_mismatch ${longer.id} left`,
    'unreferenced_blob  blob_deleted',
  ]);
  assert.equal(repaired.report.unrepaired, 2);
  assert.equal((await api('GET', `/api/v1/files/${lost.id}`, { key: app.secretKey })).status, 404);
  for (const { id } of [longer, changed]) await api('DELETE', `/api/v1/files/${id}`, { key: app.secretKey });
  assert.equal((await fsck(false, later)).report.findings, 0);
});

test('a store where most blobs are missing is taken for the wrong one and left alone', async () => {
  const files = [];
  for (let index = 0; index < 12; index++) files.push(await createFile());
  for (const { path } of files) unlinkSync(path);
  await assert.rejects(fsck(true), WrongBlobStoreError);
  assert.equal((await fsck(false)).report.findings, 12);
});
