import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, test } from 'node:test';
import { EventStream } from '../../support/event-stream.ts';
import { createRandom } from '../../support/rounds.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';
import { createSpace, reads, type Space, sees, type Thing } from '../../support/walls.ts';

/*
 * Random tenants, and what each of their users gets from lists, counts, searches, answers, paths, streams, exports and metrics,
 * compared with what the documentation says they see.
 *   WALL_APPS=20 WALL_USERS=5 WALL_SEED=1 node test/run.ts test/api/tenancy/walls.test.ts
 */
const apps = Number(process.env.WALL_APPS ?? 2);
const usersOfSpace = Number(process.env.WALL_USERS ?? 4);
const seed = Number(process.env.WALL_SEED ?? randomInt(2 ** 31));
const random = createRandom(seed);

const server = await startTestServer();
after(() => server.close());
const { api, provision, baseUrl } = server;
const spaces: Space[] = [];
for (let number = 0; number < apps; number++) {
  const app = await provision.app();
  for (const scope of [app, await provision.sandbox(app)])
    spaces.push(await createSpace(server, scope, random, usersOfSpace));
}
const everything = spaces.flatMap(({ things }) => things);
const paths = { file: '/files', source: '/knowledge_sources', agent: '/agents', approval: '/approvals' };
type Page = { data: { id: string }[]; total_entries: number; total_pages: number };
type Callers = {
  caller: { token: string } | { key: string };
  name: string;
  space: Space;
  seen: (thing: Thing) => boolean;
  /** Whether the caller sees the document of a source. */
  read: (thing: Thing) => boolean;
};

const callers: Callers[] = spaces.flatMap((space, index) => [
  {
    caller: { key: space.scope.secretKey },
    name: `the key of space ${index}`,
    space,
    seen: (thing: Thing) => space.things.includes(thing),
    read: (thing: Thing) => space.things.includes(thing),
  },
  ...space.users.map((user) => ({
    caller: { token: user.token },
    name: `user ${user.id} of space ${index}`,
    space,
    seen: (thing: Thing) => space.things.includes(thing) && sees(space, user, thing),
    read: (thing: Thing) => space.things.includes(thing) && reads(space, user, thing),
  })),
]);
const hint = `repeat with WALL_SEED=${seed} WALL_APPS=${apps} WALL_USERS=${usersOfSpace}`;

test('lists, pages and counts contain what is visible to the caller and nothing else', async (context) => {
  context.diagnostic(hint);
  let listed = 0;
  for (const { caller, name, seen } of callers)
    for (const kind of ['file', 'source', 'agent', 'approval'] as const) {
      const expected = everything.filter((thing) => thing.kind === kind && seen(thing)).map(({ id }) => id);
      const found: string[] = [];
      for (let page = 1; ; page++) {
        const { status, body, text } = await api<Page>('GET', `/api/v1${paths[kind]}?page_size=7&page=${page}`, caller);
        assert.equal(status, 200, text);
        assert.equal(body.total_entries, expected.length, `${kind}s of ${name}: ${hint}`);
        found.push(...body.data.map(({ id }) => id));
        if (page >= body.total_pages) break;
      }
      assert.deepEqual(found.sort(), expected.sort(), `${kind}s of ${name}: ${hint}`);
      listed += found.length;
    }
  context.diagnostic(
    `${spaces.length} spaces, ${callers.length} callers, ${everything.length} things, ${listed} listed`,
  );
  // Worlds in which nobody or everybody sees everything would prove nothing.
  assert.ok(listed > callers.length && listed < callers.length * everything.length * 0.5);
});

test('a path leads to visible resources, and everything else is the same 404', async () => {
  let hidden = 0;
  for (const { caller, name, space, seen } of callers)
    for (const thing of everything.filter(() => random() < 30 / everything.length)) {
      const { status, body } = await api<{ error?: unknown }>('GET', `/api/v1${paths[thing.kind]}/${thing.id}`, caller);
      assert.equal(status, seen(thing) ? 200 : 404, `${describe(thing, space)} for ${name}: ${hint}`);
      if (status === 404) hidden += 1;
      if (status === 404 && thing.kind === 'file') {
        const missing = await api('GET', '/api/v1/files/fil_0000000000000000000000', caller);
        assert.deepEqual(body, missing.body);
      }
    }
  assert.ok(hidden > callers.length);
});

