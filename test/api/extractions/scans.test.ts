import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ParserPool } from '../../../src/content/parse/pool/pool.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { extractUrl, outputText, type TestExtraction } from '../../support/extractions.ts';
import { type FixtureSite, startSite } from '../../support/fixture-site.ts';
import { knowledgeOf, type TestIngestion } from '../../support/knowledge.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { bookOf, drawPicture } from '../../support/scans.ts';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const sentence = 'The harbour master counts the ships that come and go with every tide.';
const pageCount = 2_000;
/** Long enough to recognise a page on a slow machine. The parser rests between pages, or it would be busy all the time. */
const deadlineMs = 12_000;
const workerFile = fileURLToPath(new URL('../../support/resting-parser.ts', import.meta.url));
const parser = new ParserPool({
  ...{ workers: 1, memoryMb: 512, deadlineMs, jobDeadlineMs: deadlineMs },
  ...{ ocr: { languages: ['eng'] }, log: createLogger('error'), workerFile },
});

let server: TestServer;
let app: TestApp;
let site: FixtureSite;
let scan: Uint8Array;
let longScan: Uint8Array;

before(async () => {
  server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8' }, parser });
  app = await server.provision.app();
  const lines = [...Array(6).keys()].map((row) => `BT /F1 11 Tf 60 ${740 - row * 17} Td (${sentence}) Tj ET`);
  const page = await drawPicture(lines.join('\n'), 170);
  scan = bookOf([lines.join('\n'), page]);
  // One line a page: even a busy machine reads some of them in time.
  const short = await drawPicture(lines[0] ?? '', 90);
  longScan = bookOf(Array.from({ length: pageCount }, () => short));
  site = await startSite({ '/scan.pdf': scan, '/long.pdf': longScan });
});
after(async () => {
  await server.close();
  await parser.close();
  await site.close();
});

async function upload(bytes: Uint8Array, to = server, key = app.secretKey): Promise<string> {
  const { status, body, text } = await to.api<{ id: string }>('POST', '/api/v1/files', {
    key,
    body: { filename: 'scan.pdf', content_type: 'application/pdf', data: Buffer.from(bytes).toString('base64') },
  });
  assert.equal(status, 201, text);
  return body.id;
}

test('the output of a scan names the recognised pages and their certainty, for a file and for a link', async (t) => {
  // A server of its own with the usual limits, which a busy machine keeps.
  const patient = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
  t.after(() => patient.close());
  const { secretKey: key } = await patient.provision.app();
  const created = await patient.api<TestExtraction>('POST', '/api/v1/extractions', {
    key,
    body: { file: await upload(scan, patient, key), destination_kind: 'storage' },
  });
  assert.equal(created.status, 201, created.text);
  const linked = await extractUrl(patient, key, { url: `${site.origin}/scan.pdf`, mode: 'link' });
  for (const [output] of [created.body.outputs, linked.outputs]) {
    assert.deepEqual(output?.ocr?.pages, [2]);
    assert.ok((output.ocr?.confidence ?? 0) > 0.8);
    assert.equal(output.truncated, false);
    assert.equal((await outputText(output)).split(sentence).length, 13);
  }
});

test('a long scan times out within a request, which says how many pages were read', async () => {
  const { status, body } = await server.api<ErrorBody>('POST', '/api/v1/extractions', {
    key: app.secretKey,
    body: { file: await upload(longScan), destination_kind: 'storage' },
  });
  assert.equal(status, 504);
  assert.equal(body.error.code, 'timeout');
  assert.match(body.error.message, /too long for 12 seconds: \d+ of 2000 pages were read/);
});

test('a link to a long scan keeps the pages that were read and says where it stopped', async () => {
  const { outputs, state } = await extractUrl(server, app.secretKey, { url: `${site.origin}/long.pdf`, mode: 'link' });
  assert.equal(state, 'done');
  assert.equal(outputs[0]?.truncated, true);
  assert.match(String(outputs[0]?.metadata.truncated), /^pages \d+ to 2000: 12 seconds were not enough$/);
});

test('a knowledge source reads a long scan in a job, shows its progress and keeps what it read', async () => {
  const knowledge = knowledgeOf(server, { key: app.secretKey });
  const source = await knowledge.createSource({
    type: 'knowledge/documents',
    org: (await server.provision.org(app)).id,
  });
  const started = await knowledge.send<TestIngestion>('POST', `/knowledge_sources/${source}/ingest`, {
    file: await upload(longScan),
  });
  assert.ok(['pending', 'running'].includes(started.body.status), started.text);
  const seen: unknown[] = [];
  await until(async () => {
    const { body } = await knowledge.send<TestIngestion>('GET', `/knowledge_ingestions/${started.body.id}`);
    if (body.stats.progress !== undefined) seen.push(body.stats.progress);
    return !['pending', 'running'].includes(body.status);
  });
  const ended = await knowledge.waitForIngestion(started.body.id);
  assert.equal(ended.status, 'succeeded', JSON.stringify(ended.error));
  assert.ok(seen.length > 0, 'progress was shown');
  const { pages_read, pages_total } = seen.at(-1) as { pages_read: number; pages_total: number };
  assert.ok(pages_read > 0 && pages_read < pages_total && pages_total === pageCount);
  assert.equal(ended.stats.progress, undefined);
  assert.ok((ended.metadata.ocr as { pages: number[] }).pages.length >= pages_read);
  const { body: document } = await knowledge.send<{ metadata: { truncated: string[] } }>(
    'GET',
    `/knowledge_documents/${ended.metadata.document}`,
  );
  assert.match(document.metadata.truncated[0] ?? '', /^pages \d+ to 2000: 12 seconds were not enough$/);
  assert.ok((await knowledge.search(source, 'harbour master')).length > 0);
});
