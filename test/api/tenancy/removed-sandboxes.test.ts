import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { purgeSandboxes } from '../../../src/apps/purge.ts';
import { contentsOf } from '../../../src/deletions/contents.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { EventStream } from '../../support/event-stream.ts';
import { pixel } from '../../support/files.ts';
import { startSite } from '../../support/fixture-site.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import type { TestScope } from '../../support/provisioner.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* A deleted sandbox is gone for every caller at once; what it leaves is deleted in batches, whatever is killed. */

// Jobs would purge as well.
const server = await startTestServer({ env: { QUARRY_JOB_WORKERS: '0', QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
const asked: string[] = [];
const site = await startSite({ '/robots.txt': '' }, (request, response) => {
  asked.push(request.url ?? '');
  response.setHeader('content-type', 'text/html').end('<p>Goods may be returned within thirty days.</p>');
});
after(async () => {
  await server.close();
  await site.close();
});
const { api, db, provision } = server;
const app = await provision.app();
const purge = () => purgeSandboxes(db, new AbortController().signal);

/** A sandbox with a user who has files, entries and a stream, and with a searchable document. */
async function fill() {
  const sandbox = await provision.sandbox(app);
  const user = await provision.user(sandbox);
  const body = { filename: 'a.png', content_type: 'image/png', data: pixel.toString('base64'), share: true };
  const file = await api<{ id: string; url: string; share_url?: string }>('POST', '/api/v1/files', {
    token: user.token,
    body,
  });
  assert.equal(file.status, 201, file.text);
  const shown = await api<{ url: string; share_url: string }>('GET', `/api/v1/files/${file.body.id}`, {
    token: user.token,
  });
  const link = await api<{ url: string }>('POST', '/api/v1/files/upload_urls', {
    token: user.token,
    body: { filename: 'b.txt', content_type: 'text/plain' },
  });
  const knowledge = knowledgeOf(server, { key: sandbox.secretKey });
  const source = await knowledge.createSource({ org: (await provision.org(sandbox)).id });
  await knowledge.push(source, 'Goods may be returned within thirty days.');
  await db`
    insert into kv_entries (app_id, user_id, key, sandbox_id, id, value)
    select app_id, id, 'k' || n, sandbox_id, gen_random_uuid(), 'v' from users, generate_series(1, 1200) n
    where id = ${user.uuid}`;
  const links = [shown.body.url, shown.body.share_url, link.body.url];
  return { sandbox, user, links };
}

const remove = ({ sandbox }: { sandbox: TestScope & { sandbox: { id: string } } }) =>
  api('DELETE', `/api/v1/sandboxes/${sandbox.sandbox.id}`, { key: app.secretKey });

/** The number of rows of a sandbox, by table. The log of changes and its ledger are written later, and expire by age. */
async function rowsOf(sandboxId: string): Promise<Record<string, number>> {
  const tables = await db<{ name: string }[]>`
    select c.table_name as name from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
    where c.table_schema = 'public' and c.column_name = 'sandbox_id' and t.table_type = 'BASE TABLE'
      and c.table_name not in ('audit_entries', 'ledgers', 'ledger_segments')`;
  const counts: Record<string, number> = {};
  for (const { name } of tables) {
    const { count } = await db`select from ${db(name)} where sandbox_id = ${sandboxId}`;
    if (count > 0) counts[name] = count;
  }
  return counts;
}

test('a deleted sandbox is gone for every credential and every link while its rows are still there', async () => {
  const { sandbox, user, links } = await fill();
  const stream = await EventStream.open(`${server.baseUrl}/api/v1/kv_watch`, { authorization: `Bearer ${user.token}` });
  const keys = () => api<{ data: { sandbox: string }[] }>('GET', '/api/v1/keys', { key: app.secretKey });
  const get = async (url = '') => {
    const response = await fetch(url);
    await response.text();
    return response.status;
  };
  assert.deepEqual([await get(links[0]), await get(links[1])], [200, 200]);
  assert.equal((await remove({ sandbox })).status, 204);

  assert.ok(((await rowsOf(sandbox.sandbox.uuid)).kv_entries ?? 0) > 1_000, 'the rows are still there');
  const developer = { 'x-app': app.app.id, 'x-sandbox': sandbox.sandbox.id };
  const statuses = [
    await api('GET', '/api/v1/users/me', { token: user.token }),
    await api('GET', '/api/v1/users', { key: sandbox.secretKey }),
    await api('GET', '/api/v1/users', { token: app.developerToken, headers: developer }),
    await api('GET', `/api/v1/sandboxes/${sandbox.sandbox.id}`, { key: app.secretKey }),
    await api('PATCH', `/api/v1/sandboxes/${sandbox.sandbox.id}`, { key: app.secretKey, body: { name: 'x' } }),
    await remove({ sandbox }),
    await api('POST', '/api/v1/keys', { key: app.secretKey, body: { type: 'secret', sandbox: sandbox.sandbox.id } }),
  ].map(({ status }) => status);
  assert.deepEqual(statuses, [401, 401, 403, 404, 404, 404, 422]);
  const listed = await api<{ data: { id: string }[] }>('GET', '/api/v1/sandboxes', { key: app.secretKey });
  assert.ok(!listed.body.data.some(({ id }) => id === sandbox.sandbox.id));
  assert.ok(!(await keys()).body.data.some(({ sandbox: of }) => of === sandbox.sandbox.id));
  assert.deepEqual([await get(links[0]), await get(links[1])], [404, 404]);
  const put = await fetch(links[2] ?? '', { method: 'PUT', body: 'late', headers: { 'content-type': 'text/plain' } });
  assert.equal(put.status, 403, await put.text());
  await server.services.streams.endRevoked();
  while ((await stream.next()) !== undefined);
  await purge();
});

/** Lets a sandbox do on its own whatever there is, each with a request to the site. Its name is in every path. */
async function startWork(sandbox: TestScope, name: string): Promise<void> {
  const client = new AutomationsClient(server, sandbox);
  const call = (from: string) =>
    graphOf({ id: 'call', kind: 'http_request', method: 'GET', url: `${site.origin}/${name}/${from}` });
  const post = async (path: string, body: object) => {
    const made = await client.call<{ id: string }>('POST', path, body);
    assert.ok(made.status < 300, made.text);
    return made.body.id;
  };
  await post('/webhooks', { url: `${site.origin}/${name}/webhook`, events: ['*'] });
  await client.createAutomation({ type: 'scheduled', schedule: '0 0 1 1 *', workflow: call('scheduled') });
  await client.invoke((await client.createAutomation({ workflow: call('invoked') })).id);
  const org = (await provision.org(sandbox)).id;
  for (const from of ['pulled', 'due']) {
    const payload = { url: `${site.origin}/${name}/${from}` };
    const source = await post('/knowledge_sources', { org, type: 'web/link', payload });
    if (from === 'pulled') await post(`/knowledge_sources/${source}/ingest`, { pull: true });
    else await db`update knowledge_sources set next_pull_at = now() where id = ${parseId('source', source) ?? ''}`;
  }
  const link = { destination_kind: 'storage', destination_path: 'o', url: `${site.origin}/${name}/extracted` };
  await post('/extractions', { ...link, mode: 'link' });
}

/** Does everything that is due, except for the purge. */
async function workOff(): Promise<void> {
  const { tasks, ticker } = server.server.work;
  const context = {
    ...{ jobId: '0', attempt: 1, isLastAttempt: false, signal: new AbortController().signal, log: server.services.log },
    ...{ waitOutside: <T>(wait: () => Promise<T>) => wait(), isCrowded: () => false, giveWay: () => undefined },
  };
  await db`update automations set next_tick_at = now() - interval '1 hour' where next_tick_at is not null`;
  await ticker.tick();
  await tasks.start_pulls?.({}, context);
  await tasks.deliver_due?.({}, context);
  for (;;) {
    const due = await db<{ task: keyof typeof tasks; payload: object }[]>`
      delete from jobs where task <> 'purge_sandboxes' and run_at <= now() returning task, payload`;
    if (due.length === 0) return;
    for (const { task, payload } of due) await tasks[task]?.(payload as never, context);
  }
}

test('a deleted sandbox does nothing more on its own, even before it is purged', async () => {
  const kept = await provision.sandbox(app);
  const sandbox = await provision.sandbox(app);
  await startWork(kept, 'kept');
  await startWork(sandbox, 'removed');
  assert.equal((await remove({ sandbox })).status, 204);
  await workOff();
  const sorted = (name: string) => [...new Set(asked.filter((path) => path.startsWith(`/${name}/`)))].sort();
  const all = ['due', 'extracted', 'invoked', 'pulled', 'scheduled', 'webhook'];
  assert.deepEqual(
    sorted('kept'),
    all.map((from) => `/kept/${from}`),
  );
  assert.deepEqual(sorted('removed'), []);
  await purge();
});

test('a deleted sandbox gives back its place immediately, and nothing twice', async () => {
  const limited = await provision.app();
  const call = (method: 'POST' | 'PATCH' | 'DELETE' | 'GET', path: string, body?: object) =>
    api<{ id: string; sandboxes: { used: number } }>(method, path, {
      key: limited.secretKey,
      ...(body === undefined ? {} : { body }),
    });
  const first = await call('POST', '/api/v1/sandboxes', { name: 'First' });
  const used = async () => (await call('GET', '/api/v1/usage')).body.sandboxes.used;
  assert.equal(await used(), 1);
  await call('DELETE', `/api/v1/sandboxes/${first.body.id}`);
  assert.equal(await used(), 0);
  await purge();
  assert.equal(await used(), 0);
});

test('a purge commits each batch by itself, and is continued wherever it was stopped', async () => {
  const { sandbox, user } = await fill();
  const kept = await fill();
  await remove({ sandbox });
  const before = await rowsOf(kept.sandbox.sandbox.uuid);
  const stop = new AbortController();
  stop.abort(new Error('stop'));
  let stops = 0;
  // Each stops after its first full batch.
  for (let isDone = false; !isDone; )
    await purgeSandboxes(db, stops < 2 ? stop.signal : new AbortController().signal).then(
      () => {
        isDone = true;
      },
      () => {
        stops += 1;
      },
    );
  assert.equal(stops, 2);
  assert.deepEqual(await rowsOf(sandbox.sandbox.uuid), {});
  assert.equal((await db`select from kv_entries where user_id = ${user.uuid}`).count, 0);
  assert.deepEqual(await rowsOf(kept.sandbox.sandbox.uuid), before);
  await remove(kept);
  await purge();
});

test('a purge deletes runs with long journals a few at a time', async () => {
  const sandbox = await provision.sandbox(app);
  const client = new AutomationsClient(server, sandbox);
  const { id } = await client.createAutomation({ workflow: graphOf({ id: 'done', kind: 'complete' }) });
  for (let run = 0; run < 8; run++) await client.invoke(id);
  const { uuid } = sandbox.sandbox;
  await db`update automation_runs set sequence = 4000 where sandbox_id = ${uuid}`;
  await db`
    insert into automation_run_entries (app_id, run_id, sequence, id, type, record)
    select app_id, id, n, gen_random_uuid(), 'node_started', '{}' from automation_runs, generate_series(2, 4000) n
    where sandbox_id = ${uuid}`;
  await remove({ sandbox });
  const left = async () => (await db`select from automation_runs where sandbox_id = ${uuid}`).count;
  const stop = new AbortController();
  stop.abort(new Error('stop'));
  await assert.rejects(purgeSandboxes(db, stop.signal), /stop/);
  assert.equal(await left(), 5, 'the first three have more than 10,000 entries');
  await purge();
  assert.equal(await left(), 0);
});

test('no batch waits for one that is locked: what was deleted before it is committed', async () => {
  const { sandbox, user } = await fill();
  await remove({ sandbox });
  const left = async () => (await db`select from kv_entries where user_id = ${user.uuid}`).count;
  let purged: Promise<void> | undefined;
  await db.begin(async (tx) => {
    await tx`select from users where id = ${user.uuid} for update`;
    purged = purge();
    await until(async () => (await left()) === 0);
  });
  await purged;
});

test('every table with rows of a sandbox is purged in batches, or has few of them', async () => {
  const few = [
    ...['api_keys', 'app_secrets', 'app_usage', 'erasures', 'event_logs', 'identity_issuers', 'kv_counters'],
    ...['model_aliases', 'model_budgets', 'models', 'webhooks', 'pictures'],
  ];
  const referring = await db<{ name: string }[]>`
    select distinct conrelid::regclass::text as name from pg_constraint
    where contype = 'f' and confrelid = 'sandboxes'::regclass and conparentid = 0`;
  const purged = Object.keys(contentsOf(db, { appId: app.app.uuid, kind: 'sandbox', id: app.sandboxUuid }));
  const missed = referring.map(({ name }) => name).filter((name) => !purged.includes(name) && !few.includes(name));
  assert.deepEqual(missed, []);
});
