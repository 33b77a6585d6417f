import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Json, knowledgeOf, type TestIngestion } from '../../support/knowledge.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });
const member = knowledgeOf(server, { token: world.member.token });
const viewer = knowledgeOf(server, { token: world.viewer.token });
const stranger = knowledgeOf(server, { token: world.stranger.token });
const org = { org: world.org.id };

async function refused(method: string, path: string, body: unknown, as = app) {
  const answer = await as.send<ErrorBody>(method, path, body);
  return [answer.status, answer.body.error.fields[0]?.field];
}

test('the kinds list names what can be created, each with a JSON Schema, and no server-driven kind', async () => {
  const { body } = await app.send<{
    data: { type: string; payload_schema: Json; credentials_schema?: { properties: Json } }[];
  }>('GET', '/knowledge_sources/kinds');
  assert.deepEqual(
    body.data.map((kind) => kind.type),
    [...['knowledge/documents', 'scrape/site', 'web/link', 'web/feed', 'git/repository', 's3/bucket'], 'file/document'],
  );
  for (const kind of body.data) assert.equal(kind.payload_schema.type, 'object');
  const credentials = body.data.map(({ credentials_schema: one }) => one && Object.keys(one.properties).length);
  assert.deepEqual(credentials, [undefined, undefined, undefined, 3, 3, 3, undefined]);
});

test('a source response has every member, null where it has no value', async () => {
  const { body, status } = await app.send<Json>('POST', '/knowledge_sources', { type: 'knowledge/documents', ...org });
  assert.equal(status, 201);
  assert.match(String(body.id), /^cso_/);
  assert.deepEqual(
    Object.entries(body)
      .filter(([, value]) => value === null)
      .map(([name]) => name)
      .sort(),
    [
      ...[
        'agent',
        'context_installation',
        'held_deletions',
        'learned_model',
        'lookup_key',
        'metadata',
        'parent_source',
      ],
      ...['payload', 'sandbox', 'team', 'thread', 'user'],
    ],
  );
  assert.equal(body.org, world.org.id);
  assert.equal(body.state, 'active');
  const read = await app.send<Json>('GET', `/knowledge_sources/${String(body.id).replace('cso_', 'ksrc_')}`);
  assert.deepEqual(read.body, body);
});

test('creation requires exactly one owner and a creatable type; each mistake is a 422 on its member', async () => {
  const create = (body: Json) => refused('POST', '/knowledge_sources', body);
  assert.deepEqual(await create({ type: 'webhook/inbound', ...org }), [422, 'type']);
  assert.deepEqual(await create({ type: 'connectors/gmail/emails', ...org }), [422, 'type']);
  assert.equal((await create({ type: 'web/link' }))[0], 422);
  assert.equal((await create({ type: 'web/link', ...org, user: world.member.id }))[0], 422);
  assert.deepEqual(await create({ type: 'web/link', user: world.stranger.id }), [422, 'user']);
  assert.deepEqual(await create({ type: 'web/link', ...org, payload: { url: 'ftp://x' } }), [422, 'payload.url']);
  assert.deepEqual(await create({ type: 'web/link', ...org, payload: { url: 'http://127.0.0.1/' } }), [
    422,
    'payload.url',
  ]);
  assert.deepEqual(await create({ type: 'scrape/site', ...org, payload: { max_pages: 0 } }), [
    422,
    'payload.max_pages',
  ]);
  assert.deepEqual(await create({ type: 'web/link', ...org, payload: { schedule: 'often' } }), [
    422,
    'payload.schedule',
  ]);
  for (const language of ['klingon', 'English', 5])
    assert.deepEqual(await create({ type: 'knowledge/documents', ...org, payload: { language } }), [
      422,
      'payload.language',
    ]);
  assert.deepEqual(await create({ type: 'file/document', ...org, payload: { file: 'fil_x' } }), [422, 'payload.file']);
  assert.deepEqual(await create({ type: 'web/link', ...org, parent_source: 'cso_x' }), [422, 'parent_source']);
  assert.deepEqual(await create({ type: 'web/link', ...org, colour: 1 }), [422, 'colour']);
  assert.deepEqual(await create({ type: 'web/link', ...org, state: 'asleep' }), [422, 'state']);
});

