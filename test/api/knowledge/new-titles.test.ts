import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Json, knowledgeOf, type TestIngestion } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';

/* Changes of a document's title or metadata without its content. */

const server = await startTestServer();
after(() => server.close());
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });
const org = world.org.id;

type Document = Json & { title: string; content_type: string; content_hash: string; version?: number };

async function change(document: string, body: Json): Promise<TestIngestion> {
  const started = await app.send<TestIngestion>('PATCH', `/knowledge_documents/${document}`, body);
  assert.equal(started.status, 201, started.text);
  return app.waitForIngestion(started.body.id);
}
const show = async (document: string) => (await app.send<Document>('GET', `/knowledge_documents/${document}`)).body;

test('a new title leaves the text, its type and its bytes as they are, is a version, and is found', async () => {
  const source = await app.createSource({ org, version_retention_days: 30 });
  const content = { data: '<h1>Tides</h1><p>The sea rises <b>twice</b> a day.</p>', content_type: 'text/html' };
  const { metadata } = await app.ingest(source, { content, title: 'Tides', metadata: { port: 'Brest' } });
  const document = metadata.document ?? '';
  const before = await show(document);
  const ended = await change(document, { title: 'Zugvogel' });
  assert.deepEqual([ended.status, ended.metadata.document, ended.stats.documents], ['succeeded', document, 1]);
  const now = await show(document);
  assert.deepEqual(
    [now.title, now.content_type, now.content_hash, now.metadata],
    ['Zugvogel', 'text/html', before.content_hash, { port: 'Brest' }],
  );
  assert.equal((await app.search(source, 'zugvogel'))[0]?.document, document);
  type Version = { version: number; title: string; content_hash: string };
  const versions = await app.send<{ data: Version[] }>('GET', `/knowledge_documents/${document}/versions`);
  assert.deepEqual(
    versions.body.data.map((each) => [each.version, each.title, each.content_hash]),
    [
      [2, 'Zugvogel', before.content_hash],
      [1, 'Tides', before.content_hash],
    ],
  );
  // The bytes that were pushed are still known.
  const again = await app.ingest(source, { content, dedupe: true });
  assert.deepEqual([again.metadata.document_reused, again.metadata.document], [true, document]);
});

test('metadata changes alone, also of a document from a file', async () => {
  const source = await app.createSource({ org });
  const data = Buffer.from('Sandbanks move with every storm.').toString('base64');
  const upload = { org, filename: 'banks.txt', content_type: 'text/plain', data };
  const file = (await app.send<{ id: string }>('POST', '/files', upload)).body.id;
  const document = (await app.ingest(source, { file, title: 'Banks' })).metadata.document ?? '';
  await change(document, { metadata: { year: 1912 } });
  const now = await show(document);
  assert.deepEqual([now.title, now.metadata, now.file], ['Banks', { year: 1912 }, file]);
  assert.match((await app.search(source, 'sandbanks'))[0]?.content ?? '', /every storm/);
});

test('a title that waits behind a new text keeps that text', async () => {
  const source = await app.createSource({ org });
  const document = await app.push(source, 'Old text.', { title: 'Old' });
  const path = `/knowledge_documents/${document}`;
  const long = 'A sentence about buoys and bells. '.repeat(20_000);
  assert.equal((await app.send('PATCH', path, { content: { data: long } })).status, 201);
  await change(document, { title: 'New' });
  const now = await show(document);
  assert.equal(now.title, 'New');
  assert.match((await app.search(source, 'buoys'))[0]?.content ?? '', /bells/);
});

test('without anything to change, with readers alone, or for those who only read the source, nothing changes', async () => {
  const source = await app.createSource({ org });
  const document = await app.push(source, 'Kept.', { title: 'Kept' });
  type Failure = { error: { fields: { field: string }[] } };
  for (const body of [{}, { acl: null }, { title: 'x', acl: null }]) {
    const refused = await app.send<Failure>('PATCH', `/knowledge_documents/${document}`, body);
    assert.equal(refused.status, 422, refused.text);
    assert.deepEqual(
      refused.body.error.fields.map(({ field }) => field),
      ['content', 'file'],
    );
  }
  const other = await server.provision.world();
  const { status } = await server.api('PATCH', `/api/v1/knowledge_documents/${document}`, {
    key: other.app.secretKey,
    body: { title: 'Taken' },
  });
  assert.equal(status, 404);
  assert.equal((await show(document)).title, 'Kept');
});
