import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sweepVersions } from '../../../src/knowledge/versions/sweep.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { type Json, knowledgeOf, type TestIngestion } from '../../support/knowledge.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

const dayMs = 24 * 3_600_000;
let aheadMs = 0;
const clock = { now: () => new Date(Date.now() + aheadMs) };
const server = await startTestServer({ clock });
after(() => server.close());
const { db } = server;
const world = await server.provision.world();
const { member, viewer, admin } = world;
const app = knowledgeOf(server, { key: world.app.secretKey });
const as = (user: { token: string }) => knowledgeOf(server, { token: user.token });
type Client = typeof app;
const keeping = { org: world.org.id, version_retention_days: 30 };
type Version = Json & { document: string; version: number; current: boolean; title?: string; content?: string };
type List = { data: Version[]; total_entries: number };

async function replace(document: string, data: string, more: Json = {}): Promise<void> {
  const started = await app.send<TestIngestion>('PATCH', `/knowledge_documents/${document}`, {
    content: { data },
    ...more,
  });
  assert.equal(started.status, 201, started.text);
  assert.equal((await app.waitForIngestion(started.body.id)).status, 'succeeded');
}

async function remove(document: string): Promise<void> {
  assert.equal((await app.send('DELETE', `/knowledge_documents/${document}`)).status, 204);
}

async function restored(path: string, body?: Json, client: Client = app): Promise<TestIngestion> {
  const started = await client.send<TestIngestion>('POST', path, body);
  assert.equal(started.status, 201, started.text);
  return client.waitForIngestion(started.body.id);
}

const versionsOf = async (document: string, client: Client = app) =>
  (await client.send<List>('GET', `/knowledge_documents/${document}/versions`)).body.data;
const numbersOf = async (document: string) => (await versionsOf(document)).map(({ version }) => version);
const textOf = async (document: string) =>
  (await app.send<{ content: string }>('GET', `/knowledge_documents/${document}/content`)).body.content;
const statusOf = async (path: string, client: Client) => (await client.send('GET', path)).status;
const uuidOf = (document: string) => parseId('document', document) ?? '';

/** A moment between the changes before it and those after it, by the clock of the database. */
async function moment(): Promise<string> {
  const [row] = await db<[{ at: Date }]>`
    select date_trunc('milliseconds', clock_timestamp()) as at, pg_sleep(0.003)`;
  return row.at.toISOString();
}

test('a document keeps what it was, with its title and metadata, and reads like the document', async () => {
  const source = await app.createSource(keeping);
  const document = await app.push(source, 'one\ntwo\nthree\n', { title: 'First', metadata: { shelf: 1 } });
  await replace(document, 'one\n2\nthree\n');
  await replace(document, 'one\n2\nthree\n', { title: 'Third', metadata: { shelf: 3 } });
  // What changes nothing is not a version.
  await replace(document, 'one\n2\nthree\n');
  const list = await versionsOf(document);
  assert.deepEqual(
    list.map(({ version, current, title, metadata, total_lines }) => ({
      version,
      current,
      title,
      metadata,
      total_lines,
    })),
    [
      { version: 3, current: true, title: 'Third', metadata: { shelf: 3 }, total_lines: 3 },
      { version: 2, current: false, title: 'First', metadata: { shelf: 1 }, total_lines: 3 },
      { version: 1, current: false, title: 'First', metadata: { shelf: 1 }, total_lines: 3 },
    ],
  );
  assert.equal(list[2]?.replaced_at, list[1]?.created_at);
  const path = `/knowledge_documents/${document}/versions`;
  const first = await app.send<Version>('GET', `${path}/1`);
  assert.deepEqual([first.body.content, first.body.title], ['one\ntwo\nthree\n', 'First']);
  const line = await app.send<Version>('GET', `${path}/1?offset=2&limit=1`);
  assert.deepEqual([line.body.content, line.body.start_line], ['two\n', 2]);
  const bytes = await app.send<Version>('GET', `${path}/1?unit=bytes&offset=4&limit=3`);
  assert.deepEqual([bytes.body.content, bytes.body.start_byte, bytes.body.end_byte], ['two', 4, 7]);
  const page = await app.send<List>('GET', `${path}?page=2&page_size=2`);
  assert.deepEqual([page.body.total_entries, page.body.data.map(({ version }) => version)], [3, [1]]);
  const found = await app.send<Json>('GET', `/knowledge_documents/${document}`);
  assert.equal(found.body.version, 3);
  // Searches find what is now, and say which version they read.
  const [hit] = await app.search(source, 'three');
  assert.equal(hit?.version, 3);
  assert.deepEqual(await app.search(source, { query: 'two', mode: 'fulltext' }), []);
  for (const number of ['4', '0', 'x', '99999999999'])
    assert.equal(await statusOf(`${path}/${number}`, app), 404, number);
});