test('PATCH replaces the given members and keeps the others; an empty one changes nothing', async () => {
  const source = await app.createSource({ ...org, metadata: { a: 1 }, payload: { note: 'x' }, state: 'paused' });
  const empty = await app.send<Json>('PATCH', `/knowledge_sources/${source}`, {});
  assert.deepEqual([empty.status, empty.body.state, empty.body.metadata], [200, 'paused', { a: 1 }]);
  const changed = await app.send<Json>('PATCH', `/knowledge_sources/${source}`, {
    metadata: { b: 2 },
    state: 'active',
  });
  assert.deepEqual(
    [changed.body.metadata, changed.body.payload, changed.body.state],
    [{ b: 2 }, { note: 'x' }, 'active'],
  );
  assert.equal(changed.body.warnings, undefined);
  const odd = await app.send<Json>('PATCH', `/knowledge_sources/${source}`, {
    payload: { languag: 'german', note: 1 },
  });
  assert.deepEqual(odd.body.warnings, [
    { field: 'payload.languag', message: 'languag is stored, but not used; did you mean language?' },
  ]);
});

test('the list filters by type, owner, scope and search, newest first, with true totals', async () => {
  const other = await server.provision.org(world.app);
  const agent = await server.provision.agent(world.app, { org: other });
  const team = await server.provision.team(world.app, { org: other });
  const first = await app.createSource({ org: other.id });
  const second = await app.createSource({ agent: agent.id, type: 'web/link' });
  const third = await app.createSource({ team: team.id });
  const ids = async (query: string) => {
    const { body, status } = await app.send<{ data: { id: string }[]; total_entries: number }>(
      'GET',
      `/knowledge_sources?${query}`,
    );
    assert.equal(status, 200);
    assert.equal(body.total_entries, body.data.length);
    return body.data.map((source) => source.id);
  };
  const inOrg = `org=${other.id}`;
  assert.deepEqual(await ids(inOrg), [third, second, first]);
  assert.deepEqual(await ids(`${inOrg}&owner_scope=system`), [first]);
  assert.deepEqual(await ids(`${inOrg}&owner_scope=individual`), [third, second]);
  assert.deepEqual(await ids(`agent=${agent.id}`), [second]);
  assert.deepEqual(await ids(`team=${team.id}&team=${team.id}`), [third]);
  assert.deepEqual(await ids(`team[]=${team.id}`), [third]);
  assert.deepEqual(await ids(`${inOrg}&type=web/link`), [second]);
  assert.deepEqual(await ids(`${inOrg}&search=WEB/`), [second]);
  assert.deepEqual(await ids(`${inOrg}&search=%25`), []);
  assert.deepEqual(await ids(`org=${world.otherApp.app.id.replace(/^[a-z]+/, 'org')}`), []);
  assert.deepEqual(await refused('GET', '/knowledge_sources?agent=usr_x', undefined), [422, 'agent']);
  assert.deepEqual(await refused('GET', '/knowledge_sources?owner_scope=mine', undefined), [422, 'owner_scope']);
});

