import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';

/* The OpenAI-compatible surface under /v1, driven by the official client. */

const server = await startTestServer();
after(() => server.close());
const { api, db, provision } = server;
const { app, org, member, loner, stranger } = await provision.world();
const clientOf = (apiKey: string, options = {}) =>
  new OpenAI({ apiKey, baseURL: `${server.baseUrl}/v1`, maxRetries: 0, ...options });
const client = clientOf(app.secretKey);
const poll = { pollIntervalMs: 20 };
const textFile = (name: string, text: string) => toFile(Buffer.from(text), name, { type: 'text/markdown' });
const idsOf = async <T extends { id: string }>(items: AsyncIterable<T>): Promise<string[]> =>
  (await Array.fromAsync(items)).map(({ id }) => id);
const newStore = async () => (await client.vectorStores.create({ name: 'Store' })).id;

for (const [name, options] of [
  ['a secret key', clientOf(app.secretKey)],
  ['an end user', clientOf(member.token)],
] as const)
  test(`the official client uploads, attaches, searches, reads and deletes as ${name}`, async () => {
    const openai = options;
    const text = '# Returns\n\nGoods may be returned within thirty days.\n';
    const file = await openai.files.create({ file: await textFile('returns 日.md', text), purpose: 'assistants' });
    assert.match(file.id, /^file-[0-9A-Za-z]{22}$/);
    assert.deepEqual(
      [file.object, file.filename, file.bytes, file.purpose, file.status],
      ['file', 'returns 日.md', Buffer.byteLength(text), 'assistants', 'processed'],
    );
    assert.ok(Math.abs(file.created_at - Date.now() / 1_000) < 60);
    assert.deepEqual(await openai.files.retrieve(file.id), file);
    assert.equal(await (await openai.files.content(file.id)).text(), text);

    const store = await openai.vectorStores.create({ name: 'Shop', description: 'Rules', metadata: { team: 'a' } });
    assert.match(store.id, /^vs_[0-9A-Za-z]{22}$/);
    assert.deepEqual(
      [store.object, store.name, store.status, store.metadata],
      ['vector_store', 'Shop', 'completed', { team: 'a' }],
    );
    const attached = await openai.vectorStores.files.createAndPoll(
      store.id,
      { file_id: file.id, attributes: { year: 2026, kind: 'rules', open: true }, chunking_strategy: { type: 'auto' } },
      poll,
    );
    assert.deepEqual(
      [attached.id, attached.status, attached.last_error, attached.vector_store_id, attached.attributes],
      [file.id, 'completed', null, store.id, { year: 2026, kind: 'rules', open: true }],
    );
    const other = await openai.vectorStores.files.uploadAndPoll(
      store.id,
      await textFile('shipping.md', '# Shipping\n\nParcels leave the next working day.\n'),
      poll,
    );
    assert.equal(other.status, 'completed');
    const counted = await openai.vectorStores.retrieve(store.id);
    assert.deepEqual(counted.file_counts, { in_progress: 0, completed: 2, failed: 0, cancelled: 0, total: 2 });
    assert.ok(counted.usage_bytes >= Buffer.byteLength(text));

    const found = await openai.vectorStores.search(store.id, { query: 'returned goods', max_num_results: 1 });
    const [hit] = found.data;
    assert.deepEqual([found.data.length, hit?.file_id, hit?.filename], [1, file.id, 'returns 日.md']);
    assert.deepEqual(hit?.attributes, { year: 2026, kind: 'rules', open: true });
    assert.match(hit?.content[0]?.text ?? '', /thirty days/);
    const contents = await Array.fromAsync(openai.vectorStores.files.content(file.id, { vector_store_id: store.id }));
    assert.deepEqual(contents, [{ type: 'text', text }]);

    assert.deepEqual(await openai.vectorStores.files.delete(other.id, { vector_store_id: store.id }), {
      ...{ id: other.id, object: 'vector_store.file.deleted', deleted: true },
    });
    await assert.rejects(
      openai.vectorStores.files.retrieve(other.id, { vector_store_id: store.id }),
      OpenAI.NotFoundError,
    );
    assert.equal((await openai.files.retrieve(other.id)).id, other.id);
    assert.deepEqual(await openai.vectorStores.delete(store.id), {
      ...{ id: store.id, object: 'vector_store.deleted', deleted: true },
    });
    await assert.rejects(openai.vectorStores.retrieve(store.id), OpenAI.NotFoundError);
    // Deleting a store deletes no file.
    assert.deepEqual(await openai.files.delete(file.id), { id: file.id, object: 'file', deleted: true });
    await assert.rejects(openai.files.retrieve(file.id), OpenAI.NotFoundError);
  });

