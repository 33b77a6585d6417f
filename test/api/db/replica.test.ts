import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { checkReplicaUrl } from '../../../src/cli/operate/doctor-replica.ts';
import { readConfig } from '../../../src/config/config.ts';
import { createEmptyDatabase } from '../../support/database.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startPostgresPair } from '../../support/postgres-pair.ts';
import { startTestServer } from '../../support/server.ts';

/* Two servers over a primary and its asynchronous replica: one writes, the other reads. */
const pair = await startPostgresPair({ synchronous: false });
const dataDir = mkdtempSync(join(tmpdir(), 'quarry-replica-'));
const { host, port, database, username } = pair.standby.address;
const env = {
  DATABASE_URL: 'postgres://unused',
  DATABASE_REPLICA_URL: `postgres://${username}@${host}:${port}/${database}`,
};
const writer = await startTestServer({
  installed: {
    ...{ target: pair.primary.address, db: pair.primary.db, dataDir },
    secret: randomBytes(32).toString('hex'),
  },
  env,
});
const reader = await startTestServer({ beside: writer, env });
after(async () => {
  await reader.close();
  await writer.close();
  await pair.close();
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
});
afterEach(async () => {
  await replay('resume').catch(() => {});
});
const { app, org, member, loner } = await writer.provision.world();
const key = app.secretKey;

const replay = (action: 'pause' | 'resume') =>
  action === 'pause' ? pair.standby.db`select pg_wal_replay_pause()` : pair.standby.db`select pg_wal_replay_resume()`;

/** How many reads of the reader ran where. */
async function outcomes(): Promise<Record<'replica' | 'lagging' | 'failed', number>> {
  const text = await reader.services.metrics.text();
  const count = (outcome: string) =>
    Number(new RegExp(`^quarry_replica_reads_total\\{outcome="${outcome}"\\} (\\d+)`, 'm').exec(text)?.[1] ?? 0);
  return { replica: count('replica'), lagging: count('lagging'), failed: count('failed') };
}

async function listKeys(): Promise<string[]> {
  const { status, body, text } = await reader.api<{ data: { key: string }[] }>(
    'GET',
    `/api/v1/kv?user=${member.id}&page_size=1000`,
    { key },
  );
  assert.equal(status, 200, text);
  return body.data.map((entry) => entry.key);
}

const put = (name: string) => writer.api('PUT', `/api/v1/kv/${name}`, { key, body: { user: member.id, value: 'x' } });

/** Lists until the replica serves one. */
async function untilOnReplica(): Promise<void> {
  for (const { replica } = await outcomes(); (await outcomes()).replica === replica; await wait(20)) await listKeys();
}

test('the database notices within half a minute that the machine of a server’s sessions is dead', async () => {
  const { db, direct, session } = writer.services;
  for (const pool of [db, direct, session, pair.standby.db]) {
    const [row] = await pool`select current_setting('tcp_keepalives_idle') as idle,
      current_setting('tcp_keepalives_interval') as interval, current_setting('tcp_keepalives_count') as count,
      current_setting('tcp_user_timeout') as user`;
    assert.deepEqual(row, { idle: '10', interval: '5', count: '3', user: '30000' });
  }
});

test('lists and searches run on the replica, and see each write that another process has acknowledged', async () => {
  const knowledge = knowledgeOf(writer, { key });
  const source = await knowledge.createSource({ org: org.id });
  await untilOnReplica();
  // On a busy machine the replica is behind more often.
  for (let i = 0; i < 100 || ((await outcomes()).replica < 50 && i < 900); i++) {
    await put(`steady-${i}`);
    assert.ok((await listKeys()).includes(`steady-${i}`), `steady-${i}`);
  }
  for (const word of ['zebra', 'giraffe', 'ocelot']) {
    await knowledge.push(source, `A text about the ${word}.`);
    assert.equal((await knowledgeOf(reader, { key }).search(source, word)).length, 1, word);
  }
  const { replica, failed } = await outcomes();
  assert.ok(replica >= 50, `${replica} reads on the replica`);
  // A read that gets no connection in time fails, and runs on the primary.
  assert.ok(failed <= replica / 10, `${failed} reads failed`);
});

test('a replica that lags serves nothing older than an acknowledged write', async () => {
  const source = await knowledgeOf(writer, { key }).createSource({ org: org.id });
  await untilOnReplica();
  await replay('pause');
  const before = await outcomes();
  for (let i = 0; i < 5; i++) {
    await put(`late-${i}`);
    assert.ok((await listKeys()).includes(`late-${i}`));
  }
  await knowledgeOf(writer, { key }).push(source, 'A text about the capybara.');
  assert.equal((await knowledgeOf(reader, { key }).search(source, 'capybara')).length, 1);
  const during = await outcomes();
  assert.ok(during.lagging > before.lagging);
  assert.equal(during.replica, before.replica);
  await replay('resume');
  await untilOnReplica();
});