test('a source is 404 for callers who cannot see it, and its changes are 403 for callers who may only see it', async () => {
  const source = await app.createSource(org);
  const document = await app.push(source, 'A secret of the organisation.');
  const operations: [string, string, unknown][] = [
    ['GET', `/knowledge_sources/${source}`, undefined],
    ['PATCH', `/knowledge_sources/${source}`, { state: 'paused' }],
    ['POST', `/knowledge_sources/${source}/ingest`, { content: { data: 'x' } }],
    ['POST', `/knowledge_sources/${source}/search`, { query: 'secret' }],
    ['GET', `/knowledge_sources/${source}/ingestions`, undefined],
    ['GET', `/knowledge_documents/${document}`, undefined],
    ['GET', `/knowledge_documents/${document}/content`, undefined],
    ['DELETE', `/knowledge_documents/${document}`, undefined],
    ['DELETE', `/knowledge_sources/${source}`, undefined],
  ];
  const loner = knowledgeOf(server, { token: world.loner.token });
  for (const [method, path, body] of operations) {
    for (const nobody of [stranger, loner]) assert.equal((await nobody.send(method, path, body)).status, 404, path);
    assert.equal((await server.api(method, `/api/v1${path}`, body === undefined ? {} : { body })).status, 401);
  }
  for (const [method, path, body] of operations)
    assert.equal(
      (await viewer.send(method, path, body)).status,
      method === 'GET' || path.endsWith('/search') ? 200 : 403,
      `${method} ${path}`,
    );
  assert.equal((await member.send('PATCH', `/knowledge_sources/${source}`, {})).status, 200);
  assert.equal((await member.send('DELETE', `/knowledge_sources/${source}`)).status, 403);
  const admin = knowledgeOf(server, { token: world.admin.token });
  assert.equal((await admin.send('DELETE', `/knowledge_sources/${source}`)).status, 204);
  assert.equal((await app.send('GET', `/knowledge_documents/${document}`)).status, 404);
});

test("an org admin sees and may delete the sources of the org's people", async () => {
  const source = await member.createSource({ user: world.member.id });
  const admin = knowledgeOf(server, { token: world.admin.token });
  assert.equal((await admin.send('GET', `/knowledge_sources/${source}`)).status, 200);
  assert.equal((await viewer.send('GET', `/knowledge_sources/${source}`)).status, 404);
  assert.equal((await admin.send('PATCH', `/knowledge_sources/${source}`, {})).status, 403);
  assert.equal((await admin.send('DELETE', `/knowledge_sources/${source}`)).status, 204);
});

test('ingest requires exactly one of content, file and pull, and only what the kind supports', async () => {
  const source = await app.createSource(org);
  const path = `/knowledge_sources/${source}/ingest`;
  const content = { data: 'x' };
  for (const body of [{}, { pull: false }, { content, pull: true }, { content, file: 'fil_x' }])
    assert.equal((await refused('POST', path, body))[0], 422);
  assert.deepEqual(await refused('POST', path, { pull: true }), [422, 'pull']);
  assert.deepEqual(await refused('POST', path, { pull: true, dedupe: true }), [422, 'dedupe']);
  assert.deepEqual(await refused('POST', path, { content: { data: '***', data_encoding: 'base64' } }), [
    422,
    'content.data',
  ]);
  assert.deepEqual(await refused('POST', path, { content: { data: 'x', data_encoding: 'hex' } }), [
    422,
    'content.data_encoding',
  ]);
  assert.deepEqual(await refused('POST', path, { file: 'usr_x' }), [422, 'file']);
  assert.deepEqual(await refused('POST', path, { content, metadata: null }), [422, 'metadata']);
  const link = await app.createSource({ ...org, type: 'web/link' });
  assert.deepEqual(await refused('POST', `/knowledge_sources/${link}/ingest`, { content }), [422, 'content']);
  assert.deepEqual(await refused('POST', `/knowledge_sources/${link}/ingest`, { pull: true }), [422, 'payload']);
});

test('the response of a push is a succeeded ingestion that names its document', async () => {
  const source = await app.createSource(org);
  const push = (data: string) =>
    app.send<TestIngestion>('POST', `/knowledge_sources/${source}/ingest`, {
      ...{ content: { data, filename: 'notes.md' }, on_active: 'queue', title: 'Notes', metadata: { shelf: 3 } },
    });
  let { status, body } = await push('Line one.\nLine two.\n');
  // A busy machine may take longer than the two seconds that a push waits.
  for (let n = 2; n <= 6 && body.status !== 'succeeded'; n++)
    ({ status, body } = await push(`Line one.\nLine ${n}__.\n`));
  assert.deepEqual([status, body.status, body.metadata.document_reused], [201, 'succeeded', false]);
  const document = await app.send<Json>('GET', `/knowledge_documents/${body.metadata.document}`);
  assert.equal(document.body.title, 'Notes');
  assert.deepEqual(document.body.metadata, { shelf: 3 });
  assert.deepEqual([document.body.total_lines, document.body.total_size], [2, 20]);
  assert.equal(document.body.source, source);
  assert.match(String(document.body.content_hash), /^[0-9a-f]{64}$/);
});

