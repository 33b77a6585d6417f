import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { correctDrift, type Drift, deleteOldCounts, findDrift, setOperatorLimit } from '../../../src/usage/store.ts';
import { extractUrl } from '../../support/extractions.ts';
import { htmlPage, type SitePages, startSite } from '../../support/fixture-site.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

type Measured = { used: number; limit: number | null };
type Usage = { file_bytes: Measured; documents: Measured; pages: Measured & { resets_at: string } };

const defaultBytes = 1_000_000;
const server = await startTestServer({
  env: {
    QUARRY_FETCH_ALLOW: '127.0.0.0/8',
    QUARRY_QUOTA_FILE_BYTES: String(defaultBytes),
    QUARRY_CRAWL_CONCURRENCY: '4',
  },
});
const { api, provision, db } = server;
const site = await startSite(pagesOf(12));
after(async () => {
  await server.close();
  await site.close();
});

/** A start page that links to so many others. */
function pagesOf(count: number): SitePages {
  const others = Array.from({ length: count - 1 }, (_, i) => `/p${i}`);
  const links = others.map((path) => `<a href="${path}">${path}</a>`).join(' ');
  return Object.fromEntries(
    ['/', ...others].map((path) => [
      path,
      htmlPage(`<h1>${path}</h1><p>The page at ${path}.</p>${path === '/' ? links : ''}`),
    ]),
  );
}

const usageOf = async (key: string) => (await api<Usage>('GET', '/api/v1/usage', { key })).body;

function bound(app: TestApp, quotas: Record<string, number | null>) {
  return api<ErrorBody>('PATCH', `/protected/api/v1/developer/apps/${app.app.id}`, {
    token: app.developerToken,
    body: { quotas },
  });
}

function upload(key: string, bytes: number) {
  const body = {
    filename: 'a.bin',
    content_type: 'application/octet-stream',
    data: Buffer.alloc(bytes).toString('base64'),
  };
  return api<ErrorBody & { id: string }>('POST', '/api/v1/files', { key, body });
}

async function bounded(quotas: Record<string, number>): Promise<TestApp> {
  const app = await provision.app();
  assert.equal((await bound(app, quotas)).status, 200);
  return app;
}

test('files fit up to the last byte, one more is 422 naming the quota, and deleting frees quota', async () => {
  const app = await bounded({ file_bytes: 1_000 });
  const first = await upload(app.secretKey, 600);
  assert.equal(first.status, 201);
  const refused = await upload(app.secretKey, 401);
  assert.deepEqual([refused.status, refused.body.error.code], [422, 'quota_exceeded']);
  assert.deepEqual(refused.body.error.details, { quota: 'file_bytes', limit: 1_000, used: 600, requested: 401 });
  assert.equal((await upload(app.secretKey, 400)).status, 201);
  assert.deepEqual((await usageOf(app.secretKey)).file_bytes, { used: 1_000, limit: 1_000 });
  assert.equal((await upload(app.secretKey, 1)).status, 422);

  assert.equal((await api('DELETE', `/api/v1/files/${first.body.id}`, { key: app.secretKey })).status, 204);
  assert.equal((await usageOf(app.secretKey)).file_bytes.used, 400);
  assert.equal((await upload(app.secretKey, 600)).status, 201);
});

test('a refused file leaves nothing behind', async () => {
  const app = await bounded({ file_bytes: 10 });
  assert.equal((await upload(app.secretKey, 11)).status, 422);
  const raw = await api('POST', '/api/v1/files/uploads', {
    key: app.secretKey,
    body: Buffer.alloc(11),
    headers: { 'x-filename': 'a', 'content-type': 'application/octet-stream' },
  });
  assert.equal(raw.status, 422);
  const rows = await db`select 1 from doomed_blobs where app_id = ${app.app.uuid}`;
  assert.equal(rows.length, 0);
  for await (const { key } of server.services.blobs.list()) assert.ok(!key.startsWith(app.app.uuid), key);
});

test('an agent or an org is written with its picture or not at all', async () => {
  const app = await bounded({ file_bytes: 10 });
  const key = app.secretKey;
  const picture = { data: Buffer.alloc(11).toString('base64'), filename: 'p.png', mime_type: 'image/png' };
  const small = { ...picture, data: '' };
  for (const [path, member] of [
    ['/api/v1/agents', 'profile_picture'],
    ['/api/v1/orgs', 'logo'],
  ] as const) {
    const list = async () => (await api<{ data: { name: string }[] }>('GET', path, { key })).body.data;
    const before = await list();
    const refused = await api<ErrorBody>('POST', path, { key, body: { name: 'New', [member]: picture } });
    assert.deepEqual([refused.status, refused.body.error.code], [422, 'quota_exceeded']);
    assert.deepEqual(await list(), before);
    const made = await api<{ id: string }>('POST', path, { key, body: { name: 'Old', [member]: small } });
    assert.equal(made.status, 201, made.text);
    const change = { name: 'Changed', [member]: picture };
    assert.equal((await api('PATCH', `${path}/${made.body.id}`, { key, body: change })).status, 422);
    const after = await api<Record<string, unknown>>('GET', `${path}/${made.body.id}`, { key });
    assert.equal(after.body.name, 'Old');
    assert.ok(after.body[member], 'the picture stays');
  }
  assert.equal((await db`select 1 from doomed_blobs where app_id = ${app.app.uuid}`).length, 0);
});

