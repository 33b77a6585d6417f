import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, test } from 'node:test';
import { samplePdf as writeSamplePdf } from '../../../src/content/parse/sample-pdf.ts';
import { outputText, type TestExtraction } from '../../support/extractions.ts';
import { type ExtractorService, startExtractorService } from '../../support/extractor-service.ts';
import type { FileBody } from '../../support/files.ts';
import { type Json, knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

const samplePdf = (): Buffer => Buffer.from(writeSamplePdf());

/** Documents that another server reads, and what happens when it does not. */

const service: ExtractorService = await startExtractorService();
const open = (kind: string, seconds = 600): Promise<TestServer> =>
  startTestServer({
    env: {
      QUARRY_EXTRACTOR_URL: service.url,
      QUARRY_EXTRACTOR_KIND: kind,
      QUARRY_EXTRACTOR_KEY: 'extractor-key',
      QUARRY_EXTRACTOR_SECONDS: String(seconds),
    },
  });
const [docling, tika, hasty] = [await open('docling'), await open('tika'), await open('docling', 1)];
after(async () => {
  await docling.close();
  await tika.close();
  await hasty.close();
  await service.close();
});

const html = `<!DOCTYPE html><html><head><title>document</title><style>p { color: red }</style></head><body>
  <nav><a href="/a">First</a></nav><h2>Read elsewhere</h2><p onclick="x()">The harbour is <b>open</b>.</p>
  <script>steal()</script><table><tr><th>Ship</th></tr><tr><td>Ada</td></tr></table></body></html>`;

async function upload(server: TestServer, key: string, bytes: Uint8Array, type: string, name: string): Promise<string> {
  const response = await fetch(`${server.baseUrl}/api/v1/files/uploads`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': type, 'x-filename': name },
    body: new Uint8Array(bytes),
  });
  assert.equal(response.status, 201);
  return ((await response.json()) as FileBody).id;
}

async function extract(server: TestServer, bytes: Uint8Array, type: string, name: string) {
  const app = await server.provision.app();
  const file = await upload(server, app.secretKey, bytes, type, name);
  const created = await server.api<TestExtraction>('POST', '/api/v1/extractions', {
    key: app.secretKey,
    body: { file, destination_kind: 'storage' },
  });
  assert.equal(created.status, 201, created.text);
  const [output] = created.body.outputs;
  return { text: await outputText(output), metadata: output?.metadata ?? {} };
}

const extractPdf = (server: TestServer) => extract(server, samplePdf(), 'application/pdf', 'report.pdf');

test('docling-serve reads a PDF, its HTML becomes Markdown, and the metadata names it', async () => {
  service.html = html;
  service.received.length = 0;
  const { text, metadata } = await extractPdf(docling);
  assert.equal(
    text.trim(),
    '[First](/a)\n\n## Read elsewhere\n\nThe harbour is **open**.\n\n| Ship |\n| --- |\n| Ada |',
  );
  assert.deepEqual([metadata.reader, metadata.kind, metadata.title], ['docling', 'pdf', undefined]);
  const [request] = service.received;
  assert.equal(request?.path, 'POST /v1/convert/file');
  assert.equal(request?.headers['x-api-key'], 'extractor-key');
  assert.ok(request?.body.includes(samplePdf()), 'the bytes arrive unchanged');
});

test('Apache Tika reads a PDF', async () => {
  service.html = html.replace('>document<', '>The harbour<');
  service.received.length = 0;
  const { text, metadata } = await extractPdf(tika);
  assert.match(text, /## Read elsewhere\n\nThe harbour is \*\*open\*\*\./);
  assert.deepEqual([metadata.reader, metadata.kind, metadata.title], ['tika', 'pdf', 'The harbour']);
  assert.equal(service.received[0]?.path, 'PUT /tika');
  assert.ok(service.received[0]?.body.equals(samplePdf()));
});

test('a document of another type stays here', async () => {
  service.received.length = 0;
  const { text, metadata } = await extract(docling, Buffer.from('a,b\n1,2\n'), 'text/csv', 'table.csv');
  assert.match(text, /\| a \| b \|/);
  assert.equal(metadata.reader, undefined);
  assert.equal(service.received.length, 0);
});

const success = (document: unknown, status = 'success'): string =>
  JSON.stringify({ document, status, errors: [], processing_time: 0.1, timings: {} });
const returns =
  (status: number, type: string, body: string | Buffer, headers: Record<string, string> = {}) =>
  (response: ServerResponse): void => {
    response.writeHead(status, { 'content-type': type, ...headers }).end(body);
  };
const json = 'application/json';

const failures: [string, TestServer, (response: ServerResponse) => void][] = [
  ['an error', docling, returns(500, json, '{"detail":"no"}')],
  ['a wrong type', docling, returns(200, 'text/html', html)],
  ['a redirect', docling, returns(307, json, '', { location: `${service.url}/elsewhere` })],
  ['no text', docling, returns(200, json, success({ html_content: '<html><body></body></html>' }))],
  ['no document', docling, returns(200, json, '{"document":null,"status":"success"}')],
  ['no JSON', docling, returns(200, json, 'null')],
  ['a part', docling, returns(200, json, success({ html_content: html }, 'partial_success'))],
  ['too much', docling, returns(200, json, Buffer.alloc(33 * 1024 * 1024, 32))],
  ['nothing in time', hasty, () => {}],
  ['a broken connection', docling, (response) => response.destroy()],
  ['a compressed response', tika, returns(200, 'text/html', html, { 'content-encoding': 'gzip' })],
  ['nothing', tika, returns(204, 'text/html', '')],
  ['a document that it cannot read', tika, returns(422, 'text/plain', '')],
  ['another type', tika, returns(200, 'application/pdf', html)],
];
for (const [what, server, broken] of failures)
  test(`an extractor that returns ${what} leaves the document to this server`, async () => {
    service.received.length = 0;
    service.broken = broken;
    try {
      const { text, metadata } = await extractPdf(server);
      assert.ok(text.length > 20 && !text.includes('Read elsewhere'), text);
      assert.equal(metadata.reader, undefined);
      assert.equal(service.received.length, 1, 'it was asked once, and no redirect was followed');
    } finally {
      service.broken = undefined;
    }
  });

test('a document of a source names its reader', async () => {
  service.html = html;
  const world = await docling.provision.world();
  const app = knowledgeOf(docling, { key: world.app.secretKey });
  const source = await app.createSource({ org: world.org.id });
  const file = await upload(docling, world.app.secretKey, samplePdf(), 'application/pdf', 'report.pdf');
  const ingestion = await app.ingest(source, { file });
  assert.equal(ingestion.status, 'succeeded');
  const id = ingestion.metadata.document;
  const metadataOf = async () =>
    (await app.send<{ metadata: Json }>('GET', `/knowledge_documents/${id}`)).body.metadata;
  assert.equal((await metadataOf()).reader, 'docling');
});
