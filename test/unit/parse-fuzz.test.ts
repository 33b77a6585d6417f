import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../../src/log.ts';
import { fuzz } from '../fuzz/fuzz.ts';
import { sampleDocuments } from '../support/documents.ts';
import { sampleScans } from '../support/scans.ts';

test('damaged files of every format end as a document or a plain reason, and never take the server with them', async () => {
  const documents = [...sampleDocuments(), ...(await sampleScans())];
  const report = await fuzz({
    documents,
    files: documents.length * 2,
    seed: 20_240_131,
    deadlineMs: 20_000,
    memoryMb: 512,
    log: createLogger('silent'),
  });
  assert.deepEqual(report.problems, []);
  assert.equal(report.files, documents.length * 2);
});