test('dedupe reuses the document of the same bytes, whatever their encoding, and applies title and metadata', async () => {
  const source = await app.createSource(org);
  const first = await app.push(source, 'The same bytes.', { title: 'Old' });
  const again = await app.ingest(source, {
    content: {
      data: Buffer.from('The same bytes.').toString('base64'),
      data_encoding: 'base64',
      filename: 'other.txt',
    },
    dedupe: true,
    title: 'New',
    metadata: { read: true },
  });
  assert.deepEqual([again.metadata.document, again.metadata.document_reused], [first, true]);
  const document = await app.send<Json>('GET', `/knowledge_documents/${first}`);
  assert.deepEqual([document.body.title, document.body.metadata], ['New', { read: true }]);
  assert.notEqual(await app.push(source, 'The same bytes.'), first);
  assert.notEqual(await app.push(source, 'Other bytes.', { dedupe: true }), first);
});

test('bytes that cannot be parsed fail the ingestion with a reason and change nothing else', async () => {
  const source = await app.createSource(org);
  await app.push(source, 'Something that stays searchable.');
  const failed = await app.ingest(source, {
    content: {
      data: Buffer.from('%PDF-1.7 broken').toString('base64'),
      data_encoding: 'base64',
      content_type: 'application/pdf',
    },
  });
  assert.equal(failed.status, 'failed');
  assert.ok(failed.error?.code && failed.error.message);
  assert.equal((await app.search(source, 'searchable')).length, 1);
});

test('a batch has a result for every item', async () => {
  const source = await app.createSource(org);
  const broken = {
    data: Buffer.from('%PDF-1.7 broken').toString('base64'),
    data_encoding: 'base64',
    content_type: 'application/pdf',
  };
  const ingestion = await app.ingest(
    source,
    {
      items: [
        { content: { data: 'First of many.' } },
        { content: broken },
        { content: { data: 'First of many.' }, dedupe: true },
      ],
    },
    'ingest/batch',
  );
  assert.equal(ingestion.status, 'succeeded');
  const items = ingestion.metadata.items ?? [];
  assert.equal(items.length, 3);
  assert.match(String(items[0]?.document), /^cdo_/);
  assert.ok(items[1]?.error);
  assert.deepEqual([items[2]?.document, items[2]?.document_reused], [items[0]?.document, true]);
  assert.equal(ingestion.stats.errors?.length, 1);
  assert.deepEqual(await refused('POST', `/knowledge_sources/${source}/ingest/batch`, { items: [{}] }), [
    422,
    'items.0.content',
  ]);
});

test('documents of a batch are written together, keep their order, and are deleted one by one', async () => {
  const source = await app.createSource(org);
  const names = Array.from({ length: 40 }, (_name, i) => `subject${i}`);
  const items = names.map((name) => ({ content: { data: `# ${name}\n\nA text about ${name} alone.` }, title: name }));
  const { metadata } = await app.ingest(source, { items }, 'ingest/batch');
  const ids = (metadata.items ?? []).map(({ document }) => String(document));
  assert.equal(new Set(ids).size, names.length);

  const listed = await app.send<{ data: { id: string; title: string }[] }>(
    'GET',
    `/knowledge_documents?source=${source}&page_size=100`,
  );
  assert.deepEqual(
    listed.body.data.map(({ id, title }) => [id, title]),
    ids.map((id, i) => [id, names[i]]).reverse(),
  );
  const { db } = server.services;
  const [written] = await db<[{ commits: number }]>`
    select count(distinct xmin::text) as commits from knowledge_documents where app_id = ${world.app.app.uuid}
      and title like 'subject%'`;
  assert.ok(written.commits <= names.length / 4, `${written.commits} commits`);

  assert.equal((await app.send('DELETE', `/knowledge_documents/${ids[7]}`)).status, 204);
  for (const mode of ['fulltext', 'vector'])
    for (const i of [6, 7, 8]) {
      const body = { query: `subject${i}`, mode, max_results: 1 };
      const found = await app.send<{ data: { document: string }[] }>(
        'POST',
        `/knowledge_sources/${source}/search`,
        body,
      );
      const hit = found.body.data[0]?.document;
      if (i === 7) assert.notEqual(hit, ids[i]);
      else assert.equal(hit, ids[i], `${mode} ${i}`);
    }
});

