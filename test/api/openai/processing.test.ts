import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { after, test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* Lists, batches, failures and limits of the surface under /v1, with the official client. */

// The first process has no workers, so that a test decides when files are processed.
const server = await startTestServer({ env: { QUARRY_ROLE: 'http', DATABASE_URL: 'postgres://unused/unused' } });
const { api, db, provision } = server;
after(() => server.close());
const app = await provision.app();
const clientOf = (apiKey: string, baseUrl = server.baseUrl) =>
  new OpenAI({ apiKey, baseURL: `${baseUrl}/v1`, maxRetries: 0 });
const client = clientOf(app.secretKey);
const textFile = (name: string, text: string) => toFile(Buffer.from(text), name, { type: 'text/markdown' });
const upload = async (name = 'a.md', text = 'Text.') =>
  (await client.files.create({ file: await textFile(name, text), purpose: 'assistants' })).id;
const newStore = async () => (await client.vectorStores.create({ name: 'Store' })).id;
const idsOf = async <T extends { id: string }>(items: AsyncIterable<T>): Promise<string[]> =>
  (await Array.fromAsync(items)).map(({ id }) => id);
const poll = { pollIntervalMs: 20 };

/** Runs the jobs that wait, in another process. */
async function withWorkers<T>(work: () => Promise<T>): Promise<T> {
  const workers = await startTestServer({ beside: server });
  try {
    return await work();
  } finally {
    await workers.close();
  }
}

test('the iterators of the client find everything, in both directions, and while it deletes what it finds', async () => {
  const own = clientOf((await provision.app()).secretKey);
  const made: string[] = [];
  for (let i = 0; i < 5; i++)
    made.push(
      (await own.files.create({ file: await textFile(`${i}.md`, 'x'), purpose: i === 2 ? 'vision' : 'user_data' })).id,
    );
  assert.deepEqual(await idsOf(own.files.list({ limit: 2 })), made.toReversed());
  assert.deepEqual(await idsOf(own.files.list({ limit: 2, order: 'asc' })), made);
  assert.deepEqual(await idsOf(own.files.list({ purpose: 'vision' })), [made[2]]);
  const page = await own.files.list({ limit: 2, order: 'asc' });
  assert.deepEqual([page.has_more, page.data.length], [true, 2]);

  const stores = await Promise.all([1, 2, 3].map(async () => (await own.vectorStores.create({})).id));
  const sorted = stores.toSorted();
  assert.deepEqual(await idsOf(own.vectorStores.list({ limit: 1, order: 'asc' })), sorted);
  const before = await own.vectorStores.list({ before: sorted[2] ?? '', order: 'asc', limit: 1 });
  assert.deepEqual([before.data.map(({ id }) => id), before.has_more], [[sorted[1]], true]);

  for await (const file of own.files.list({ limit: 2 })) await own.files.delete(file.id);
  assert.deepEqual(await idsOf(own.files.list()), []);
});

test('a batch attaches files, counts them while they are processed, and says which failed and why', async () => {
  const store = await newStore();
  const good = await upload('good.md', 'Good words.');
  const broken = (
    await client.files.create({
      file: await toFile(Buffer.from('%PDF-1.7 broken'), 'a.pdf', { type: 'application/pdf' }),
      purpose: 'assistants',
    })
  ).id;
  const begun = await client.vectorStores.fileBatches.create(store, {
    files: [{ file_id: good, attributes: { a: 'b' } }, { file_id: broken }],
  });
  assert.match(begun.id, /^vsfb_/);
  assert.deepEqual([begun.status, begun.file_counts.in_progress, begun.file_counts.total], ['in_progress', 2, 2]);
  const at = { vector_store_id: store };
  const pending = await client.vectorStores.files.retrieve(good, at).withResponse();
  assert.deepEqual(
    [pending.data.status, pending.data.attributes, pending.response.headers.get('openai-poll-after-ms')],
    ['in_progress', { a: 'b' }, '500'],
  );
  assert.equal((await client.vectorStores.retrieve(store)).status, 'in_progress');
  // What is being processed is neither changed nor removed.
  await assert.rejects(client.vectorStores.files.delete(good, at), OpenAI.ConflictError);
  await assert.rejects(client.vectorStores.files.update(good, { ...at, attributes: {} }), OpenAI.ConflictError);
  assert.equal((await client.vectorStores.files.create(store, { file_id: good })).status, 'in_progress');

  const done = await withWorkers(() => client.vectorStores.fileBatches.poll(store, begun.id, poll));
  assert.deepEqual(done.file_counts, { in_progress: 0, completed: 1, failed: 1, cancelled: 0, total: 2 });
  assert.equal(done.status, 'completed');
  const failed = await client.vectorStores.files.retrieve(broken, at);
  assert.deepEqual([failed.status, failed.last_error?.code], ['failed', 'invalid_file']);
  assert.ok((failed.last_error?.message.length ?? 0) > 0);
  const listed = (filter: 'completed' | 'failed') => idsOf(client.vectorStores.files.list(store, { filter }));
  assert.deepEqual([await listed('completed'), await listed('failed')], [[good], [broken]]);
  assert.deepEqual(
    (await idsOf(client.vectorStores.fileBatches.listFiles(begun.id, { ...at, limit: 1 }))).toSorted(),
    [good, broken].toSorted(),
  );
  // A file that failed can be removed, and tried again.
  await client.vectorStores.files.delete(broken, at);
  await assert.rejects(client.vectorStores.files.retrieve(broken, at), OpenAI.NotFoundError);
  const again = await client.vectorStores.files.create(store, { file_id: broken });
  assert.equal(again.status, 'in_progress');
  const retried = await withWorkers(() => client.vectorStores.files.poll(store, broken, poll));
  assert.equal(retried.status, 'failed');
  assert.equal((await client.vectorStores.retrieve(store)).file_counts.failed, 1);
});

test('uploadAndPoll of batches, and a store that is created with files', async () => {
  await withWorkers(async () => {
    const store = await newStore();
    const files = await Promise.all(
      ['one', 'two', 'three'].map((word) => textFile(`${word}.md`, `The word is ${word}.`)),
    );
    const batch = await client.vectorStores.fileBatches.uploadAndPoll(store, { files }, poll);
    assert.deepEqual([batch.status, batch.file_counts.completed], ['completed', 3]);
    const ids = await idsOf(client.vectorStores.files.list(store));
    const other = await client.vectorStores.create({ file_ids: ids });
    assert.deepEqual([other.status, other.file_counts.total], ['in_progress', 3]);
    for (const id of ids) await client.vectorStores.files.poll(other.id, id, poll);
    assert.equal((await client.vectorStores.retrieve(other.id)).file_counts.completed, 3);
    // A file that is attached stays as it is, with the new attributes; in a batch, it is made again.
    const [first = ''] = ids;
    const changed = await client.vectorStores.files.create(other.id, { file_id: first, attributes: { n: 1 } });
    assert.deepEqual([changed.status, changed.attributes], ['completed', { n: 1 }]);
    await client.vectorStores.fileBatches.createAndPoll(other.id, { file_ids: ids }, poll);
    const kept = await client.vectorStores.files.retrieve(first, { vector_store_id: other.id });
    assert.deepEqual([kept.status, kept.attributes], ['completed', { n: 1 }]);
    assert.equal((await client.vectorStores.retrieve(other.id)).file_counts.total, 3);
    // A deleted file leaves every store.
    await client.files.delete(first);
    for (const id of [store, other.id]) {
      const { file_counts: counts } = await client.vectorStores.retrieve(id);
      assert.equal(counts.total, 2);
    }
    // What cannot be attached leaves no store behind.
    const before = await idsOf(client.vectorStores.list());
    await assert.rejects(client.vectorStores.create({ file_ids: [first] }), OpenAI.NotFoundError);
    assert.deepEqual(await idsOf(client.vectorStores.list()), before);
  });
});

test('a vector store and its files appear together, so that a process that ends before leaves neither', async () => {
  const own = await provision.app();
  const mine = clientOf(own.secretKey);
  const file = await mine.files.create({ file: await textFile('a.md', 'Text.'), purpose: 'assistants' });
  const lock = await db.reserve();
  await lock.runScript('begin; lock table knowledge_ingestions in share mode');
  const created = mine.vectorStores.create({ file_ids: [file.id] });
  const waiting = () => db`
    select 1 from pg_locks where relation = 'knowledge_ingestions'::regclass and not granted
      and database = (select oid from pg_database where datname = current_database())`;
  await until(async () => (await waiting()).length > 0);
  const early = await db`select id from knowledge_sources where app_id = ${own.app.uuid}`;
  await lock.runScript('commit');
  lock.release();
  const store = await created;
  assert.equal(early.length, 0);
  assert.deepEqual([store.file_counts.total, await idsOf(mine.vectorStores.list())], [1, [store.id]]);
});

test('a cancelled batch ends, its files are cancelled, and the next one begins', async () => {
  const store = await newStore();
  const files = [await upload('1.md'), await upload('2.md')];
  const at = { vector_store_id: store };
  const batch = await client.vectorStores.fileBatches.create(store, { file_ids: files });
  const next = await client.vectorStores.fileBatches.create(store, { file_ids: [await upload('3.md')] });
  const cancelled = await client.vectorStores.fileBatches.cancel(batch.id, at);
  assert.deepEqual([cancelled.status, cancelled.file_counts.cancelled], ['cancelled', 2]);
  assert.deepEqual(await client.vectorStores.fileBatches.cancel(batch.id, at), cancelled);
  const { status, last_error: error } = await client.vectorStores.files.retrieve(files[0] ?? '', at);
  assert.deepEqual([status, error], ['cancelled', null]);
  const ended = await withWorkers(() => client.vectorStores.fileBatches.poll(store, next.id, poll));
  assert.equal(ended.status, 'completed');
  const { file_counts: counts } = await client.vectorStores.retrieve(store);
  assert.deepEqual(counts, { in_progress: 0, completed: 1, failed: 0, cancelled: 2, total: 3 });
  const { body } = await api('GET', `/api/v1/knowledge_ingestions/${batch.id.replace('vsfb_', 'cig_')}`, {
    key: app.secretKey,
  });
  assert.deepEqual(
    [body.status, (body.error as { code: string }).code, (body.metadata as { files: string[] }).files],
    ['failed', 'cancelled', files.map((id) => id.replace('file-', 'fil_'))],
  );
});

test('an ingestion that crashed its process too often is failed with last_error, and can be repeated', async () => {
  const store = await newStore();
  const file = await upload();
  const at = { vector_store_id: store };
  const batch = await client.vectorStores.fileBatches.create(store, { file_ids: [file] });
  const source = store.replace('vs_', 'cso_');
  assert.equal((await client.vectorStores.files.retrieve(file, at)).status, 'in_progress');
  // As a third crash of its process leaves the job.
  const key = `ingest/${(await db`select id from knowledge_ingestions order by created_at desc limit 1`)[0]?.id}`;
  const aside = await db`update jobs set attempts = max_attempts where key = ${key}`;
  assert.equal(aside.count, 1, source);
  const failed = await client.vectorStores.files.poll(store, file, poll);
  assert.deepEqual([failed.status, failed.last_error?.code], ['failed', 'server_error']);
  const ended = await client.vectorStores.fileBatches.poll(store, batch.id, poll);
  assert.deepEqual([ended.status, ended.file_counts.failed], ['failed', 1]);
  assert.equal((await client.vectorStores.retrieve(store)).status, 'completed');

  assert.equal((await client.vectorStores.files.create(store, { file_id: file })).status, 'in_progress');
  const retried = await withWorkers(() => client.vectorStores.files.poll(store, file, poll));
  assert.deepEqual([retried.status, retried.last_error], ['completed', null]);
});

test('filters select by attributes as the client writes them, and a threshold makes scores cosines', async () => {
  await withWorkers(async () => {
    const store = await newStore();
    const rows: [string, Record<string, string | number | boolean>][] = [
      ['a', { year: 2024, kind: 'x', open: true }],
      ['b', { year: 2025, kind: 'y', open: false }],
      ['c', { year: 2026, kind: 'z' }],
    ];
    for (const [name, attributes] of rows) {
      const file_id = await upload(`${name}.md`, `The same words about harbours, of ${name}.`);
      await client.vectorStores.files.createAndPoll(store, { file_id, attributes }, poll);
    }
    const search = async (filters?: OpenAI.ComparisonFilter | OpenAI.CompoundFilter) => {
      const { data } = await client.vectorStores.search(store, { query: 'harbours', ...(filters && { filters }) });
      return data
        .map(({ filename }) => filename.slice(0, 1))
        .toSorted()
        .join('');
    };
    const year = (type: OpenAI.ComparisonFilter['type'], value: number | number[]): OpenAI.ComparisonFilter => ({
      ...{ type, key: 'year', value },
    });
    assert.equal(await search(), 'abc');
    assert.equal(await search(year('eq', 2025)), 'b');
    assert.equal(await search(year('ne', 2025)), 'ac');
    assert.equal(await search(year('gt', 2024)), 'bc');
    assert.equal(await search(year('gte', 2025)), 'bc');
    assert.equal(await search(year('lt', 2025)), 'a');
    assert.equal(await search(year('lte', 2025)), 'ab');
    assert.equal(await search(year('in', [2024, 2026])), 'ac');
    assert.equal(await search(year('nin', [2024, 2026])), 'b');
    assert.equal(await search({ type: 'eq', key: 'open', value: true }), 'a');
    assert.equal(
      await search({ type: 'or', filters: [year('eq', 2024), { type: 'eq', key: 'kind', value: 'z' }] }),
      'ac',
    );
    assert.equal(
      await search({
        type: 'and',
        filters: [year('gt', 2024), { type: 'or', filters: [year('eq', 2024), year('eq', 2026)] }],
      }),
      'c',
    );
    const several = await client.vectorStores.search(store, { query: ['harbours', 'words of b'], max_num_results: 1 });
    assert.equal(several.data.length, 1);
    const near = await client.vectorStores.search(store, {
      ...{ query: 'The same words about harbours', ranking_options: { score_threshold: 0.2, ranker: 'none' } },
    });
    assert.ok(near.data.length > 0);
    for (const { score } of near.data) assert.ok(score >= 0.2 && score <= 1.001, `${score}`);
  });
});

test('quotas, rate limits and sizes apply as under /api/v1, as errors of the client', async () => {
  const bounded = await provision.app();
  const own = clientOf(bounded.secretKey);
  const set = await api('PATCH', `/protected/api/v1/developer/apps/${bounded.app.id}`, {
    token: bounded.developerToken,
    body: { quotas: { file_bytes: 10 } },
  });
  assert.equal(set.status, 200, set.text);
  await assert.rejects(
    async () => own.files.create({ file: await textFile('a.md', 'More than ten bytes.'), purpose: 'assistants' }),
    (error) => error instanceof OpenAI.UnprocessableEntityError && error.code === 'quota_exceeded',
  );
  const limited = await startTestServer({
    beside: server,
    env: {
      QUARRY_ROLE: 'http',
      DATABASE_URL: 'postgres://unused/unused',
      QUARRY_RATE_SEARCH: '1',
      QUARRY_UPLOAD_BYTES_MAX: '1000',
    },
  });
  try {
    const there = clientOf(app.secretKey, limited.baseUrl);
    const store = await newStore();
    await there.vectorStores.search(store, { query: 'x' });
    await assert.rejects(there.vectorStores.search(store, { query: 'x' }), (error) => {
      assert.ok(error instanceof OpenAI.RateLimitError);
      assert.ok(Number(error.headers?.get('retry-after')) > 0);
      return error.type === 'rate_limit_error' && error.code === 'rate_limited';
    });
    const files = async () => Number((await db`select count(*) from files where app_id = ${app.app.uuid}`)[0]?.count);
    const before = await files();
    await assert.rejects(
      async () => there.files.create({ file: await textFile('a.md', 'x'.repeat(1_001)), purpose: 'assistants' }),
      (error) => error instanceof OpenAI.APIError && error.status === 413,
    );
    assert.equal(await files(), before);
  } finally {
    await limited.close();
  }
});

const boundary = 'form';
const part = (name: string, text: string, more = '') =>
  `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n${text}\r\n`;
const filePart = part('file', 'Text.', '; filename="a.txt"');
const purposePart = part('purpose', 'assistants');

test('an incomplete or invalid form is 400 and leaves no file; fields may have any order', async () => {
  const own = await provision.app();
  const send = (body: string, type = `multipart/form-data; boundary=${boundary}`) =>
    api<{ error: { param: string; code: string } }>('POST', '/v1/files', {
      ...{ key: own.secretKey, body, headers: { 'content-type': type } },
    });
  const end = `--${boundary}--\r\n`;
  for (const good of [filePart + purposePart + end, purposePart + filePart + end])
    assert.equal((await send(good)).status, 200);
  const cases: [string, number, string | null][] = [
    [filePart + end, 400, 'purpose'],
    [purposePart + end, 400, 'file'],
    [end, 400, 'file'],
    [filePart + purposePart, 400, 'body'],
    [filePart.slice(0, -4), 400, 'body'],
    [purposePart + purposePart + filePart + end, 400, 'purpose'],
    [filePart + purposePart + part('other', 'x') + end, 400, 'other'],
    [filePart + filePart + purposePart + end, 400, 'file'],
    [part('document', 'x', '; filename="a"') + purposePart + end, 400, 'document'],
    [part('file', 'x', '; filename=""') + purposePart + end, 400, 'filename'],
    [purposePart + part('purpose', 'x'.repeat(2_000)) + filePart + end, 400, 'purpose'],
    ['nothing of the kind', 400, 'body'],
    ['', 400, 'body'],
  ];
  for (const [body, status, param] of cases) {
    const answer = await send(body);
    assert.deepEqual(
      [answer.status, answer.body.error.param],
      [status, param],
      `${JSON.stringify(body)} ${answer.text}`,
    );
  }
  assert.equal((await send(filePart, 'multipart/form-data')).status, 415);
  assert.equal((await send('{}', 'application/json')).status, 415);
  assert.equal((await db`select 1 from files where app_id = ${own.app.uuid}`).length, 2);
  assert.equal((await db`select 1 from doomed_blobs where app_id = ${own.app.uuid}`).length, 0);

  // A client that leaves in the middle leaves no file either.
  const gone = httpRequest(`${server.baseUrl}/v1/files`, {
    method: 'POST',
    headers: { 'x-api-key': own.secretKey, 'content-type': `multipart/form-data; boundary=${boundary}` },
  });
  gone.on('error', () => {});
  gone.write(filePart);
  await new Promise<void>((resolve) => gone.flushHeaders() ?? gone.write('', () => resolve()));
  gone.destroy();
  assert.equal((await send(filePart + purposePart + end)).status, 200);
  assert.equal((await db`select 1 from files where app_id = ${own.app.uuid}`).length, 3);
});

test('Idempotency-Key, the audit log and headers work as for other routes', async () => {
  const own = await provision.app();
  const bearer = { token: own.secretKey };
  const headers = { 'idempotency-key': 'one' };
  const create = () => api<{ id: string }>('POST', '/v1/vector_stores', { ...bearer, headers, body: { name: 'Once' } });
  const [first, second] = [await create(), await create()];
  assert.deepEqual(
    [second.status, second.body.id, second.headers.get('idempotency-replayed')],
    [200, first.body.id, 'true'],
  );
  const conflict = await api<{ error: object }>('POST', '/v1/vector_stores', { ...bearer, headers, body: {} });
  assert.deepEqual([conflict.status, Object.keys(conflict.body.error)], [422, ['message', 'type', 'param', 'code']]);
  const rename = await api('POST', `/v1/vector_stores/${first.body.id}`, { ...bearer, body: { name: 'Again' } });
  assert.equal(rename.status, 200);
  assert.match(rename.headers.get('x-request-id') ?? '', /./);
  assert.equal(rename.headers.get('x-content-type-options'), 'nosniff');
  // Gone, so it is not returned again.
  await api('DELETE', `/v1/vector_stores/${first.body.id}`, bearer);
  assert.equal((await create()).status, 404);

  const source = first.body.id.replace('vs_', 'cso_');
  const wanted = ['openaiCreateVectorStore', 'openaiUpdateVectorStore', 'openaiDeleteVectorStore'];
  await until(async () => {
    const { body } = await api<{ data: { action: string; resource: string }[] }>('GET', '/api/v1/audit?page_size=10', {
      key: own.secretKey,
    });
    const shown = body.data.map(({ action, resource }) => `${action} ${resource}`);
    return wanted.every((action) => shown.includes(`${action} ${source}`));
  });
});