test('the same file, source and document exist under /api/v1, with their own ids', async () => {
  const file = await client.files.create({ file: await textFile('a.md', 'Text.'), purpose: 'user_data' });
  const store = await newStore();
  await client.vectorStores.files.createAndPoll(store, { file_id: file.id, attributes: { a: 1 } }, poll);
  const native = file.id.replace('file-', 'fil_');
  const source = store.replace('vs_', 'cso_');
  const { body } = await api('GET', `/api/v1/files/${native}`, { key: app.secretKey });
  assert.deepEqual([body.filename, body.provider_metadata], ['a.md', { purpose: 'user_data' }]);
  const documents = await api<{ data: Record<string, unknown>[] }>(
    'GET',
    `/api/v1/knowledge_documents?source=${source}`,
    { key: app.secretKey },
  );
  assert.deepEqual(
    documents.body.data.map(({ file: from, metadata }) => [from, metadata]),
    [[native, { a: 1 }]],
  );
  assert.equal(
    (await api('GET', `/api/v1/knowledge_sources/${source}`, { key: app.secretKey })).body.type,
    'knowledge/documents',
  );

  // What is pushed there is found here: a document that no file made has its own id.
  await knowledgeOf(server, { key: app.secretKey }).push(source, 'Inline words.', { title: 'Inline' });
  const listed = await idsOf(client.vectorStores.files.list(store));
  const inline = listed.find((id) => id.startsWith('cdo_')) ?? '';
  assert.deepEqual(listed.toSorted(), [file.id, inline].toSorted());
  const [hit] = (await client.vectorStores.search(store, { query: 'inline words' })).data;
  assert.deepEqual([hit?.file_id, hit?.filename], [inline, 'Inline']);
  assert.equal((await client.vectorStores.files.delete(inline, { vector_store_id: store })).deleted, true);
  assert.deepEqual(await idsOf(client.vectorStores.files.list(store)), [file.id]);
});

test('a secret key is a bearer token only under /v1, and a publishable key nowhere', async () => {
  const bearer = { token: app.secretKey };
  assert.equal((await api('GET', '/v1/files', bearer)).status, 200);
  assert.equal((await api('GET', '/v1/files', { key: app.secretKey })).status, 200);
  assert.equal((await api('GET', '/v1/files', { key: app.secretKey, ...bearer })).status, 200);
  for (const path of ['/api/v1/files', '/api/v1/knowledge_sources', '/mcp'])
    assert.equal(
      (await api(path === '/mcp' ? 'POST' : 'GET', path, { ...bearer, ...(path === '/mcp' ? { body: {} } : {}) }))
        .status,
      401,
      path,
    );
  const other = await provision.app();
  assert.equal((await api('GET', '/v1/files', { key: other.secretKey, ...bearer })).status, 401);
  for (const key of [app.publishableKey, `sk_${'x'.repeat(43)}`])
    await assert.rejects(
      idsOf(clientOf(key).files.list()),
      (error) => error instanceof OpenAI.AuthenticationError && error.type === 'authentication_error',
    );
});

test('a hidden resource is NotFoundError, and a change of one that may only be read PermissionDeniedError', async () => {
  const file = await client.files.create({ file: await textFile('a.md', 'Text.'), purpose: 'assistants' });
  const store = await newStore();
  await client.vectorStores.files.createAndPoll(store, { file_id: file.id }, poll);
  const batch = await client.vectorStores.fileBatches.createAndPoll(store, { file_ids: [file.id] }, poll);
  for (const other of [clientOf(loner.token), clientOf(stranger.token)]) {
    const own = await other.vectorStores.create({});
    const at = { vector_store_id: store };
    for (const attempt of [
      () => other.files.retrieve(file.id),
      () => other.files.delete(file.id),
      () => other.vectorStores.retrieve(store),
      () => other.vectorStores.update(store, { name: 'Mine' }),
      () => other.vectorStores.files.list(store),
      () => other.vectorStores.files.retrieve(file.id, at),
      () => other.vectorStores.fileBatches.retrieve(batch.id, at),
      () => other.vectorStores.search(store, { query: 'text' }),
      () => other.vectorStores.files.create(own.id, { file_id: file.id }),
      () => other.vectorStores.fileBatches.create(own.id, { file_ids: [file.id] }),
      () => other.vectorStores.fileBatches.retrieve(batch.id, { vector_store_id: own.id }),
      () => other.vectorStores.create({ file_ids: [file.id] }),
    ])
      await assert.rejects(attempt, (error) => error instanceof OpenAI.NotFoundError && error.code === 'not_found');
    assert.deepEqual(await idsOf(other.vectorStores.list()), [own.id]);
  }
  // A batch is found in its own store alone.
  const another = await newStore();
  await assert.rejects(
    client.vectorStores.fileBatches.retrieve(batch.id, { vector_store_id: another }),
    OpenAI.NotFoundError,
  );

  const shared = await clientOf(app.secretKey, { organization: org.id }).vectorStores.create({ name: 'Of the org' });
  const { body } = await api('GET', `/api/v1/knowledge_sources/${shared.id.replace('vs_', 'cso_')}`, {
    key: app.secretKey,
  });
  assert.equal(body.org, org.id);
  const viewer = clientOf((await provision.user(app, { org, role: 'viewer' })).token);
  assert.equal((await viewer.vectorStores.retrieve(shared.id)).name, 'Of the org');
  await assert.rejects(viewer.vectorStores.update(shared.id, { name: 'Mine' }), OpenAI.PermissionDeniedError);
  await assert.rejects(
    clientOf(app.secretKey, { organization: 'org-of-openai' }).vectorStores.create({}),
    OpenAI.BadRequestError,
  );
});