test('versions are compared line by line, in either direction', async () => {
  const source = await app.createSource(keeping);
  const lines = Array.from({ length: 40 }, (_line, i) => `line ${i + 1}`);
  const document = await app.push(source, lines.join('\n'), { title: 'A', metadata: { a: 1, b: 2 } });
  const changed = lines.toSpliced(19, 1, 'line twenty', 'and more');
  await replace(document, changed.join('\n'), { title: 'B', metadata: { a: 1, c: 3 } });
  const compare = (query: string) => app.send<Json>('GET', `/knowledge_documents/${document}/versions/${query}`);
  const same = (from: number, to: number) => lines.slice(from - 1, to).map((text) => ({ type: 'same', text }));
  assert.deepEqual((await compare('2/comparison')).body, {
    ...{ document, base: 1, version: 2, title: { before: 'A', after: 'B' }, metadata: ['b', 'c'] },
    ...{ removed_lines: 1, added_lines: 2, truncated: false },
    hunks: [
      {
        ...{ old_start: 17, new_start: 17 },
        lines: [
          ...same(17, 19),
          { type: 'removed', text: 'line 20' },
          { type: 'added', text: 'line twenty' },
          { type: 'added', text: 'and more' },
          ...same(21, 23),
        ],
      },
    ],
  });
  const back = (await compare('1/comparison?base=2')).body;
  assert.deepEqual([back.removed_lines, back.added_lines, back.title], [2, 1, { before: 'B', after: 'A' }]);
  const wrong = await compare('1/comparison');
  assert.deepEqual([wrong.status, (wrong.body as ErrorBody).error.fields?.[0]?.field], [422, 'base']);
  assert.equal((await compare('2/comparison?base=9')).status, 422);
  await replace(document, Array.from({ length: 6_000 }, (_line, i) => `new ${i}`).join('\n'));
  const large = (await compare('3/comparison')).body;
  assert.deepEqual([large.truncated, large.removed_lines, large.added_lines], [true, 41, 6_000]);
});

test('a version becomes the newest one, and a deleted document comes back', async () => {
  const source = await app.createSource(keeping);
  const document = await app.push(source, 'Herons wade.', { title: 'Birds', metadata: { shelf: 1 } });
  const before = (await app.send<Json>('GET', `/knowledge_documents/${document}`)).body;
  await replace(document, 'Newts swim.', { title: 'Newts' });
  const path = `/knowledge_documents/${document}/versions`;
  const again = await app.send('POST', `${path}/2/restore`);
  assert.equal(again.status, 409, again.text);
  const ingestion = await restored(`${path}/1/restore`);
  assert.deepEqual([ingestion.status, ingestion.metadata], ['succeeded', { document, restored_version: 1 }]);
  const { updated_at, version, ...now } = (await app.send<Json>('GET', `/knowledge_documents/${document}`)).body;
  assert.equal(version, 3);
  assert.deepEqual({ ...now, updated_at: before.updated_at, version: 1 }, before);
  assert.equal((await app.search(source, 'herons'))[0]?.document, document);
  await remove(document);
  assert.deepEqual(await app.search(source, 'herons'), []);
  const [gone] = await versionsOf(document);
  assert.deepEqual([gone?.version, gone?.current, typeof gone?.deleted_at], [3, false, 'string']);
  const deleted = await app.send<List>('GET', `/knowledge_sources/${source}/deleted_documents`);
  assert.deepEqual(deleted.body.data, [gone]);
  assert.equal((await restored(`${path}/2/restore`)).status, 'succeeded');
  assert.equal(await textOf(document), 'Newts swim.');
  assert.deepEqual(await numbersOf(document), [4, 3, 2, 1]);
  assert.equal((await app.send<List>('GET', `/knowledge_sources/${source}/deleted_documents`)).body.total_entries, 0);
  const found = (await app.send<Json>('GET', `/knowledge_documents/${document}`)).body;
  assert.deepEqual([found.created_at, found.title], [before.created_at, 'Newts']);
});