test('a document is replaced under its id, and search no longer finds the old text', async () => {
  const source = await app.createSource(org);
  const document = await app.push(source, 'Penguins waddle over the ice.', { title: 'Birds', metadata: { a: 1 } });
  const answer = await app.send<TestIngestion>('PATCH', `/knowledge_documents/${document}`, {
    content: { data: 'Ostriches run through sand.' },
  });
  assert.equal(answer.status, 201);
  const ingestion = await app.waitForIngestion(answer.body.id);
  assert.deepEqual([ingestion.status, ingestion.metadata.document], ['succeeded', document]);
  assert.deepEqual(await app.search(source, { query: 'penguins', mode: 'fulltext' }), []);
  assert.equal((await app.search(source, { query: 'ostrich', mode: 'fulltext' }))[0]?.document, document);
  const read = await app.send<Json>('GET', `/knowledge_documents/${document}`);
  assert.deepEqual([read.body.title, read.body.metadata], ['Birds', { a: 1 }]);
  assert.equal((await app.send('DELETE', `/knowledge_documents/${document}`)).status, 204);
  assert.deepEqual(await app.search(source, 'ostrich'), []);
});

test('content is read whole, by lines and by bytes, never cutting a character', async () => {
  const source = await app.createSource(org);
  const text = 'one\nzwei ä\ndrei 😀\nfour';
  const document = await app.push(source, text);
  const read = async (query: string) =>
    (await app.send<Json>('GET', `/knowledge_documents/${document}/content${query}`)).body;
  const whole = await read('');
  assert.deepEqual([whole.content, whole.total_lines, whole.total_size, whole.unit], [text, 4, 26, undefined]);
  const lines = await read('?offset=2&limit=2');
  assert.deepEqual([lines.content, lines.start_line, lines.end_line, lines.unit], ['zwei ä\ndrei 😀\n', 2, 3, 'lines']);
  const bytes = await read('?unit=bytes&offset=0&limit=10');
  assert.deepEqual([bytes.content, bytes.start_byte, bytes.end_byte], ['one\nzwei ', 0, 9]);
  const past = await read('?unit=bytes&offset=900');
  assert.deepEqual([past.content, past.start_byte, past.end_byte], ['', 26, 26]);
  assert.deepEqual(await refused('GET', `/knowledge_documents/${document}/content?unit=pages`, undefined), [
    422,
    'unit',
  ]);
  assert.deepEqual(await refused('GET', `/knowledge_documents/${document}/content?offset=0`, undefined), [
    422,
    'offset',
  ]);
});

test('documents are listed by the beginning of their title and by one or more sources', async () => {
  const [one, two] = [await app.createSource(org), await app.createSource(org)];
  const first = await app.push(one, 'a', { title: 'Alpha 100%' });
  const second = await app.push(two, 'b', { title: 'alphabet' });
  await app.push(two, 'c', { title: 'Beta' });
  const ids = async (query: string) =>
    (await app.send<{ data: { id: string }[] }>('GET', `/knowledge_documents?${query}`)).body.data.map(({ id }) => id);
  assert.deepEqual(await ids(`source=${one}&source[]=${two}&q=ALPHA`), [second, first]);
  assert.deepEqual(await ids(`source=${one}&q=alpha%20100%25`), [first]);
  assert.deepEqual(await ids(`source=${one}&q=%25`), []);
});