test('an unsupported parameter is BadRequestError with its name, and nothing is ignored', async () => {
  const store = await newStore();
  const file = (await client.files.create({ file: await textFile('a.md', 'Text.'), purpose: 'assistants' })).id;
  const small = { type: 'static', static: { max_chunk_size_tokens: 200, chunk_overlap_tokens: 0 } } as const;
  const any = (value: unknown) => value as never;
  const attempts: [string, () => Promise<unknown>][] = [
    ['purpose', async () => client.files.create({ file: await textFile('a.md', 'x'), purpose: 'batch' })],
    [
      'expires_after[anchor]',
      async () =>
        client.files.create({
          ...{ file: await textFile('a.md', 'x'), purpose: 'assistants' },
          expires_after: { anchor: 'created_at', seconds: 3_600 },
        }),
    ],
    ['chunking_strategy', () => client.vectorStores.create({ chunking_strategy: small })],
    ['expires_after', () => client.vectorStores.create({ expires_after: { anchor: 'last_active_at', days: 1 } })],
    ['metadata.a', () => client.vectorStores.create({ metadata: { a: 'x'.repeat(513) } })],
    ['metadata.vector_store', () => client.vectorStores.create({ metadata: { vector_store: 'x' } })],
    ['unknown', () => client.vectorStores.create(any({ unknown: 1 }))],
    ['chunking_strategy', () => client.vectorStores.files.create(store, { file_id: file, chunking_strategy: small })],
    ['attributes.a', () => client.vectorStores.files.create(store, { file_id: file, attributes: any({ a: [1] }) })],
    ['file_ids', () => client.vectorStores.fileBatches.create(store, {})],
    ['file_ids.1', () => client.vectorStores.fileBatches.create(store, { file_ids: [file, file] })],
    ['rewrite_query', () => client.vectorStores.search(store, { query: 'x', rewrite_query: true })],
    ['max_num_results', () => client.vectorStores.search(store, { query: 'x', max_num_results: 51 })],
    [
      'ranking_options.ranker',
      () => client.vectorStores.search(store, { query: 'x', ranking_options: { ranker: 'default-2024-11-15' } }),
    ],
    [
      'filters.type',
      () => client.vectorStores.search(store, { query: 'x', filters: any({ type: 'like', key: 'a', value: 'b' }) }),
    ],
    [
      'filters.filters.0.value',
      () =>
        client.vectorStores.search(store, {
          query: 'x',
          filters: { type: 'and', filters: [{ type: 'in', key: 'a', value: 'b' }] },
        }),
    ],
    ['limit', () => client.vectorStores.list({ limit: 0 })],
    ['after', () => client.vectorStores.list({ after: 'nothing' })],
  ];
  for (const [param, attempt] of attempts)
    await assert.rejects(attempt, (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError, `${param}: ${error}`);
      assert.deepEqual([error.param, error.type], [param, 'invalid_request_error'], error.message);
      return true;
    });
  assert.equal((await db`select 1 from files where app_id = ${app.app.uuid} and filename = 'x'`).length, 0);

  // Paths that are not there have the same shape.
  for (const [method, path, status] of [
    ['POST', '/v1/uploads', 404],
    ['GET', '/v1/models', 404],
    ['PUT', '/v1/files', 405],
  ] as const) {
    const { status: got, body } = await api<{ error: object }>(method, path, { key: app.secretKey });
    assert.equal(got, status, path);
    assert.deepEqual(Object.keys(body.error), ['message', 'type', 'param', 'code']);
  }
});

test('a key with scopes needs one for files, another for vector stores, and both to add a file to a store', async () => {
  const scoped = async (scopes: string[]) => {
    const made = await api<{ full_key: string }>('POST', '/api/v1/keys', {
      key: app.secretKey,
      body: { type: 'secret', scopes },
    });
    assert.equal(made.status, 201, made.text);
    return clientOf(made.body.full_key);
  };
  const [files, knowledge] = [await scoped(['files']), await scoped(['knowledge'])];
  const file = await files.files.create({ file: await textFile('a.md', 'Scoped words.'), purpose: 'assistants' });
  await assert.rejects(files.vectorStores.list(), OpenAI.PermissionDeniedError);
  await assert.rejects(knowledge.files.list(), OpenAI.PermissionDeniedError);
  const store = await knowledge.vectorStores.create({});
  const adding = { file_id: file.id };
  await assert.rejects(knowledge.vectorStores.files.create(store.id, adding), OpenAI.PermissionDeniedError);
  const both = await scoped(['files:read', 'knowledge']);
  await both.vectorStores.files.createAndPoll(store.id, adding, poll);
  // The scope of files deletes no document.
  await files.files.delete(file.id);
  assert.equal((await knowledge.vectorStores.search(store.id, { query: 'scoped' })).data.length, 1);
});
