import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startKillableServer } from '../support/killable-server.ts';
import { until } from '../support/until.ts';

const rounds = Number(process.env.CRASH_ROUNDS ?? 3);
const pushes = 60;
const batches = 30;

const server = await startKillableServer('pushes');
after(() => server.close());
const { db, send } = server;

type Id = { id: string };
type Listed = { data: { title: string }[]; total_entries: number };

async function create(path: string, body: object): Promise<string> {
  const { status, body: made, text } = await send<Id>('POST', path, body);
  assert.ok(status === 200 || status === 201, text);
  return made.id;
}

async function listTitles(source: string): Promise<string[]> {
  const titles: string[] = [];
  for (let page = 1; ; page += 1) {
    const { body } = await send<Listed>('GET', `/knowledge_documents?source=${source}&page_size=100&page=${page}`);
    titles.push(...body.data.map(({ title }) => title));
    if (titles.length >= body.total_entries) return titles.sort();
  }
}

test('however often the server is killed while pushes share transactions, each that it acknowledged is one document', async () => {
  const org = await create('/orgs', { name: 'O' });
  for (let round = 1; round <= rounds; round += 1) {
    const source = await create('/knowledge_sources', { type: 'knowledge/documents', org });
    const acknowledged = new Set<string>();
    const titles = Array.from({ length: pushes }, (_, at) => `push ${round}-${at}`);
    const sent = titles.map(async (title) => {
      const body = { content: { data: `Text of ${title}.` }, title, on_active: 'queue' };
      const made = await send('POST', `/knowledge_sources/${source}/ingest`, body).catch(() => undefined);
      if (made?.status === 201) acknowledged.add(title);
    });
    const enough = Math.floor(Math.random() * pushes);
    await until(async () => acknowledged.size >= enough);
    await server.serve.kill();
    await Promise.all(sent);
    await server.restart();
    const isOpen = async () =>
      (await db`select from knowledge_ingestions where status in ('pending', 'running')`).count;
    await until(async () => (await isOpen()) === 0);
    const stored = await listTitles(source);
    assert.deepEqual(stored, [...new Set(stored)], 'no document twice');
    assert.deepEqual(
      [...acknowledged].filter((title) => !stored.includes(title)),
      [],
    );
    assert.deepEqual(
      stored.filter((title) => !titles.includes(title)),
      [],
    );
    const { count: failed } = await db`select from knowledge_ingestions where status = 'failed'`;
    assert.equal(failed, 0);
  }
});

test('however often the server is killed during batches of entries, each batch is stored whole or not at all', async () => {
  const user = await create('/users', { email: 'kv@example.test' });
  for (let round = 1; round <= rounds; round += 1) {
    const acknowledged: string[] = [];
    const sent = Array.from({ length: batches }, async (_, at) => {
      const name = `r${round}b${at}`;
      const operations = Array.from({ length: 20 }, (_each, n) => ({ op: 'put', key: `${name}/${n}`, value: name }));
      const made = await send('POST', '/kv_batch', { user, operations }).catch(() => undefined);
      if (made?.status === 200) acknowledged.push(name);
      else assert.ok(made === undefined || made.status >= 500, made?.text);
    });
    const enough = Math.floor(Math.random() * batches);
    await until(async () => acknowledged.length >= enough);
    await server.serve.kill();
    await Promise.all(sent);
    await server.restart();
    const stored = await db<{ name: string; entries: number }[]>`
      select value as name, count(*)::integer as entries from kv_entries where key like ${`r${round}b%`} group by value`;
    assert.deepEqual(
      stored.filter(({ entries }) => entries !== 20),
      [],
    );
    const names = new Set(stored.map(({ name }) => name));
    assert.deepEqual(
      acknowledged.filter((name) => !names.has(name)),
      [],
    );
  }
});
