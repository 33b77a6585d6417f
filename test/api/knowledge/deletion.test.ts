import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { htmlPage, type SiteResponse, startSite } from '../../support/fixture-site.ts';
import { knowledgeOf, type TestIngestion } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';

const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
after(() => server.close());
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });
const org = { org: world.org.id };

type Listed = { data: { id: string; title?: string; source_url?: string }[] };
const documentsOf = async (source: string) =>
  (await app.send<Listed>('GET', `/knowledge_documents?source=${source}`)).body.data;
const startPull = async (source: string) => {
  const answer = await app.send<TestIngestion>('POST', `/knowledge_sources/${source}/ingest`, { pull: true });
  assert.equal(answer.status, 201, answer.text);
  return answer.body.id;
};

test('a document that is deleted during its replacement stays deleted', async () => {
  const source = await app.createSource(org);
  for (let round = 0; round < 3; round++) {
    const document = await app.push(source, `Round ${round} of the walrus.`);
    const data = `The walrus returns in round ${round}.\n\n`.repeat(20_000);
    const replaced = await app.send<TestIngestion>('PATCH', `/knowledge_documents/${document}`, { content: { data } });
    assert.equal((await app.send('DELETE', `/knowledge_documents/${document}`)).status, 204);
    const ended = await app.waitForIngestion(replaced.body.id);
    assert.deepEqual([ended.status, ended.error?.code], ['failed', 'not_found']);
    assert.equal((await app.send('GET', `/knowledge_documents/${document}`)).status, 404);
    assert.deepEqual(await documentsOf(source), []);
    assert.deepEqual(await app.search(source, { query: 'walrus', mode: 'fulltext' }), []);
  }
});

test('a document that is deleted during a pull stays deleted until the next pull', async () => {
  let version = 1;
  let held: { response: Parameters<SiteResponse>[1] } | undefined;
  let holdNext = false;
  const came = { resolve: () => {} };
  const site = await startSite({
    '/page': (_request, response) => {
      response.setHeader('content-type', 'text/html');
      if (holdNext) {
        held = { response };
        came.resolve();
      } else response.end(htmlPage(`Page ${version}`));
    },
  });
  try {
    const source = await app.createSource({ ...org, type: 'scrape/site', payload: { url: `${site.origin}/page` } });
    assert.equal((await app.ingest(source, { pull: true })).status, 'succeeded');
    const [document] = await documentsOf(source);
    version = 2;
    const asked = new Promise<void>((resolve) => {
      came.resolve = resolve;
    });
    holdNext = true;
    const pull = await startPull(source);
    await asked;
    holdNext = false;
    assert.equal((await app.send('DELETE', `/knowledge_documents/${document?.id}`)).status, 204);
    held?.response.end(htmlPage('Page 2'));
    assert.equal((await app.waitForIngestion(pull)).status, 'succeeded');
    assert.deepEqual(await documentsOf(source), []);
    assert.equal((await app.ingest(source, { pull: true })).status, 'succeeded');
    assert.deepEqual(
      (await documentsOf(source)).map(({ title }) => title),
      ['Page 2'],
    );
  } finally {
    await site.close();
  }
});

test("a file's document that is deleted while a pull reads the file again stays deleted", async () => {
  const upload = async (text: string) =>
    (
      await app.send<{ id: string }>('POST', '/files', {
        filename: 'f.md',
        content_type: 'text/markdown',
        data: Buffer.from(text).toString('base64'),
        ...org,
      })
    ).body.id;
  const source = await app.createSource({ ...org, type: 'file/document', payload: { file: await upload('# One') } });
  assert.equal((await app.ingest(source, { pull: true })).status, 'succeeded');
  const [document] = await documentsOf(source);
  const large = await upload(`# Two\n\n${'The walrus returns.\n\n'.repeat(50_000)}`);
  assert.equal((await app.send('PATCH', `/knowledge_sources/${source}`, { payload: { file: large } })).status, 200);
  const pull = await startPull(source);
  assert.equal((await app.send('DELETE', `/knowledge_documents/${document?.id}`)).status, 204);
  const ended = await app.waitForIngestion(pull);
  assert.deepEqual([ended.status, ended.error?.code], ['failed', 'not_found']);
  assert.deepEqual(await documentsOf(source), []);
});