test('searches find only words of visible resources', async () => {
  for (const { caller, name, space, seen, read } of callers) {
    const some = everything
      .filter(({ kind }) => kind === 'file' || kind === 'source')
      .filter(() => random() < 24 / everything.length);
    for (const thing of some) {
      if (thing.kind === 'file') {
        const { body } = await api<Page>('GET', `/api/v1/files?search=${thing.marker}`, caller);
        assert.equal(body.total_entries, seen(thing) ? 1 : 0, `${thing.marker} for ${name}: ${hint}`);
        continue;
      }
      const search = await api<{ data: { content: string }[] }>(
        'POST',
        `/api/v1/knowledge_sources/${thing.id}/search`,
        {
          ...caller,
          body: { query: thing.marker },
        },
      );
      assert.equal(search.status, seen(thing) ? 200 : 404, `${describe(thing, space)} for ${name}: ${hint}`);
      if (search.status !== 200) continue;
      assert.equal(search.body.data.length, read(thing) ? 1 : 0, `${describe(thing, space)} for ${name}: ${hint}`);
    }
    const all = await api<{ data: { content: string }[] }>('POST', '/api/v1/knowledge_search', {
      ...caller,
      body: { query: 'common words' },
    });
    const visible = new Set(
      everything.filter((thing) => thing.kind === 'source' && read(thing)).map(({ marker }) => marker),
    );
    assert.equal(all.status, 200, all.text);
    assert.equal(all.body.data.length > 0, visible.size > 0, `${name}: ${hint}`);
    for (const { content } of all.body.data)
      assert.ok(
        [...visible].some((marker) => content.includes(marker)),
        `${content} for ${name}: ${hint}`,
      );
  }
});

test('answers and statements about quotes rest on nothing but what the caller reads', async () => {
  type Cited = { citations: { content: string }[]; text: string };
  type Quotes = { statement: { quotes: { status: string; source?: string }[] } };
  const sources = everything.filter(({ kind }) => kind === 'source');
  let [confirmed, missing] = [0, 0];
  for (const { caller, name, read } of callers) {
    const visible = sources.filter(read).map(({ marker }) => marker);
    const ids = sources.filter(read).map(({ id }) => id);
    const isVisible = (text: string) => visible.some((marker) => text.includes(marker));
    const answer = await api<Cited>('POST', '/api/v1/answers', { ...caller, body: { query: 'common words' } });
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.body.citations.length > 0, visible.length > 0, `${name}: ${hint}`);
    for (const { content } of answer.body.citations) assert.ok(isVisible(content), `${content} for ${name}: ${hint}`);
    const asked = sources.filter(() => random() < 24 / sources.length).slice(0, 50);
    if (asked.length === 0) continue;
    const body = { quotes: asked.map(({ marker }) => `Common words and ${marker}.`) };
    const verified = await api<Quotes>('POST', '/api/v1/citations/verify', { ...caller, body });
    assert.equal(verified.status, 200, verified.text);
    for (const [at, { status, source }] of verified.body.statement.quotes.entries()) {
      const thing = asked[at] as Thing;
      assert.equal(status === 'exact', read(thing), `${thing.marker} for ${name} is ${status}: ${hint}`);
      if (source !== undefined) assert.ok(ids.includes(source), `${source} for ${name}: ${hint}`);
      if (status === 'exact') confirmed += 1;
      else missing += 1;
    }
  }
  assert.ok(confirmed > 0 && missing > 0);
});

test('exports of files and documents, usage and metrics contain only what is visible to the caller', async () => {
  const documents = new Map<Thing, string>();
  for (const { scope, things } of spaces)
    for (const thing of things.filter(({ kind }) => kind === 'source')) {
      const path = `/api/v1/knowledge_documents?source=${thing.id}`;
      const { body } = await api<Page>('GET', path, { key: scope.secretKey });
      assert.equal(body.total_entries, 1);
      documents.set(thing, body.data[0]?.id ?? '');
    }
  const before = await readCounts();
  const sent = { '2xx': 0, '4xx': 0 };
  for (const { caller, name, space, read } of callers) {
    for (const [thing, id] of documents) {
      if (random() > 12 / documents.size) continue;
      const { status, text } = await api('GET', `/api/v1/knowledge_documents/${id}/content`, caller);
      assert.equal(status, read(thing) ? 200 : 404, `${describe(thing, space)} for ${name}: ${hint}`);
      assert.equal(text.includes(thing.marker), read(thing));
      sent[read(thing) ? '2xx' : '4xx'] += 1;
    }
    if ('key' in caller) await checkExports(space, caller.key, name);
  }
  // A request is counted once its response has been sent, which a client may see earlier.
  await until(async () => {
    const now = await readCounts();
    const counted = { '2xx': now['2xx'] - before['2xx'], '4xx': now['4xx'] - before['4xx'] };
    assert.ok(counted['2xx'] <= sent['2xx'] && counted['4xx'] <= sent['4xx'], JSON.stringify([counted, sent]));
    return counted['2xx'] === sent['2xx'] && counted['4xx'] === sent['4xx'];
  });
});