test('revoked access is effective in the next list and search, however far the replica lags', async () => {
  const upload = { filename: 'a.txt', content_type: 'text/plain', data: 'eA==' };
  const grants = [{ principal_type: 'user', principal: loner.id, actions: ['read'] }];
  const file = await writer.api<{ id: string }>('POST', '/api/v1/files', { key, body: { ...upload, acl: { grants } } });
  assert.equal(file.status, 201, file.text);
  const seen = async () => {
    const { body } = await reader.api<{ data: { id: string }[] }>('GET', '/api/v1/files', { token: loner.token });
    return body.data.some(({ id }) => id === file.body.id);
  };
  const knowledge = knowledgeOf(writer, { key });
  const source = await knowledge.createSource({ org: org.id });
  await knowledge.push(source, 'A text about the wombat.');
  const find = () =>
    reader.api<{ data: unknown[] }>('POST', '/api/v1/knowledge_search', {
      token: member.token,
      body: { query: 'wombat' },
    });
  await untilOnReplica();
  assert.equal(await seen(), true);
  assert.equal((await find()).body.data.length, 1);
  await replay('pause');
  await writer.api('PATCH', `/api/v1/files/${file.body.id}`, { key, body: { acl: { grants: [] } } });
  assert.equal(await seen(), false);
  assert.equal((await writer.api('DELETE', `/api/v1/knowledge_sources/${source}`, { key })).status, 204);
  assert.equal((await find()).body.data.length, 0);
});

test('an old primary serves nothing after a promotion', async () => {
  await untilOnReplica();
  const before = await outcomes();
  // The mark of the primary's timeline, which such a server never receives.
  await pair.primary.db`update server_facts set value = 'another' where name = 'timeline'`;
  await put('moved');
  assert.ok((await listKeys()).includes('moved'));
  const { replica, lagging } = await outcomes();
  assert.deepEqual([replica, lagging > before.lagging], [before.replica, true]);
  await pair.primary.db`update server_facts set value = '00000001' where name = 'timeline'`;
  await untilOnReplica();
});

test('`quarry doctor` names problems of DATABASE_REPLICA_URL', async () => {
  const primary = pair.primary.db;
  const check = async (replica: string, db = primary) => {
    const [result] = await checkReplicaUrl(
      db,
      readConfig({ ...env, DATABASE_REPLICA_URL: replica, QUARRY_SECRET: writer.services.config.secret }),
    );
    return `${result?.level}: ${result?.message}`;
  };
  const url = (at: typeof pair.standby.address, name = database, user = username) =>
    `postgres://${user}@${at.host}:${at.port}/${name}`;
  const standby = pair.standby.address;
  assert.match(await check(url(standby)), /^ok: .*(had everything|caught up within \d+ ms)/);
  assert.match(await check(url(pair.primary.address)), /^fail: .*is not a replica/);
  assert.match(await check(url(standby, 'template1')), /^fail: .*names the database template1/);
  assert.match(await check(url(standby, 'missing')), /^fail: .*does not exist/);
  assert.match(await check(url(standby, database, 'nobody')), /^fail: .*rejects the user/);
  assert.match(await check('postgres://quarry@127.0.0.1:1/postgres'), /^warn: .*Cannot connect.*DATABASE_REPLICA_URL/);
  const elsewhere = await createEmptyDatabase();
  assert.match(await check(url(standby), elsewhere.db), /^fail: .*replica of another PostgreSQL/);
  await elsewhere.drop();
  await replay('pause');
  await put('unseen');
  assert.match(await check(url(standby)), /^warn: the replica lacks \d+ bytes/);
});

test('when the replica is killed, requests continue to succeed', async () => {
  await untilOnReplica();
  let served = 0;
  const killed = Promise.withResolvers<void>();
  const readers = Array.from({ length: 4 }, async () => {
    for (let i = 0; i < 30; i++) {
      assert.ok((await listKeys()).length > 0);
      if (++served === 40) killed.resolve(pair.standby.kill());
    }
  });
  await Promise.all([...readers, killed.promise]);
  // The readers may have ended before the kill had, and a replica that lagged rests for a while.
  const deadline = Date.now() + 300_000;
  while ((await outcomes()).failed === 0 && Date.now() < deadline) assert.ok((await listKeys()).length > 0);
  assert.ok((await outcomes()).failed > 0);
  await put('alone');
  assert.ok((await listKeys()).includes('alone'));
});
