import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, test } from 'node:test';
import fc from '../../support/fast-check.ts';
import { type Json, knowledgeOf, type TestIngestion } from '../../support/knowledge.ts';
import { modelRuns } from '../../support/rounds.ts';
import { type ApiResponse, type ErrorBody, sendRequest, startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/*
 *   MODEL_TIMES=8 MODEL_SEED=1 node test/run.ts test/api/knowledge/push-model.test.ts
 *
 * Several callers push, replace and delete documents of one source through two processes at the same time. After each
 * burst, the source is compared with what the acknowledged requests allow; at the end, its search too.
 */
const server = await startTestServer();
const beside = await startTestServer({ beside: server });
after(async () => {
  await beside.close();
  await server.close();
});
const world = await server.provision.world();
const key = world.app.secretKey;
const app = knowledgeOf(server, { key });
const viewer = knowledgeOf(server, { token: world.viewer.token });

const mode = fc.constantFrom('return', 'queue', 'error');
const target = fc.nat(9);
const operation = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('push' as const), mode, twice: fc.boolean(), large: fc.boolean() }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('batch' as const), mode, count: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('replace' as const), target, twice: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('dedupe' as const), target }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const), target }) },
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** Texts that a document may have: one, once a burst has ended. Empty: it may be gone. */
type Possible = { texts: Set<string>; mayBeGone: boolean };
const gone = 'gone';

class Model {
  /** Documents by id. */
  readonly documents = new Map<string, Possible>();
  /** Ingestions that were accepted, with the texts of their items in order. */
  readonly accepted = new Map<string, string[]>();
  readonly removed = new Set<string>();
  /** Documents that were returned instead of new ones: of an earlier burst, or of another request of the same one. */
  readonly #reused = new Set<string>();
  readonly #source: string;
  readonly #prefix = randomInt(2 ** 31).toString(36);
  #sent = 0;
  #words = 0;

  constructor(source: string) {
    this.#source = source;
  }

