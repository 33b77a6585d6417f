import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Json, knowledgeOf } from '../../support/knowledge.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });
const org = { org: world.org.id };

/** A source with one document per text; answers the texts that a search finds, best first. */
async function library(texts: string[], more: Json = {}) {
  const source = await app.createSource({ ...org, ...more });
  for (const text of texts) await app.push(source, text);
  return async (query: string, rest: Json = { mode: 'fulltext' }) =>
    (await app.search(source, { query, ...rest })).map((hit) => hit.content);
}

test('each hit cites the lines and bytes of its text, in every mode', async () => {
  const source = await app.createSource(org);
  const text = `# Harbour\n\nShips anchor here at night.\n\n# Mountains ⛰\n\n${'Goats climb the ridge above the valley. '.repeat(200)}`;
  await app.push(source, text, { title: 'Places' });
  for (const mode of ['fulltext', 'vector', 'hybrid']) {
    const hits = await app.search(source, { query: 'goat climbing', mode });
    assert.ok(hits.length > 1);
    for (const hit of hits) {
      assert.match(hit.id, /^cim_/);
      assert.deepEqual([hit.kind, hit.type, hit.source, hit.title], ['chunk', 'knowledge/documents', source, 'Places']);
      const slice = await app.send<Json>(
        'GET',
        `/knowledge_documents/${hit.document}/content?unit=bytes&offset=${hit.start_byte}&limit=${hit.end_byte - hit.start_byte}`,
      );
      assert.equal(slice.body.content, hit.content);
      const lines = await app.send<Json>(
        'GET',
        `/knowledge_documents/${hit.document}/content?offset=${hit.start_line}&limit=${Number(hit.end_line) - Number(hit.start_line) + 1}`,
      );
      assert.ok(String(lines.body.content).includes(hit.content));
    }
  }
});

test('full-text search finds word forms, accents, phrases, prefixes, code and scripts without spaces', async () => {
  const find = await library([
    'The café serves crêpes.',
    'Information retrieval is a field of study.',
    'The retrieval of information takes time.',
    'Call getUserName() before max_pages is read; see node.js v1.2.3 and error E1234.',
    'I write C++ and C# at night.',
    '情報検索は難しい。',
  ]);
  assert.match((await find('cafes crepe'))[0] ?? '', /café/);
  assert.match((await find('studies'))[0] ?? '', /field of study/);
  assert.deepEqual(await find('"information retrieval"'), ['Information retrieval is a field of study.']);
  assert.deepEqual(await find('"retrieval information"'), []);
  assert.equal((await find('retriev*')).length, 2);
  assert.equal((await find('retrieval*')).length, 2);
  for (const word of ['getUserName', 'user', 'max_pages', 'pages', 'node.js', 'v1.2.3', 'e1234'])
    assert.match((await find(word))[0] ?? '', /getUserName/, word);
  assert.match((await find('C++'))[0] ?? '', /C\+\+/);
  assert.match((await find('検索'))[0] ?? '', /情報/);
  assert.deepEqual(await find('zebra'), []);
});

test('words are stemmed in the language that the source names', async () => {
  const find = await library(['Die Häuser stehen am Fluss.'], { payload: { language: 'german' } });
  assert.equal((await find('Haus')).length, 1);
});

test('the built-in embedder finds misspelt words', async () => {
  const find = await library(['The architecture of cathedrals.', 'Fishing at the lake.']);
  assert.match((await find('architekture cathedrel', { mode: 'vector' }))[0] ?? '', /cathedrals/);
});

