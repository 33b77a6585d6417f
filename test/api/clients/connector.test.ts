import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { mailbox } from '../../../clients/typescript/examples/mailbox.ts';
import { type Connector, checkConnector, Quarry, QuarryError } from '../../../clients/typescript/src/index.ts';
import { startImapServer } from '../../support/imap-server.ts';
import { runPython } from '../../support/python.ts';
import { startTestServer } from '../../support/server.ts';
import { projectRoot } from '../../support/source.ts';

const server = await startTestServer();
after(() => server.close());
const app = await server.provision.app();
const user = await server.provision.user(app);
const quarry = new Quarry({ baseUrl: server.baseUrl, key: app.secretKey });
const newSource = async () => (await quarry.knowledge.createSource({ type: 'knowledge/documents', user: user.id })).id;

async function idsOf(source: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const { external_id: id } of quarry.knowledge.listDocuments({ source: [source] })) ids.push(id ?? '-');
  return ids.sort();
}

test('a mailbox is copied, then only new messages are read and deleted ones are deleted', async () => {
  const mails = await startImapServer('ada', 'pass \\"word');
  after(() => mails.close());
  for (let i = 1; i <= 45; i++) mails.add(`Report ${i}`, `The weather on day ${i} was fine.`);
  mails.add('Invoice', 'Please pay for the umbrellas.');
  const box = { host: '127.0.0.1', port: mails.port, user: 'ada', password: 'pass "word', tls: false };
  const stranger = mailbox({ ...box, password: 'guess' });
  await assert.rejects(quarry.knowledge.connector(await newSource(), stranger).run('full'), /refused LOGIN/);
  const source = await newSource();
  const run = quarry.knowledge.connector(source, mailbox(box));
  const first = await run.run('full');
  assert.deepEqual([first.status, first.next_batch, first.stats.written], ['succeeded', 4, 46]);
  const found = await quarry.knowledge.searchSource(source, { query: 'umbrellas' });
  assert.equal(found.data[0]?.title, 'Invoice');
  mails.fetched.length = 0;
  mails.remove(3);
  const added = mails.add('News', 'The umbrellas have arrived.');
  const changed = await run.run('changes');
  assert.deepEqual([changed.stats.written, changed.stats.deleted], [1, 1]);
  assert.deepEqual(mails.fetched, [added]);
  assert.equal((await idsOf(source)).includes('7/3'), false);
  mails.rebuild();
  await assert.rejects(run.run('changes'), /full sync/);
  assert.equal((await idsOf(source)).length, 46);
});

test('the mailbox passes the checks of connectors', async () => {
  const mails = await startImapServer('ada', 'secret');
  after(() => mails.close());
  for (let i = 1; i <= 50; i++) mails.add(`Message ${i}`, `Text number ${i}.`);
  const box = { host: '127.0.0.1', port: mails.port, user: 'ada', password: 'secret', tls: false };
  assert.deepEqual(await checkConnector(quarry.connection, newSource, mailbox(box)), []);
});

test('the mailbox in Python copies the same, and passes the checks of connectors', async () => {
  const mails = await startImapServer('ada', 'pass \\"word');
  after(() => mails.close());
  for (let i = 1; i <= 21; i++) mails.add(`Message ${i}`, `Text number ${i}.`);
  const python = async (more: Record<string, string>) => {
    const ran = await runPython([join(projectRoot, 'test/fixtures/python/connectors/imap.py')], {
      ...{ BASE_URL: server.baseUrl, KEY: app.secretKey, OWNER: user.id, PASSWORD: 'pass "word' },
      ...{ IMAP_PORT: String(mails.port), EXAMPLES: join(projectRoot, 'clients/python/examples'), ...more },
    });
    assert.equal(ran.code, 0, ran.errors);
    return JSON.parse(ran.output) as unknown;
  };
  const source = await newSource();
  const locked = { SOURCE: await newSource(), MODE: 'full', PASSWORD: 'guess' };
  assert.match(String(await python(locked)), /wrong password/);
  assert.deepEqual(await python({ SOURCE: source, MODE: 'full' }), [21, 0]);
  mails.remove(3);
  mails.add('News', 'The umbrellas have arrived.');
  assert.deepEqual(await python({ SOURCE: source, MODE: 'changes' }), [1, 1]);
  assert.equal((await idsOf(source)).includes('7/3'), false);
  mails.rebuild();
  assert.match(String(await python({ SOURCE: source, MODE: 'changes' })), /full sync/);
  assert.deepEqual(await python({}), []);
});

test('the checks find a connector that forgets where it was, repeats itself, or changes what has not changed', async () => {
  let calls = 0;
  const upsert = (id: number, text = `Text ${id}.`) => ({ external_id: String(id), content: { data: text } });
  const forgetful: Connector = {
    async *full(cursor) {
      // It continues one batch too far.
      const from = cursor === null ? 0 : Number(cursor) + 1;
      for (let at = from; at < 4; at++) yield { upserts: [upsert(at)], cursor: String(at + 1) };
    },
  };
  const problems = await checkConnector(quarry.connection, newSource, forgetful);
  assert.ok(
    problems.some((problem) => /Stopped after 1 batches and resumed, 1 documents differ/.test(problem)),
    problems.join('\n'),
  );
  const noisy: Connector = {
    async *full() {
      calls += 1;
      yield { upserts: [upsert(1, `Call ${calls}.`), upsert(2)], cursor: null };
      yield { upserts: [upsert(2)], cursor: 'end' };
    },
    async *changes() {
      yield { deletes: [{ external_id: '2' }], cursor: 'end' };
    },
  };
  const found = await checkConnector(quarry.connection, newSource, noisy);
  for (const words of [/no cursor/, /"2" twice/, /second full sync writes/, /reports changes/])
    assert.ok(
      found.some((problem) => words.test(problem)),
      `${words} is not in ${found.join('\n')}`,
    );
});

test('a connector that throws leaves a full sync to be resumed, and two at once are refused', async () => {
  const source = await newSource();
  const upserts = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({
      external_id: String(from + i),
      content: { data: `Text ${from + i}.` },
    }));
  const cursors: (string | null)[] = [];
  const failing = (fails: boolean): Connector => ({
    async *full(cursor) {
      cursors.push(cursor);
      if (cursor === null) yield { upserts: upserts(0, 130), cursor: 'first half' };
      if (fails) throw new Error('The other system is down.');
      yield { upserts: upserts(130, 20), cursor: 'everything' };
    },
  });
  await assert.rejects(quarry.knowledge.connector(source, failing(true)).run('full'), /is down/);
  await assert.rejects(
    quarry.knowledge.connector(source, failing(false)).run('full'),
    (error) => error instanceof QuarryError && error.status === 409,
  );
  const ended = await quarry.knowledge.connector(source, failing(false)).run('full', { takeOver: true });
  assert.deepEqual([ended.documents, ended.next_batch, ended.stats.written], [150, 4, 150]);
  assert.deepEqual(cursors, [null, 'first half']);
});
