import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Json, knowledgeOf } from '../../support/knowledge.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });
const org = { org: world.org.id };

type Position = { content: string; start_byte: number; end_byte: number; start_line: number; end_line: number };
type Hit = Position & {
  document: string;
  start_page?: number;
  end_page?: number;
  highlights?: { start: number; end: number; start_byte: number; end_byte: number }[];
  context?: Position;
};
type Facets = Record<string, { value: unknown; count: number }[]>;

async function search(source: string, body: Json) {
  const answer = await app.send<{ data: Hit[]; facets?: Facets }>('POST', `/knowledge_sources/${source}/search`, body);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

async function readBytes({ document }: Hit, { start_byte, end_byte }: { start_byte: number; end_byte: number }) {
  const slice = `unit=bytes&offset=${start_byte}&limit=${end_byte - start_byte}`;
  const { body } = await app.send<{ content: string }>('GET', `/knowledge_documents/${document}/content?${slice}`);
  return body.content;
}

const section = (name: string) => `# ${name}\n\n${`A sentence of ${name} — with a dash. `.repeat(120)}\n\n`;

test('highlights are the words that match, by characters of the hit and by bytes of its document', async () => {
  const source = await app.createSource(org);
  const cases: [text: string, query: string, marked: string[]][] = [
    ['⛵ The cafés of Zürich serve crêpes 🥞 and crêpes.', 'cafe crepe', ['cafés', 'crêpes', 'crêpes']],
    ['Call getUserName() before max_pages is read.', 'user max_pages', ['User', 'max_pages']],
    ['Ｆｕｌｌ width and a ﬁne ligature.', 'full fine', ['Ｆｕｌｌ', 'ﬁne']],
    ['情報検索は難しい。', '検索', ['検索']],
    ['Retrieval retrieves what was retrieved.', 'retriev*', ['Retrieval', 'retrieves', 'retrieved']],
    ['The otter of the river.', 'the otter', ['otter']],
  ];
  for (const [text, query, marked] of cases) {
    await app.push(source, text, { title: 'Ünïcode', dedupe: false });
    for (const mode of ['fulltext', 'hybrid', 'vector']) {
      const { data } = await search(source, { query, mode, highlights: true, min_similarity: 0 });
      const hit = data.find(({ content }) => content === text);
      assert.ok(hit, `${mode}: ${query}`);
      const ranges = hit.highlights ?? [];
      assert.deepEqual(
        ranges.map(({ start, end }) => text.slice(start, end)),
        marked,
      );
      for (const range of ranges) assert.equal(await readBytes(hit, range), text.slice(range.start, range.end));
    }
  }
  const [plain] = (await search(source, { query: 'otter' })).data;
  assert.equal(plain && 'highlights' in plain, false);
});

test('a hit has at most 100 highlights', async () => {
  const source = await app.createSource(org);
  await app.push(source, 'bee '.repeat(300));
  const [hit] = (await search(source, { query: 'bee', highlights: true })).data;
  assert.equal(hit?.highlights?.length, 100);
});

test('context merges a hit with its neighbours into one passage of its document', async () => {
  const source = await app.createSource(org);
  const names = ['Iron', 'Copper', 'Silver', 'Gold', 'Tin'];
  const document = await app.push(source, 'Replaced soon.');
  await app.push(source, section('Mercury'));
  const text = names.map(section).join('');
  const answer = await app.send<{ id: string }>('PATCH', `/knowledge_documents/${document}`, {
    content: { data: text },
  });
  await app.waitForIngestion(answer.body.id);
  const chunks = await app.send<{ data: Position[] }>('GET', `/knowledge_documents/${document}/chunks?page_size=100`);
  assert.ok(chunks.body.data.length >= 5);
  for (const context of [1, 5])
    for (const name of names) {
      const { data } = await search(source, { query: name, mode: 'fulltext', max_results: 1, context });
      const hit = data[0] as Hit & { context: Position };
      const at = chunks.body.data.findIndex(({ start_byte }) => start_byte === hit.start_byte);
      const around = chunks.body.data.slice(Math.max(0, at - context), at + context + 1);
      assert.equal(hit.context.start_byte, around[0]?.start_byte);
      assert.equal(hit.context.end_byte, around.at(-1)?.end_byte);
      assert.equal(hit.context.start_line, around[0]?.start_line);
      assert.equal(hit.context.end_line, around.at(-1)?.end_line);
      assert.ok(hit.context.content.includes(hit.content));
      assert.ok(hit.context.content === (await readBytes(hit, hit.context)));
    }
});

test('group_by document returns the best hit of each document', async () => {
  const source = await app.createSource(org);
  const many = await app.push(source, Array.from({ length: 8 }, () => section('Amber')).join(''));
  const others = [await app.push(source, 'Amber floats.'), await app.push(source, 'Amber glows in the sun.')];
  for (const mode of ['fulltext', 'hybrid', 'vector']) {
    const one = { query: 'amber sentence', mode, min_similarity: 0 };
    const single = (await search(source, { ...one, max_results: 100 })).data;
    const grouped = (await search(source, { ...one, max_results: 3, group_by: 'document' })).data;
    assert.ok(single.filter(({ document }) => document === many).length > 3);
    assert.deepEqual(grouped.map(({ document }) => document).sort(), [many, ...others].sort());
    const best = single.find(({ document }) => document === many);
    assert.equal(grouped.find(({ document }) => document === many)?.start_byte, best?.start_byte);
  }
});

test('facets count the documents found for each value, within the filter', async () => {
  const source = await app.createSource(org);
  for (let i = 0; i < 30; i++)
    await app.push(source, i < 24 ? `${section('Owls')}${section('Owls')}` : 'Bats.', {
      metadata: {
        shelf: i % 3,
        tags: i % 2 ? ['odd', 'odd', null] : ['even', 'bird'],
        number: i,
        long: 'x'.repeat(300),
        open: i < 6,
      },
    });
  const facets = ['shelf', 'tags', 'number', 'long', 'open', 'missing'];
  const found = await search(source, { query: 'owls', mode: 'fulltext', max_results: 1, facets });
  assert.equal(found.data.length, 1);
  assert.deepEqual(
    found.facets?.shelf,
    [0, 1, 2].map((value) => ({ value, count: 8 })),
  );
  assert.deepEqual(
    found.facets?.tags,
    ['bird', 'even', 'odd'].map((value) => ({ value, count: 12 })),
  );
  assert.equal(found.facets?.number?.length, 20);
  assert.deepEqual([found.facets?.long, found.facets?.missing], [[], []]);
  assert.deepEqual(found.facets?.open, [
    { value: false, count: 18 },
    { value: true, count: 6 },
  ]);
  const filtered = await search(source, { query: 'owls', mode: 'fulltext', filter: { shelf: 1 }, facets: ['shelf'] });
  assert.deepEqual(filtered.facets, { shelf: [{ value: 1, count: 8 }] });
});

test('a hit in a document with page marks names its pages', async () => {
  const source = await app.createSource(org);
  const pages = ['Granite', 'Basalt', 'Slate'].map((name) => section(name).trim());
  await app.push(source, `${pages[0]}\n\n<!-- page 2 -->\n\n${pages[1]}\n\n<!-- page 3 -->\n\n${pages[2]}`);
  for (const [i, query] of ['granite', 'basalt', 'slate'].entries()) {
    const [hit] = (await search(source, { query, mode: 'fulltext', max_results: 1, context: 5 })).data;
    assert.ok(hit);
    assert.ok(hit.content.includes(`# ${['Granite', 'Basalt', 'Slate'][i]}`));
    assert.ok((hit.start_page ?? 0) <= i + 1 && (hit.end_page ?? 0) >= i + 1);
    assert.equal(hit.end_page, i + 1);
    assert.ok(hit.context && 'start_page' in hit.context);
  }
  await app.push(source, 'Obsidian has no pages.');
  const [plain] = (await search(source, { query: 'obsidian' })).data;
  assert.equal(plain?.start_page, undefined);
});

test('members that shape results are checked, and bounded', async () => {
  const source = await app.createSource(org);
  const field = async (body: Json) => {
    const answer = await app.send<ErrorBody>('POST', `/knowledge_sources/${source}/search`, { query: 'x', ...body });
    return [answer.status, answer.body.error?.fields[0]?.field];
  };
  assert.deepEqual(await field({ context: 6 }), [422, 'context']);
  assert.deepEqual(await field({ context: -1 }), [422, 'context']);
  assert.deepEqual(await field({ group_by: 'source' }), [422, 'group_by']);
  assert.deepEqual(await field({ highlights: 'yes' }), [422, 'highlights']);
  assert.deepEqual(await field({ facets: 'shelf' }), [422, 'facets']);
  assert.deepEqual(await field({ facets: [''] }), [422, 'facets.0']);
  assert.deepEqual(await field({ facets: Array.from({ length: 11 }, (_v, i) => `k${i}`) }), [422, 'facets']);
  const empty = await search(source, {
    query: 'x',
    facets: ['__proto__', 'a'],
    group_by: 'document',
    context: 2,
  });
  assert.deepEqual([empty.data, empty.facets?.a], [[], []]);
});