  #send<T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    this.#sent += 1;
    const { baseUrl } = this.#sent % 2 === 0 ? server : beside;
    const options = { key, headers, ...(body === undefined ? {} : { body }) };
    return sendRequest<T & Partial<ErrorBody>>(baseUrl, method, `/api/v1${path}`, options);
  }

  /** A word that no other text has. */
  #newWord(): string {
    this.#words += 1;
    return `zq${this.#prefix.replaceAll(/\d/g, 'v')}${[...String(this.#words)].map((digit) => 'abcdefghij'[Number(digit)]).join('')}x`;
  }

  async burst(operations: Operation[], number: number): Promise<void> {
    const known = [...this.documents.keys()];
    const before = new Set(this.accepted.keys());
    await Promise.all(operations.map((one, index) => this.#apply(one, known, `${this.#prefix}-${number}-${index}`)));
    for (const id of this.#reused) assert.ok(this.documents.has(id), 'An unknown document was reused.');
    this.#reused.clear();
    for (const [id, words] of this.accepted) if (!before.has(id)) await this.#checkIngestion(id, words);
    await this.#checkDocuments();
  }

  async #apply(one: Operation, known: string[], name: string): Promise<void> {
    const source = `/knowledge_sources/${this.#source}`;
    if (one.do === 'push') {
      const word = this.#newWord();
      const data = `The word is ${word}. ${'It is long. '.repeat(one.large ? 3_000 : 1)}`;
      const body = { title: word, content: { data }, on_active: one.mode };
      const send = () => this.#send<TestIngestion>('POST', `${source}/ingest`, body, { 'idempotency-key': name });
      const responses = await Promise.all(one.twice ? [send(), send()] : [send()]);
      return this.#accept(one.mode, responses, [word]);
    }
    if (one.do === 'batch') {
      const words = Array.from({ length: one.count }, () => this.#newWord());
      const items = words.map((word) => ({ title: word, content: { data: `The word is ${word}.` } }));
      const body = { items, on_active: one.mode };
      return this.#accept(one.mode, [await this.#send<TestIngestion>('POST', `${source}/ingest/batch`, body)], words);
    }
    const id = known[one.target % Math.max(1, known.length)];
    const document = id === undefined ? undefined : this.documents.get(id);
    if (id === undefined || document === undefined) return;
    if (one.do === 'replace') {
      const word = this.#newWord();
      const body = { title: word, content: { data: `The word is now ${word}.` } };
      const send = () => this.#send<TestIngestion>('PATCH', `/knowledge_documents/${id}`, body);
      const responses = await Promise.all(one.twice ? [send(), send()] : [send()]);
      const accepted = responses.filter(({ status }) => status < 300);
      for (const { status, text } of responses) assert.ok(status < 300 || (status === 404 && document.mayBeGone), text);
      if (accepted.length > 0) document.texts.add(word);
    } else if (one.do === 'dedupe') {
      const [word = ''] = document.texts;
      const body = { title: word, content: { data: `The word is ${word}.` }, dedupe: true, on_active: 'queue' };
      const { status, body: ingestion, text } = await this.#send<TestIngestion>('POST', `${source}/ingest`, body);
      assert.equal(status, 201, text);
      const ended = await app.waitForIngestion(ingestion.id);
      assert.equal(ended.status, 'succeeded', JSON.stringify(ended));
      const found = ended.metadata.document ?? '';
      // The text may have changed or gone meanwhile; then it is a new document.
      if (ended.metadata.document_reused) this.#reused.add(found);
      else this.documents.set(found, { texts: new Set([word]), mayBeGone: false });
    } else {
      document.mayBeGone = true;
      const { status, text } = await this.#send('DELETE', `/knowledge_documents/${id}`);
      assert.ok(status === 204 || (status === 404 && this.removed.has(id)), text);
      this.removed.add(id);
    }
  }

  #accept(mode: string, responses: ApiResponse<TestIngestion & Partial<ErrorBody>>[], words: string[]): void {
    const ids = new Set<string>();
    for (const { status, body, text } of responses) {
      if (status === 409) assert.ok(isInProgress(body) || mode === 'error', text);
      else assert.equal(status, 201, text);
      if (status !== 201 || body.metadata.already_active) {
        assert.ok(status !== 201 || mode === 'return', text);
        continue;
      }
      ids.add(body.id);
    }
    assert.ok(ids.size <= 1, 'A repeated request was stored twice.');
    for (const id of ids) {
      assert.ok(!this.accepted.has(id), 'Two requests were given one ingestion.');
      this.accepted.set(id, words);
    }
  }

  async #checkIngestion(id: string, words: string[]): Promise<void> {
    const ended = await app.waitForIngestion(id);
    assert.equal(ended.status, 'succeeded', JSON.stringify(ended));
    const items = ended.metadata.items ?? [ended.metadata];
    assert.equal(items.length, words.length);
    for (const [index, item] of items.entries()) {
      const document = String(item.document);
      assert.ok(!this.documents.has(document), 'Two pushes were given one document.');
      this.documents.set(document, { texts: new Set([words[index] ?? '']), mayBeGone: false });
    }
  }

  /** Waits for replacements, and compares every document. */
  async #checkDocuments(): Promise<void> {
    for (;;) {
      const path = `/knowledge_sources/${this.#source}/ingestions?page_size=100`;
      const { body } = await this.#send<{ data: TestIngestion[] }>('GET', path);
      const isActive = ({ status }: TestIngestion) => status !== 'succeeded' && status !== 'failed';
      const active = body.data.find(isActive);
      if (active === undefined) break;
      await app.waitForIngestion(active.id);
    }
    const titles = await this.#readTitles();
    for (const [id, document] of this.documents) {
      const title = titles.get(id) ?? gone;
      if (title === gone) assert.ok(document.mayBeGone, 'A document is lost.');
      else {
        assert.ok(!this.removed.has(id), 'A deleted document is back.');
        assert.ok(document.texts.has(title), `A document is ${title}, and may be ${[...document.texts].join(' or ')}`);
        document.texts = new Set([title]);
        titles.delete(id);
      }
      if (title === gone) this.documents.delete(id);
    }
    assert.deepEqual([...titles], [], 'There are documents that nobody pushed.');
  }

  async #readTitles(): Promise<Map<string, string>> {
    const titles = new Map<string, string>();
    for (let page = 1; ; page++) {
      const path = `/knowledge_documents?source=${this.#source}&page_size=100&page=${page}`;
      const { body } = await this.#send<{ data: (Json & { id: string; title: string })[] }>('GET', path);
      for (const { id, title } of body.data) titles.set(id, title);
      if (body.data.length < 100) return titles;
    }
  }

  /** Each document is found by its word, and no word of a text that was replaced or deleted finds one. */
  async checkSearch(): Promise<void> {
    const words = new Map(
      [...this.documents].flatMap(([id, { texts }]) => [...texts].map((word) => [word, id] as const)),
    );
    for (const [word, id] of words) {
      const hits = await app.search(this.#source, { query: `"${word}"`, mode: 'fulltext' });
      assert.ok(
        hits.some(({ document }) => document === id),
        `${word} is not found.`,
      );
    }
    for (const word of [...this.accepted.values()].flat())
      if (!words.has(word))
        assert.deepEqual(await app.search(this.#source, { query: `"${word}"`, mode: 'fulltext' }), [], word);
  }
}

function isInProgress({ error }: Partial<ErrorBody>): boolean {
  return error?.code === 'request_in_progress';
}

const { numRuns, seed } = modelRuns(3);
const bursts = fc.array(fc.array(operation, { minLength: 2, maxLength: 7 }), { minLength: 2, maxLength: 4 });

test('a source that several callers push into, replace in and delete from at the same time follows a model', async (context) => {
  let documents = 0;
  await fc.assert(
    fc.asyncProperty(bursts, async (given) => {
      const model = new Model(await app.createSource({ org: world.org.id }));
      for (const [number, operations] of given.entries()) await model.burst(operations, number);
      await model.checkSearch();
      documents += model.documents.size;
    }),
    { numRuns, seed },
  );
  context.diagnostic(`seed ${seed}: ${numRuns} sequences, ${documents} documents at their ends`);
});

/** Inserts an active ingestion of the newest source, which another process seems to hold until it is run. */
async function insertActive() {
  const [active] = await server.db<{ appId: string; id: string }[]>`
    insert into knowledge_ingestions (app_id, id, source_id, kind, status, lease_holder, lease_until)
    select app_id, gen_random_uuid(), id, 'push', 'running', gen_random_uuid(), now() + interval '1 hour'
    from knowledge_sources order by created_at desc limit 1
    returning app_id, id`;
  assert.ok(active);
  const { appId, id } = active;
  const run = () =>
    server.db.begin(async (tx) => {
      await tx`update knowledge_ingestions set status = 'pending', lease_holder = null, lease_until = null
        where app_id = ${appId} and id = ${id}`;
      await tx`select add_job('ingest', ${JSON.stringify({ appId, ingestionId: id })}::text::json)`;
    });
  return { appId, id, run };
}

test('pushes that wait behind an ingestion keep their order, and one that fails stops no other', async () => {
  const source = await app.createSource({ org: world.org.id });
  const active = await insertActive();
  const queue = async (more: Json) => {
    const body = { on_active: 'queue', ...more };
    const { body: ingestion } = await app.send<TestIngestion>('POST', `/knowledge_sources/${source}/ingest`, body);
    assert.equal(ingestion.status, 'pending');
    return ingestion.id;
  };
  const damaged = { data: Buffer.from('PK\x03\x04 damaged').toString('base64'), data_encoding: 'base64' };
  const readers = [{ principal_type: 'org_role', principal: 'admin' }];
  const ids = [
    await queue({ content: { data: 'Page 1 of the queue.' }, title: 'One' }),
    await queue({ content: { data: 'Page 2 of the queue.' }, title: 'Two', acl: { grants: readers } }),
    await queue({ content: { ...damaged, filename: 'damaged.docx' } }),
    await queue({ content: { data: 'Page 3 of the queue.' }, title: 'Three', metadata: { shelf: 3 } }),
    await queue({ content: { data: 'Page 1 of the queue.' }, dedupe: true, title: 'First' }),
    await queue({ content: { data: 'Page 4 of the queue.' }, title: 'Four' }),
    await queue({ content: { data: ' ' }, title: 'Nothing' }),
  ];
  await active.run();
  const ended: TestIngestion[] = [];
  for (const id of ids) ended.push(await app.waitForIngestion(id));
  const failed = ended.map(({ status }, i) => (status === 'failed' ? i : -1)).filter((i) => i >= 0);
  assert.deepEqual(failed, [2]);
  const documents = ended.map(({ metadata }) => metadata.document ?? '');
  assert.equal(documents[4], documents[0]);
  assert.deepEqual(
    ended.map(({ metadata }) => metadata.document_reused),
    [false, false, undefined, false, true, false, false],
  );
  const { body } = await app.send<{ data: { id: string; title: string; metadata: Json; ingestion?: string }[] }>(
    'GET',
    `/knowledge_documents?source=${source}`,
  );
  assert.deepEqual(
    body.data.map(({ title }) => title),
    ['Nothing', 'Four', 'Three', 'Two', 'First'],
  );
  assert.deepEqual(
    body.data.map(({ id }) => id),
    [6, 5, 3, 1, 0].map((i) => documents[i]),
  );
  assert.deepEqual(body.data[2]?.metadata, { shelf: 3 });
  assert.deepEqual(ended[3]?.stats?.documents, 1);
  // A viewer of the org has no part in the restricted one.
  const seen = await viewer.send<{ data: { title: string }[] }>('GET', `/knowledge_documents?source=${source}&q=Two`);
  assert.deepEqual(seen.body.data, []);
  assert.equal((await app.search(source, { query: 'queue', mode: 'fulltext' })).length, 4);
});

test('pushes that arrive together hold one connection, and each has its own content, readers and metadata', async () => {
  const source = await app.createSource({ org: world.org.id });
  const old = await app.push(source, 'What the old document says.');
  const active = await insertActive();
  const readers = [{ principal_type: 'org_role', principal: 'admin' }];
  const path = `/knowledge_sources/${source}`;
  const pushOf = (i: number) => {
    const content = { data: `Push ${i} of the crowd.` };
    const more = { ...(i % 3 === 0 && { acl: { grants: readers } }), ...(i % 2 === 0 && { metadata: { number: i } }) };
    return { content, title: `Push ${i}`, ...more, on_active: 'queue' };
  };
  let answers: Promise<ApiResponse<TestIngestion>[]> | undefined;
  await server.db.begin(async (tx) => {
    await tx`select 1 from knowledge_ingestions where app_id = ${active.appId} and id = ${active.id} for update`;
    answers = Promise.all([
      ...Array.from({ length: 30 }, (_push, i) => app.send<TestIngestion>('POST', `${path}/ingest`, pushOf(i))),
      app.send<TestIngestion>('PATCH', `/knowledge_documents/${old}`, { content: { data: 'What the new one says.' } }),
      app.send<TestIngestion>('POST', `${path}/ingest/batch`, {
        items: [{ content: { data: 'First of a batch.' } }, { content: { data: 'Second of a batch.' } }],
        on_active: 'queue',
      }),
    ]);
    const countWaiting = async () => {
      const [row] = await server.db<{ count: number }[]>`
        select count(*)::int as count from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%knowledge_ingestions%'`;
      return row?.count ?? 0;
    };
    await until(async () => (await countWaiting()) > 0);
    for (let i = 0; i < 10; i++) await app.send('GET', path);
    assert.equal(await countWaiting(), 1);
  });
  await active.run();
  const ended: TestIngestion[] = [];
  for (const { status, body } of (await answers) ?? []) {
    assert.equal(status < 300, true, JSON.stringify(body));
    ended.push(await app.waitForIngestion(body.id));
  }
  assert.deepEqual([...new Set(ended.map(({ status }) => status))], ['succeeded']);
  const read = async (id: string | undefined) =>
    (await app.send<{ content: string }>('GET', `/knowledge_documents/${id}/content`)).body.content;
  for (const [i, { metadata }] of ended.slice(0, 30).entries()) {
    const { body } = await app.send<{ title: string; metadata: Json }>(
      'GET',
      `/knowledge_documents/${metadata.document}`,
    );
    assert.deepEqual([body.title, body.metadata], [`Push ${i}`, i % 2 === 0 ? { number: i } : {}]);
    assert.equal(await read(metadata.document), `Push ${i} of the crowd.`);
    const seen = await viewer.send('GET', `/knowledge_documents/${metadata.document}`);
    assert.equal(seen.status, i % 3 === 0 ? 404 : 200);
  }
  assert.equal(await read(old), 'What the new one says.');
  const items = ended[31]?.metadata.items as { document: string }[];
  assert.deepEqual(await Promise.all(items.map(({ document }) => read(document))), [
    'First of a batch.',
    'Second of a batch.',
  ]);
});