test('filters on metadata, age and number are part of the search', async () => {
  const source = await app.createSource(org);
  for (let i = 0; i < 60; i++)
    await app.push(source, `A word about apples, number ${i}.`, {
      metadata: {
        shelf: i % 3,
        tags: i % 2 ? ['odd', 'fruit'] : ['even'],
        name: `n${String(i).padStart(2, '0')}`,
        ...(i === 7 ? { rare: null } : {}),
      },
    });
  const count = async (filter: Json, more: Json = {}) =>
    (await app.search(source, { query: 'apples', max_results: 100, mode: 'fulltext', filter, ...more })).length;
  assert.equal(await count({ shelf: 1 }), 20);
  assert.equal(await count({ shelf: { in: [0, 2] } }), 40);
  assert.equal(await count({ shelf: { gte: 1, lt: 2 } }), 20);
  assert.equal(await count({ shelf: { gt: 'a' } }), 0);
  assert.equal(await count({ shelf: { ne: 1 } }), 40);
  assert.equal(await count({ tags: 'odd' }), 30);
  assert.equal(await count({ name: { lte: 'n09' } }), 10);
  assert.equal(await count({ rare: { exists: true } }), 1);
  assert.equal(await count({ rare: null }), 1);
  assert.equal(await count({ or: [{ name: 'n01' }, { and: [{ shelf: 2 }, { tags: 'even' }] }] }), 11);
  assert.equal(await count({}, { max_results: 5 }), 5);
  assert.equal(await count({}, { recency_days: 1 }), 60);
  await server.db`update knowledge_documents set indexed_at = now() - interval '3 days' where metadata @> '{"shelf": 0}'`;
  assert.equal(await count({}, { recency_days: 2 }), 40);
  for (const mode of ['vector', 'hybrid'])
    assert.equal(
      (
        await app.search(source, {
          query: 'apples',
          mode,
          max_results: 100,
          min_similarity: 0,
          filter: { name: 'n33' },
        })
      ).length,
      1,
    );
});

test('an invalid search is 422 on its member', async () => {
  const source = await app.createSource(org);
  const field = async (body: Json) => {
    const answer = await app.send<ErrorBody>('POST', `/knowledge_sources/${source}/search`, { query: 'x', ...body });
    return [answer.status, answer.body.error?.fields[0]?.field];
  };
  assert.deepEqual(await field({ query: '' }), [422, 'query']);
  assert.deepEqual(await field({ mode: 'magic' }), [422, 'mode']);
  assert.deepEqual(await field({ max_results: 0 }), [422, 'max_results']);
  assert.deepEqual(await field({ max_results: 101 }), [422, 'max_results']);
  assert.deepEqual(await field({ min_similarity: 2 }), [422, 'min_similarity']);
  assert.deepEqual(await field({ filter: { a: { like: 'x' } } }), [422, 'filter.a.like']);
  assert.deepEqual(await field({ filter: { or: 3 } }), [422, 'filter.or']);
  assert.deepEqual(await field({ limit: 3 }), [422, 'limit']);
});

test("explain returns the statistics, the terms and each hit's ranks", async () => {
  const source = await app.createSource(org);
  await app.push(source, 'Otters swim.');
  const { body } = await app.send<{ data: Json[]; explain: Json }>('POST', `/knowledge_sources/${source}/search`, {
    query: 'otter',
    explain: true,
  });
  assert.equal(body.explain.chunks, 1);
  assert.deepEqual(
    (body.explain.terms as Json[]).map((term) => [term.term, term.document_frequency]),
    [['otter', 1]],
  );
  assert.deepEqual((body.data[0]?.explain as Json | undefined)?.fulltext_rank, 1);
});

test('a search over several sources ranks them together and covers no other; one that is not visible is 422', async () => {
  const [one, two, other] = [await app.createSource(org), await app.createSource(org), await app.createSource(org)];
  await app.push(one, 'Glaciers carry boulders.');
  await app.push(two, 'Glaciers carve valleys.');
  await app.push(other, 'Glaciers of a source that nobody named.');
  const search = (sources: unknown, caller = app) =>
    caller.send<{ data: { source: string }[] } & ErrorBody>('POST', '/knowledge_search', {
      query: 'glaciers',
      sources,
    });
  const found = await search([one, two.replace('cso_', 'ksrc_'), one]);
  assert.equal(found.status, 200);
  assert.deepEqual(new Set(found.body.data.map((hit) => hit.source)), new Set([one, two]));

  const stranger = knowledgeOf(server, { token: world.stranger.token });
  const missing = `cso_${'0'.repeat(22)}`;
  const refused = [await search([one, missing]), await search([one], stranger), await search([missing], stranger)];
  for (const { status, body } of refused) {
    assert.equal(status, 422);
    assert.deepEqual(body.error.fields, [{ field: 'sources', message: 'not found' }]);
  }
  for (const sources of [[], ['agt_1'], 'all', [1]]) assert.equal((await search(sources)).status, 422);
});