/** The files of a space as clients of OpenAI read them, and its usage. */
async function checkExports(space: Space, key: string, name: string): Promise<void> {
  const files = space.things.filter(({ kind }) => kind === 'file');
  const exported: string[] = [];
  for (let after = ''; ; ) {
    const path = `/v1/files?limit=7${after}`;
    const { status, body, text } = await api<{ data: { id: string }[]; has_more: boolean }>('GET', path, {
      token: key,
    });
    assert.equal(status, 200, text);
    exported.push(...body.data.map(({ id }) => id));
    if (!body.has_more) break;
    after = `&after=${exported.at(-1)}`;
  }
  assert.deepEqual(exported.map(uuidPart).sort(), files.map(({ id }) => uuidPart(id)).sort(), `${name}: ${hint}`);
  for (const thing of everything.filter(({ kind }) => kind === 'file' && random() < 12 / everything.length)) {
    const { status, text } = await api('GET', `/v1/files/${thing.id}/content`, { token: key });
    assert.equal(status, space.things.includes(thing) ? 200 : 404, `${name}: ${hint}`);
    assert.equal(text.includes(thing.marker), space.things.includes(thing));
  }
  type Usage = { documents: { used: number }; file_bytes: { used: number } };
  const { body: usage } = await api<Usage>('GET', '/api/v1/usage', { key });
  const bytes = files.reduce((sum, { marker }) => sum + marker.length, 0);
  const sources = space.things.filter(({ kind }) => kind === 'source').length;
  assert.deepEqual([usage.documents.used, usage.file_bytes.used], [sources, bytes], `${name}: ${hint}`);
}

/** Both interfaces have prefixes of their own. */
function uuidPart(id: string): string {
  return id.slice(id.search(/[_-]/) + 1);
}

/** How often the content of a document was read, by class of status. */
async function readCounts(): Promise<{ '2xx': number; '4xx': number }> {
  const shown = await api('GET', '/metrics');
  const text = shown.text.replaceAll(/cell="tested",|,cell="tested"/g, '');
  const countOf = (status: string) => {
    const labels = `method="GET",route="/api/v1/knowledge_documents/:document/content",status="${status}"`;
    const line = text
      .split('\n')
      .find((each) => each.startsWith(`quarry_http_request_duration_seconds_count{${labels}}`));
    return Number(line?.split(' ').at(-1) ?? 0);
  };
  return { '2xx': countOf('2xx'), '4xx': countOf('4xx') };
}

test('entries, streams, usage, the audit log and metrics stay in their app and sandbox', async () => {
  for (const { caller, name, space } of callers) {
    const { body } = await api<{ data: { value: string }[]; total_entries: number }>(
      'GET',
      '/api/v1/kv?page_size=100',
      caller,
    );
    const own = space.users.filter((user) => 'key' in caller || caller.token === user.token);
    const expected = own.map(({ id }) => space.entries.get(id)).sort();
    assert.deepEqual(body.data.map(({ value }) => value).sort(), expected, name);
    if ('token' in caller) continue;
    const other = spaces[(spaces.indexOf(space) + 1) % spaces.length] as Space;
    for (const user of other.users.slice(0, 3))
      assert.ok([404, 422].includes((await api('GET', `/api/v1/kv/diary?user=${user.id}`, caller)).status), name);
    const usage = await api('GET', '/api/v1/usage', caller);
    const audit = await api('GET', '/api/v1/audit?page_size=100', caller);
    assert.deepEqual([usage.status, audit.status], [200, 200]);
    const ids =
      other.scope.app.id === space.scope.app.id ? [] : [other.scope.app.id, ...other.users.map(({ id }) => id)];
    for (const id of [...ids, ...other.things.map((thing) => thing.id)])
      assert.ok(!usage.text.includes(id) && !audit.text.includes(id), `${id} for ${name}`);
  }
  // A watcher gets its own change, although everybody else's came before.
  const [first = callers[0]?.space] = spaces;
  const watcher = first?.users[0];
  assert.ok(first && watcher);
  const stream = await EventStream.open(`${baseUrl}/api/v1/kv_watch`, { authorization: `Bearer ${watcher.token}` });
  const put = (space: Space, user: string, value: string) =>
    api('PUT', '/api/v1/kv/watched', { key: space.scope.secretKey, body: { user, value } });
  for (const space of spaces)
    for (const { id } of space.users) if (id !== watcher.id) await put(space, id, 'not yours');
  await put(first, watcher.id, 'yours');
  for (;;) {
    const event = await stream.take();
    if (event.event !== 'put') continue;
    const { value } = event.data as { value?: string };
    if (value === first.entries.get(watcher.id)) continue;
    assert.equal(value, 'yours', JSON.stringify(event));
    break;
  }
  stream.close();

  const metrics = await api('GET', '/metrics');
  assert.equal(metrics.status, 200);
  const secrets = spaces.flatMap(({ scope, users, things, entries }) => [
    ...[scope.app.id, scope.secretKey, ...users.flatMap(({ id, token, email }) => [id, token, email])],
    ...[...things.flatMap(({ id, marker }) => (marker === '' ? [id] : [id, marker])), ...entries.values()],
  ]);
  for (const secret of secrets) assert.ok(!metrics.text.includes(secret), secret);
});

function describe(thing: Thing, { things, users, teams }: Space): string {
  const agent = things.find(({ id }) => id === thing.agent);
  const people = users.map(({ id, org, role }) => ({ id, org, role }));
  return JSON.stringify({ thing, agent, people, teams: teams.map(({ id, members }) => [id, ...members.keys()]) });
}