test('many concurrent uploads never exceed the quota, and use all of it', async () => {
  const app = await bounded({ file_bytes: 1_000 });
  const answers = await Promise.all(Array.from({ length: 30 }, () => upload(app.secretKey, 100)));
  assert.equal(answers.filter(({ status }) => status === 201).length, 10);
  assert.ok(answers.every(({ status, body }) => status === 201 || body.error.code === 'quota_exceeded'));
  assert.equal((await usageOf(app.secretKey)).file_bytes.used, 1_000);
});

test('an open write of an app does not delay its other writes while no limit is near', async () => {
  const app = await provision.app();
  await db.begin(async (tx) => {
    await tx`select app_use(${app.app.uuid}, ${app.sandboxUuid}, 'documents', 5)`;
    await tx`select app_use(${app.app.uuid}, ${app.sandboxUuid}, 'pages', 5)`;
    // Would never come back if it needed anything that the open transaction holds.
    const knowledge = knowledgeOf(server, { key: app.secretKey });
    const source = await knowledge.createSource({ org: (await provision.org(app)).id });
    await knowledge.push(source, 'Text.');
    await tx`select app_use(${app.app.uuid}, ${app.sandboxUuid}, 'documents', -5)`;
  });
  assert.equal((await usageOf(app.secretKey)).documents.used, 1);
});

test('documents are limited, the failed ingestion says why, and deleting a source frees its share', async () => {
  const app = await bounded({ documents: 3 });
  const knowledge = knowledgeOf(server, { key: app.secretKey });
  const source = await knowledge.createSource({ org: (await provision.org(app)).id });
  await knowledge.push(source, 'One.');
  const batch = await knowledge.ingest(
    source,
    { items: ['Two.', 'Three.', 'Four.'].map((data) => ({ content: { data } })) },
    'ingest/batch',
  );
  assert.equal(batch.status, 'succeeded');
  assert.deepEqual([batch.stats.documents, batch.stats.failed], [2, 1]);
  assert.equal((batch.metadata.items?.[2]?.error as { code: string } | undefined)?.code, 'quota_exceeded');

  const refused = await knowledge.send<ErrorBody>('POST', `/knowledge_sources/${source}/ingest`, {
    content: { data: 'Five.' },
  });
  assert.deepEqual([refused.status, refused.body.error.code], [422, 'quota_exceeded']);
  assert.deepEqual(refused.body.error.details, { quota: 'documents', limit: 3, used: 3, requested: 1 });
  // What replaces a document needs no room.
  const [document] = (await knowledge.send<{ data: { id: string }[] }>('GET', '/knowledge_documents')).body.data;
  const replaced = await knowledge.send('PATCH', `/knowledge_documents/${document?.id}`, { content: { data: 'One!' } });
  assert.equal(replaced.status, 201);

  assert.equal((await knowledge.send('DELETE', `/knowledge_sources/${source}`)).status, 204);
  assert.deepEqual((await usageOf(app.secretKey)).documents, { used: 0, limit: 3 });
});

test('a crawl that reaches the page quota ends with the reason and keeps its pages; the next is refused', async () => {
  const app = await bounded({ pages: 5 });
  const crawled = await extractUrl(server, app.secretKey, { url: site.origin });
  assert.deepEqual([crawled.state, crawled.error?.code], ['failed', 'quota_exceeded']);
  assert.equal(crawled.outputs.filter(({ state, file }) => state === 'done' && file !== undefined).length, 5);
  const { pages } = await usageOf(app.secretKey);
  assert.deepEqual([pages.used, pages.limit], [5, 5]);
  assert.match(pages.resets_at, /T00:00:00\.000Z$/);
  const refused = await api<ErrorBody>('POST', '/api/v1/extractions', {
    key: app.secretKey,
    body: { url: site.origin, mode: 'link', destination_kind: 'storage' },
  });
  assert.deepEqual([refused.status, refused.body.error.details.quota], [422, 'pages']);
});

test('a pull that reaches a quota fails with the reason and keeps its documents', async () => {
  for (const [quota, used] of [
    ['pages', 5],
    ['documents', 5],
  ] as const) {
    const app = await bounded({ [quota]: 5 });
    const knowledge = knowledgeOf(server, { key: app.secretKey });
    const source = await knowledge.createSource({
      type: 'scrape/site',
      org: (await provision.org(app)).id,
      payload: { url: site.origin },
    });
    const pulled = await knowledge.ingest(source, { pull: true });
    assert.deepEqual([pulled.status, pulled.error?.code], ['failed', 'quota_exceeded'], quota);
    const usage = await usageOf(app.secretKey);
    assert.deepEqual([usage[quota].used, usage.documents.used], [used, 5], quota);
  }
});

