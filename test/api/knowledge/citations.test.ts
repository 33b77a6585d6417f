import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { startSite } from '../../support/fixture-site.ts';
import { type Json, knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';

const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
after(() => server.close());
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });
const run = { signal: new AbortController().signal } as never;

const prose = (word: string): string => `<p>${`A sentence of ordinary text about ${word}. `.repeat(60)}</p>`;
const manual = `<!doctype html><html><head><title>Manual</title></head><body><main><h1>Manual</h1>${prose('nothing')}
  <section id="start"><h2>Start<a class="headerlink" href="#start">¶</a></h2>${prose('kettles')}</section>
  <h2 id="größe">Size</h2>${prose('teapots')}
  <h3>No id</h3>${prose('saucers')}
  <dl><dt id="pour">pour(cup)<a class="headerlink" href="#pour">¶</a></dt><dd>${prose('pitchers')}</dd></dl>
  </main></body></html>`;

type Chunks = { data: { content: string; heading_path: string[]; fragment?: string }[] };

test('a passage of a web page has the fragment of its heading or term, even after its index was read again', async () => {
  const site = await startSite({ '/manual.html': manual });
  try {
    const payload = { url: `${site.origin}/manual.html` };
    const source = await app.createSource({ org: world.org.id, type: 'web/link', payload });
    const { status } = await app.ingest(source, { pull: true });
    assert.equal(status, 'succeeded');
    const linkOf = async (query: string) => {
      const [hit] = await app.search(source, { query, mode: 'fulltext', max_results: 1 });
      return {
        url: hit?.source_url,
        fragment: hit?.fragment,
        headings: (hit?.raw_content as Json | undefined)?.heading_path,
      };
    };
    const check = async () => {
      const { url } = payload;
      assert.deepEqual(await linkOf('kettles'), { url, fragment: 'start', headings: ['Start'] });
      assert.deepEqual(await linkOf('teapots'), { url, fragment: 'gr%C3%B6%C3%9Fe', headings: ['Size'] });
      assert.deepEqual(await linkOf('saucers'), { url, fragment: 'gr%C3%B6%C3%9Fe', headings: ['Size', 'No id'] });
      assert.deepEqual(await linkOf('pitchers'), { url, fragment: 'pour', headings: ['Size', 'No id'] });
      assert.deepEqual(await linkOf('nothing'), { url, fragment: undefined, headings: [] });
    };
    await check();

    const [document] = (await app.send<{ data: { id: string }[] }>('GET', `/knowledge_documents?source=${source}`)).body
      .data;
    const chunks = (await app.send<Chunks>('GET', `/knowledge_documents/${document?.id}/chunks`)).body.data;
    const places = [undefined, 'start', 'gr%C3%B6%C3%9Fe', 'pour'];
    assert.deepEqual([...new Set(chunks.map(({ fragment }) => fragment))], places);
    assert.ok(chunks.every(({ content }) => !content.includes('¶')));

    const client = new Client({ name: 'test', version: '1' });
    const requestInit = { headers: { 'x-api-key': world.app.secretKey } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${server.baseUrl}/mcp`), { requestInit }));
    const args = { source, query: 'kettles', max_results: 1 };
    const { content, structuredContent } = await client.callTool({ name: 'search_knowledge', arguments: args });
    await client.close();
    assert.match(JSON.stringify(content), /manual\.html#start\)/);
    const [passage] = (structuredContent as { passages: { url?: string }[] }).passages;
    assert.match(passage?.url ?? '', /manual\.html#start$/);

    const [key] = await server.db<{ appId: string; sourceId: string }[]>`
      select app_id, id as source_id from knowledge_sources order by created_at desc limit 1`;
    assert.ok(key);
    await server.db`update knowledge_indexes set analysis = 0 where source_id = ${key.sourceId}`;
    await server.server.work.tasks.compact_index?.(key, run);
    await check();
  } finally {
    await site.close();
  }
});