test('a source keeps nothing by default, and nothing beyond its retention', async () => {
  const source = await app.createSource({ org: world.org.id });
  const shown = async () => (await app.send<Json>('GET', `/knowledge_sources/${source}`)).body;
  assert.equal('version_retention_days' in (await shown()), false);
  const document = await app.push(source, 'one');
  await replace(document, 'two');
  assert.deepEqual(await numbersOf(document), [2]);
  assert.equal('version' in (await app.send<Json>('GET', `/knowledge_documents/${document}`)).body, false);
  const set = (days: number | null) =>
    app.send<Json>('PATCH', `/knowledge_sources/${source}`, { version_retention_days: days });
  for (const days of [0, 3_651, 1.5]) assert.equal((await set(days as number)).status, 422);
  const on = await set(10);
  assert.deepEqual([on.body.version_retention_days, typeof on.body.versions_from], [10, 'string']);
  await replace(document, 'three');
  assert.deepEqual(await numbersOf(document), [3, 2]);
  // A shorter time applies immediately; the rows go with the next sweep.
  aheadMs = 3 * dayMs;
  await set(2);
  assert.deepEqual(await numbersOf(document), [3]);
  await set(10);
  aheadMs = 11 * dayMs;
  assert.deepEqual(await numbersOf(document), [3]);
  const rows = async () => {
    const [row] = await db<[{ versions: number; texts: number }]>`
      select (select count(*)::integer from knowledge_versions where document_id = ${uuidOf(document)}) as versions,
        (select count(*)::integer from knowledge_version_texts where source_id = ${parseId('source', source) ?? ''})
          as texts`;
    return row;
  };
  assert.deepEqual(await rows(), { versions: 1, texts: 1 });
  await sweepVersions(db, clock.now());
  assert.deepEqual(await rows(), { versions: 0, texts: 0 });
  aheadMs = 0;
  // What was kept before a pause does not come back with it.
  await replace(document, 'four');
  assert.equal('version_retention_days' in (await set(null)).body, false);
  assert.deepEqual(await numbersOf(document), [4]);
  await set(5);
  assert.deepEqual(await numbersOf(document), [4]);
  await sweepVersions(db, clock.now());
  assert.deepEqual(await rows(), { versions: 0, texts: 0 });
  // Nothing is left to do for a source that stopped.
  await replace(document, 'five');
  await set(null);
  await sweepVersions(db, clock.now());
  assert.deepEqual(await rows(), { versions: 0, texts: 0 });
  const [{ from }] = await db<[{ from: Date | null }]>`
    select versions_from as from from knowledge_sources where id = ${parseId('source', source) ?? ''}`;
  assert.equal(from, null);
});

test('equal texts are stored once, and the oldest versions make room', async () => {
  const source = await app.createSource(keeping);
  const document = await app.push(source, 'one', { metadata: { n: 0 } });
  for (const n of [1, 2]) await replace(document, 'one', { metadata: { n } });
  await replace(document, 'two');
  const [texts] = await db<[{ total: number }]>`
    select count(*)::integer as total from knowledge_version_texts where source_id = ${parseId('source', source) ?? ''}`;
  assert.equal(texts.total, 1);
  await db`
    insert into knowledge_versions (app_id, document_id, number, source_id, metadata, bytes_hash, content_hash,
      total_lines, total_size, created_at, started_at, ended_at, is_deletion)
    select app_id, document_id, n, source_id, metadata, bytes_hash, content_hash, total_lines, total_size, created_at,
      started_at, ended_at, false
    from knowledge_versions cross join generate_series(10, 1008) n where document_id = ${uuidOf(document)} and number = 1`;
  await db`update knowledge_documents set version = 1009 where id = ${uuidOf(document)}`;
  await replace(document, 'three');
  const counts = async () => {
    const [row] = await db<[{ total: number; first: number }]>`
      select count(*)::integer as total, min(number) as first from knowledge_versions
      where document_id = ${uuidOf(document)}`;
    return row;
  };
  assert.deepEqual(await counts(), { total: 1_000, first: 10 });
  // Beyond the bytes of a document too. The newest of the old ones always stays.
  await db`update knowledge_versions set total_size = 268435456 where document_id = ${uuidOf(document)} and number = 1009`;
  await replace(document, 'four');
  assert.deepEqual(await counts(), { total: 2, first: 1_009 });
  const count = async () => {
    const [row] = await db<[{ total: number }]>`select count(*)::integer as total from knowledge_versions`;
    return row.total;
  };
  const all = await count();
  await sweepVersions(db, clock.now(), all - 1);
  const left = await count();
  assert.ok(left < all && left >= all - 2, `${left} of ${all}`);
});