test('an active ingestion is returned and marked as such; a new one can queue behind it or be refused', async () => {
  const source = await app.createSource(org);
  const [row] = await server.db<
    { appId: string; id: string }[]
  >`select app_id, id from knowledge_sources order by created_at desc limit 1`;
  assert.ok(row);
  await server.db`insert into knowledge_ingestions (app_id, id, source_id, kind, status, lease_holder, lease_until)
    values (${row.appId}, gen_random_uuid(), ${row.id}, 'push', 'running', gen_random_uuid(), now() + interval '1 hour')`;
  const push = (more: Json) =>
    app.send<TestIngestion & ErrorBody>('POST', `/knowledge_sources/${source}/ingest`, {
      content: { data: 'later' },
      ...more,
    });
  const same = await push({});
  assert.deepEqual([same.status, same.body.status, same.body.metadata.already_active], [201, 'running', true]);
  assert.equal((await push({ on_active: 'error' })).status, 409);
  const queued = await push({ on_active: 'queue' });
  assert.deepEqual([queued.body.status, queued.body.metadata.already_active], ['pending', undefined]);
  assert.equal((await app.send('DELETE', `/knowledge_sources/${source}`)).status, 204);
  assert.equal((await app.send('GET', `/knowledge_ingestions/${queued.body.id}`)).status, 404);
});

test('concurrent pushes into one source all succeed if they queue', async () => {
  const source = await app.createSource(org);
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_push, i) =>
      app.send<TestIngestion>('POST', `/knowledge_sources/${source}/ingest`, {
        content: { data: `Number ${i} of a crowd.` },
        on_active: 'queue',
      }),
    ),
  );
  for (const answer of answers) assert.equal((await app.waitForIngestion(answer.body.id)).status, 'succeeded');
  assert.equal((await app.search(source, { query: 'crowd', mode: 'fulltext' })).length, 12);
});

test('document text may contain NUL, which is replaced; nothing else in a body may', async () => {
  const source = await app.createSource(org);
  const document = await app.push(source, 'before\0after');
  const { body } = await app.send<Json>('GET', `/knowledge_documents/${document}/content`);
  assert.equal(body.content, 'before\uFFFDafter');
  const path = `/knowledge_sources/${source}/ingest`;
  assert.deepEqual(await refused('POST', path, { content: { data: 'x' }, title: 'a\0b' }), [422, 'title']);
  assert.deepEqual(await refused('POST', path, { content: { data: 'x\uD800' } }), [422, 'content.data']);
});

test('a document shows its chunks in the order of its text, page by page, and after a replacement the new ones', async () => {
  const source = await app.createSource(org);
  const chapters = (word: string) =>
    Array.from({ length: 6 }, (_, at) => `# Chapter ${at}\n\n${`${word} ${at} ä. `.repeat(120)}\n`).join('\n');
  const text = chapters('first');
  const document = await app.push(source, text, { content: { data: text, content_type: 'text/markdown' } });
  type Chunk = { id: string; content: string; heading_path: string[]; start_byte: number; end_byte: number };
  const read = async (query: string) => {
    const path = `/knowledge_documents/${document}/chunks${query}`;
    return (await app.send<{ data: Chunk[]; total_entries: number; has_next: boolean }>('GET', path)).body;
  };
  const { data, total_entries: total } = await read('?page_size=100');
  assert.ok(data.length >= 6 && data.length === total);
  assert.deepEqual(data[0]?.heading_path, ['Chapter 0']);
  for (const [at, chunk] of data.entries()) {
    assert.match(chunk.id, /^cim_/);
    assert.ok(at === 0 || chunk.start_byte >= (data[at - 1]?.start_byte ?? 0));
    assert.equal(Buffer.from(text).subarray(chunk.start_byte, chunk.end_byte).toString(), chunk.content);
  }
  const second = await read('?page_size=2&page=2');
  assert.deepEqual(second.data, data.slice(2, 4));
  assert.deepEqual((await read('?page=99')).data, []);
});