test("an agent's search covers all that it owns and nothing else, and knows its lookup key", async () => {
  const agent = await server.provision.agent(world.app, { org: world.org });
  await server.db`update agents set lookup_key = 'librarian' where id = ${agent.uuid}`;
  const [one, two, other] = [
    await app.createSource({ agent: agent.id }),
    await app.createSource({ agent: agent.id }),
    await app.createSource(org),
  ];
  await app.push(one, 'Rivers carry silt.');
  await app.push(two, 'Rivers flood in spring.');
  await app.push(other, 'Rivers of another owner.');
  for (const name of [agent.id, agent.id.replace('agt_', 'agi_'), 'librarian']) {
    const { body, status } = await app.send<{ data: { source: string }[] }>('POST', `/agents/${name}/search`, {
      query: 'rivers',
    });
    assert.equal(status, 200);
    assert.deepEqual(new Set(body.data.map((hit) => hit.source)), new Set([one, two]));
  }
  const typed = await app.send<{ data: Json[] }>('POST', `/agents/${agent.id}/search`, {
    query: 'rivers',
    source_types: ['thread/messages'],
  });
  assert.deepEqual(typed.body.data, []);
  const stranger = knowledgeOf(server, { token: world.stranger.token });
  assert.equal((await stranger.send('POST', `/agents/${agent.id}/search`, { query: 'rivers' })).status, 404);
});

test('statistics and results are right after many documents, replacements, deletions and a compaction', async () => {
  const source = await app.createSource(org);
  const alive = new Map<string, string>();
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed % below;
  };
  const words = ['ant', 'bee', 'cat', 'dog', 'eel', 'fox', 'gnu', 'hen', 'ibis', 'jay'];
  const text = () => `${Array.from({ length: 3 + random(6) }, () => words[random(words.length)]).join(' ')}.`;
  for (let from = 0; from < 3; from++) {
    const items = Array.from({ length: 100 }, () => ({ content: { data: text() } }));
    const done = await app.ingest(source, { items }, 'ingest/batch');
    for (const [i, item] of (done.metadata.items ?? []).entries())
      alive.set(String(item.document), items[i]?.content.data ?? '');
  }
  for (const document of [...alive.keys()].filter((_id, i) => i % 4 === 0)) {
    if (random(2) === 0) {
      await app.send('DELETE', `/knowledge_documents/${document}`);
      alive.delete(document);
    } else {
      const replaced = text();
      const answer = await app.send<{ id: string }>('PATCH', `/knowledge_documents/${document}`, {
        content: { data: replaced },
      });
      await app.waitForIngestion(answer.body.id);
      alive.set(document, replaced);
    }
  }
  await compareRankings();
  const [row] = await server.db<{ appId: string; sourceId: string }[]>`
    select app_id, id as source_id from knowledge_sources order by created_at desc limit 1`;
  const run = { signal: new AbortController().signal } as never;
  await server.server.work.tasks.compact_index?.(row ?? {}, run);
  const [left] = await server.db<{ dead: number; rows: number }[]>`
    select (select count(*) from knowledge_dead_ranges where source_id = i.source_id) as dead,
      next_ordinal - first_ordinal as rows from knowledge_indexes i where source_id = ${row?.sourceId ?? ''}`;
  assert.deepEqual([left?.dead, left?.rows], [0, alive.size]);
  await compareRankings();

  async function compareRankings() {
    for (const query of ['ant', 'bee cat', 'fox gnu jay hen']) {
      const { body } = await app.send<{ data: { document: string; score: number }[]; explain: Json }>(
        'POST',
        `/knowledge_sources/${source}/search`,
        { query, mode: 'fulltext', max_results: 100, explain: true },
      );
      const expected = bm25([...alive], query.split(' ')).slice(0, 100);
      assert.equal(body.explain.chunks, alive.size);
      assert.deepEqual(
        body.data.map((hit) => hit.score.toFixed(3)),
        expected.map(([, score]) => score.toFixed(3)),
      );
      const scores = new Map(expected);
      for (const hit of body.data)
        assert.ok(scores.has(hit.document) || hit.score <= (expected.at(-1)?.[1] ?? 0) + 1e-4);
    }
  }
});