test('those who may read a document now read what it was, and only those who may change its source what was deleted', async () => {
  const source = await app.createSource(keeping);
  const grants = (user: { id: string }) => ({ grants: [{ principal_type: 'user', principal: user.id }] });
  const document = await app.push(source, 'open');
  await replace(document, 'secret', { acl: grants(admin) });
  const open = await app.push(source, 'for all');
  await replace(open, 'for all of us');
  const paths = (id: string) => ['', '/1', '/2/comparison'].map((path) => `/knowledge_documents/${id}/versions${path}`);
  const read = async (client: Client, id: string) => Promise.all(paths(id).map((path) => statusOf(path, client)));
  const restore = async (client: Client, id: string, number: number) =>
    (await client.send('POST', `/knowledge_documents/${id}/versions/${number}/restore`)).status;
  // The first version was open; today's readers count.
  assert.deepEqual(await read(as(member), document), [404, 404, 404]);
  assert.deepEqual(await read(as(admin), document), [200, 200, 200]);
  assert.deepEqual(await read(as(viewer), open), [200, 200, 200]);
  assert.deepEqual([await restore(as(viewer), open, 1), await restore(as(member), document, 1)], [403, 404]);
  await app.send('DELETE', `/knowledge_documents/${document}/acl`);
  assert.deepEqual(await read(as(viewer), document), [200, 200, 200]);
  const set = await app.send('PATCH', `/knowledge_documents/${document}/acl`, grants(admin));
  assert.equal(set.status, 200, set.text);
  for (const id of [document, open]) await remove(id);
  assert.deepEqual(await read(as(member), document), [404, 404, 404]);
  assert.deepEqual(await read(as(admin), document), [200, 200, 200]);
  assert.deepEqual(await read(as(member), open), [200, 200, 200]);
  assert.deepEqual(await read(as(viewer), open), [404, 404, 404]);
  const deleted = async (client: Client) => {
    const { status, body } = await client.send<List>('GET', `/knowledge_sources/${source}/deleted_documents`);
    return status === 200 ? body.data.map((each) => each.document) : status;
  };
  assert.deepEqual(await deleted(as(member)), [open]);
  assert.deepEqual(await deleted(as(admin)), [open, document]);
  assert.deepEqual([await deleted(as(viewer)), await deleted(as(world.otherUser))], [403, 404]);
  assert.equal(await restore(as(member), document, 1), 404);
  // It comes back with the readers that it had.
  await restored(`/knowledge_documents/${document}/versions/1/restore`, undefined, as(admin));
  assert.deepEqual(await read(as(member), document), [404, 404, 404]);
  const { body } = await app.send<Json>('GET', `/knowledge_documents/${document}`);
  assert.equal((body.acl as { grants: Json[] }).grants[0]?.principal, admin.id);
});

