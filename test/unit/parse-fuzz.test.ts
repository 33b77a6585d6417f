import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../../src/lib/log.ts';
import { fuzz } from '../fuzz/fuzz.ts';
import { sampleDocuments } from '../support/documents.ts';
import { samplePictures } from '../support/pictures.ts';
import { sampleScans } from '../support/scans.ts';

test('damaged files of every format end as a document or a plain reason, and never take the server with them', async () => {
  const pictures = await samplePictures();
  const documents = [...sampleDocuments(), ...(await sampleScans()), ...pictures];
  const report = await fuzz({
    documents,
    pictures: pictures.length,
    files: documents.length * 2,
    seed: 20_240_131,
    deadlineMs: 20_000,
    memoryMb: 512,
    log: createLogger('silent'),
  });
  assert.deepEqual(report.problems, []);
  assert.equal(report.files, documents.length * 2);
});