/** BM25 by the book over whole texts of plain words. */
function bm25(documents: [string, string][], query: string[]): [string, number][] {
  const tokens = documents.map(([id, text]) => [id, text.replace('.', '').split(' ')] as const);
  const average = tokens.reduce((sum, [, words]) => sum + words.length, 0) / tokens.length;
  const score = (words: readonly string[]) =>
    query.reduce((sum, term) => {
      const df = tokens.filter(([, all]) => all.includes(term)).length;
      const tf = words.filter((word) => word === term).length;
      const idf = Math.log(1 + (tokens.length - df + 0.5) / (df + 0.5));
      return sum + (idf * tf * 2.2) / (tf + 1.2 * (0.25 + (0.75 * words.length) / average));
    }, 0);
  return tokens
    .map(([id, words]) => [id, score(words)] as [string, number])
    .filter(([, one]) => one > 0)
    .sort((a, c) => c[1] - a[1]);
}

test('a search never returns what the caller may not see: a brute-force check over random tenants', async () => {
  const { app: tenant } = world;
  const otherTeam = await server.provision.team(tenant, { org: world.org, members: [[world.viewer, 'member']] });
  const team = await server.provision.team(tenant, { org: world.org, members: [[world.member, 'member']] });
  const agents = [
    await server.provision.agent(tenant, { org: world.org }),
    await server.provision.agent(tenant, { team }),
    await server.provision.agent(tenant, { user: world.otherUser }),
    await server.provision.agent(tenant, { org: world.otherOrg }),
  ];
  const owners: Json[] = [
    { org: world.org.id },
    { org: world.otherOrg.id },
    { team: team.id },
    { team: otherTeam.id },
    { user: world.member.id },
    { user: world.viewer.id },
    { user: world.loner.id },
    ...agents.map((agent) => ({ agent: agent.id })),
  ];
  const sources: string[] = [];
  for (const owner of owners) {
    const source = await app.createSource(owner);
    await app.push(source, 'The common needle in every source.');
    sources.push(source);
  }
  const callers = [world.admin, world.member, world.viewer, world.otherUser, world.loner, world.stranger];
  for (const user of callers) {
    const caller = knowledgeOf(server, { token: user.token });
    for (const source of sources) {
      const sees = (await caller.send('GET', `/knowledge_sources/${source}`)).status === 200;
      for (const mode of ['fulltext', 'hybrid']) {
        const answer = await caller.send<{ data: Json[] }>('POST', `/knowledge_sources/${source}/search`, {
          query: 'needle',
          mode,
        });
        assert.equal(answer.status, sees ? 200 : 404);
        assert.equal(answer.body.data?.length, sees ? 1 : undefined);
      }
    }
    for (const agent of agents) {
      const answer = await caller.send<{ data: { source: string }[] }>('POST', `/agents/${agent.id}/search`, {
        query: 'needle',
      });
      for (const hit of answer.body.data ?? [])
        assert.equal((await caller.send('GET', `/knowledge_sources/${hit.source}`)).status, 200);
    }
  }
});

test('a document of thousands of passages is found by its first, its last and any between', async () => {
  const source = await app.createSource(org);
  const sections = Array.from({ length: 1_500 }, (_, i) => `## Part ${i}\n\nlandmark${i} ${`filler${i} `.repeat(190)}`);
  const text = sections.join('\n\n');
  const document = await app.push(source, text);
  await app.push(source, 'A small one besides, with a landmark of its own.');
  for (const i of [0, 255, 256, 1_023, 1_024, 1_499]) {
    const hits = await app.search(source, { query: `landmark${i}`, mode: 'fulltext' });
    const [hit] = hits;
    assert.equal(hit?.document, document);
    assert.match(hit.content, new RegExp(`landmark${i}\\b`));
    assert.equal(Buffer.from(text).subarray(hit.start_byte, hit.end_byte).toString(), hit.content);
  }
});