test('each extracted document counts as one page', async () => {
  const app = await bounded({ pages: 1 });
  const file = await api<{ id: string }>('POST', '/api/v1/files', {
    key: app.secretKey,
    body: { filename: 'a.txt', content_type: 'text/plain', data: Buffer.from('Text.').toString('base64') },
  });
  const extract = () =>
    api<ErrorBody>('POST', '/api/v1/extractions', {
      key: app.secretKey,
      body: { file: file.body.id, destination_kind: 'storage' },
    });
  const answers = await Promise.all([extract(), extract(), extract()]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 422, 422]);
});

test('apps and sandboxes are counted separately, and deleting a sandbox deletes its counts', async () => {
  const app = await bounded({ file_bytes: 100 });
  const other = await bounded({ file_bytes: 100 });
  const sandbox = await provision.sandbox(app);
  for (const key of [app.secretKey, sandbox.secretKey, other.secretKey])
    assert.equal((await upload(key, 90)).status, 201);
  assert.equal((await upload(sandbox.secretKey, 20)).status, 422);
  assert.deepEqual((await usageOf(sandbox.secretKey)).file_bytes, { used: 90, limit: 100 });
  const gone = await api('DELETE', `/api/v1/sandboxes/${sandbox.sandbox.id}`, { key: app.secretKey });
  assert.equal(gone.status, 204);
  const left = async () => (await db`select from app_usage where sandbox_id = ${sandbox.sandbox.uuid}`).count;
  await until(async () => (await left()) === 0);
  assert.equal((await usageOf(app.secretKey)).file_bytes.used, 90);
});

test('sandboxes are limited, so that they cannot circumvent the other limits', async () => {
  const app = await bounded({ sandboxes: 1 });
  const create = () =>
    api<ErrorBody & { id: string }>('POST', '/api/v1/sandboxes', { key: app.secretKey, body: { name: 'Sandbox' } });
  const first = await create();
  assert.equal(first.status, 201);
  const second = await create();
  assert.deepEqual([second.status, second.body.error.details.quota], [422, 'sandboxes']);
  assert.equal((await api('DELETE', `/api/v1/sandboxes/${first.body.id}`, { key: app.secretKey })).status, 204);
  assert.equal((await create()).status, 201);
});

test('old daily counts are deleted, those of today stay', async () => {
  const app = await provision.app();
  await db`select app_use(${app.app.uuid}, ${app.sandboxUuid}, 'pages', 5)`;
  await db`insert into app_usage (app_id, sandbox_id, measure, period, part, used)
    values (${app.app.uuid}, ${app.sandboxUuid}, 'pages', current_date - 40, 1, 7)`;
  await deleteOldCounts(db, 31);
  const rows = await db<{ used: number }[]>`select used from app_usage where app_id = ${app.app.uuid}`;
  assert.deepEqual(
    rows.map(({ used }) => used),
    [5],
  );
});

test('developers may only lower the operator’s limits', async () => {
  const app = await provision.app();
  assert.equal((await usageOf(app.secretKey)).file_bytes.limit, defaultBytes);
  const wider = await bound(app, { file_bytes: defaultBytes + 1 });
  assert.deepEqual([wider.status, wider.body.error.fields[0]?.field], [422, 'quotas.file_bytes']);
  assert.equal((await bound(app, { file_bytes: 5 })).status, 200);
  assert.equal((await usageOf(app.secretKey)).file_bytes.limit, 5);
  assert.equal((await bound(app, { file_bytes: null })).status, 200);

  await setOperatorLimit(db, app.app.uuid, 'file_bytes', 2 * defaultBytes);
  assert.equal((await bound(app, { file_bytes: defaultBytes + 1 })).status, 200);
  await setOperatorLimit(db, app.app.uuid, 'file_bytes', 7);
  assert.equal((await usageOf(app.secretKey)).file_bytes.limit, 7);
  assert.equal((await upload(app.secretKey, 8)).status, 422);
  for (const wrong of [{ file_bytes: -1 }, { file_bytes: '5' }, { bytes: 5 }])
    assert.equal((await bound(app, wrong as Record<string, number>)).status, 422);
});

test('the counts match the stored rows, and are repaired when they do not', async () => {
  assert.deepEqual(await drift(false), []);
  const app = await provision.app();
  await upload(app.secretKey, 10);
  await db`update app_usage set used = 3 where app_id = ${app.app.uuid}`;
  const [wrong] = await drift(true);
  assert.deepEqual([wrong?.appId, wrong?.booked, wrong?.counted], [app.app.uuid, 3, 10]);
  assert.deepEqual(await drift(false), []);
  assert.equal((await usageOf(app.secretKey)).file_bytes.used, 10);
});

function drift(repair: boolean): Promise<Drift[]> {
  return db.begin(async (tx) => {
    const found = await findDrift(tx);
    if (repair) await correctDrift(tx, found);
    return found;
  });
}