test('a source is brought back to a time: changes, deletions and new documents', async () => {
  const source = await app.createSource(keeping);
  const [kept, changed, deleted] = [
    await app.push(source, 'kept'),
    await app.push(source, 'before', { title: 'Before' }),
    await app.push(source, 'deleted'),
  ];
  const at = await moment();
  await replace(changed, 'after', { title: 'After' });
  await remove(deleted);
  const created = await app.push(source, 'created');
  const passing = await app.push(source, 'passing');
  await remove(passing);
  const path = `/knowledge_sources/${source}/restore`;
  const plan = await app.send<Json>('GET', `${path}?at=${at}`);
  assert.deepEqual(plan.body, { at, documents: 3, changed: 1, created: 1, deleted: 1, unknown: 0 });
  const later = await moment();
  const ingestion = await restored(path, { at });
  assert.equal(ingestion.status, 'succeeded');
  assert.deepEqual(
    [ingestion.stats.documents, ingestion.stats.removed, ingestion.metadata],
    [2, 1, { restored_to: at }],
  );
  const texts = async () => {
    const { body } = await app.send<List>('GET', `/knowledge_documents?source=${source}`);
    const all = await Promise.all((body.data as unknown as { id: string }[]).map(({ id }) => textOf(id)));
    return all.sort();
  };
  assert.deepEqual(await texts(), ['before', 'deleted', 'kept']);
  assert.deepEqual(await numbersOf(kept), [1]);
  assert.deepEqual((await app.send<Json>('GET', `${path}?at=${at}`)).body, {
    ...{ at, documents: 3, changed: 0, created: 0, deleted: 0, unknown: 0 },
  });
  // The restore itself can be undone.
  await restored(path, { at: later });
  assert.deepEqual(await texts(), ['after', 'created', 'kept']);
  assert.equal(await textOf(created), 'created');
  const wrong = async (time: string) => (await app.send<ErrorBody>('POST', path, { at: time })).body.error.fields?.[0];
  for (const time of ['yesterday', '2020-01-01', new Date(Date.now() + dayMs).toISOString()])
    assert.equal((await wrong(time))?.field, 'at', time);
  const none = await app.createSource({ org: world.org.id });
  assert.equal((await app.send('GET', `/knowledge_sources/${none}/restore?at=${at}`)).status, 422);
});

test('restoring a source asks before it deletes most of it, and leaves alone what the caller does not see', async () => {
  const source = await app.createSource(keeping);
  const at = await moment();
  const seen = await app.push(source, 'seen');
  const acl = { grants: [{ principal_type: 'user', principal: admin.id }] };
  const hidden = await app.push(source, 'hidden', { acl });
  await replace(hidden, 'still hidden');
  const path = `/knowledge_sources/${source}/restore`;
  const plan = await as(member).send<Json>('GET', `${path}?at=${at}`);
  assert.deepEqual(plan.body, { at, documents: 1, changed: 0, created: 0, deleted: 1, unknown: 0 });
  const refused = await as(member).send<ErrorBody>('POST', path, { at });
  assert.deepEqual([refused.status, refused.body.error.details], [409, { deleted: 1, documents: 1 }]);
  assert.equal((await as(viewer).send('POST', path, { at })).status, 403);
  assert.equal((await as(world.otherUser).send('GET', `${path}?at=${at}`)).status, 404);
  const ingestion = await restored(path, { at, confirm_deletions: true }, as(member));
  assert.deepEqual([ingestion.status, ingestion.stats.removed], ['succeeded', 1]);
  assert.equal(await statusOf(`/knowledge_documents/${seen}`, app), 404);
  assert.equal(await textOf(hidden), 'still hidden');
});

test('a citation is checked against the version that it names', async () => {
  const source = await app.createSource(keeping);
  const document = await app.push(source, 'The heron eats newts and small fish at dusk.');
  await replace(document, 'The heron eats frogs and small fish at dawn.');
  const quotes = ['heron eats newts and small fish'];
  type Checked = { statement: { quotes: Json[] } };
  const verify = async (more: Json, client: Client = app) => {
    const checked = await client.send<Checked>('POST', '/citations/verify', { quotes, documents: [document], ...more });
    return checked.status === 200 ? checked.body.statement.quotes[0] : wrongField(checked);
  };
  const wrongField = ({ status, body }: { status: number; body: object }) =>
    status === 422 ? (body as ErrorBody).error.fields[0]?.field : status;
  const now = (await verify({})) as Json;
  assert.deepEqual([now.status, now.version], ['altered', 2]);
  const then = (await verify({ versions: [{ document, version: 1 }] })) as Json;
  assert.deepEqual([then.status, then.version], ['exact', 1]);
  const other = await app.push(source, 'other');
  const twice = [1, 2].map((version) => ({ document, version }));
  assert.equal(await verify({ versions: [{ document: other, version: 1 }] }), 'versions.0.document');
  assert.equal(await verify({ versions: [{ document, version: 9 }] }), 'versions.0.version');
  assert.equal(await verify({ versions: twice }), 'versions.1.document');
  assert.equal(await verify({ versions: [{ document, version: 1 }], boxes: true }), 'boxes');
  const acl = { grants: [{ principal_type: 'user', principal: admin.id }] };
  await app.send('PATCH', `/knowledge_documents/${document}/acl`, acl);
  assert.equal(await verify({ versions: [{ document, version: 1 }] }, as(member)), 'documents.0');
});
