import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { contentsOf, losesOrg, type OwnerKind } from '../../../src/deletions/contents.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { pixel } from '../../support/files.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* Orgs, users, agents, teams, sources, automations and webhooks may have millions of rows, which are deleted in batches. */

// Jobs would continue a deletion.
const server = await startTestServer({ env: { QUARRY_JOB_WORKERS: '0' } });
after(() => server.close());
const { api, db, provision } = server;
const app = await provision.app();
const key = app.secretKey;
const appId = app.app.uuid;
const automations = new AutomationsClient(server, app);
const knowledge = knowledgeOf(server, { key });
const many = 2_100;

type Much = {
  path: string;
  kind: OwnerKind;
  uuid: string;
  /** Of its many rows, how many are left. */
  left(): Promise<number>;
  /** A table whose rows are deleted later, and one of its rows. */
  later: { table: string; where: string };
};

async function post(path: string, body: object): Promise<string> {
  const { status, body: made, text } = await api<{ id: string }>('POST', `/api/v1${path}`, { key, body });
  assert.equal(status, 201, text);
  return made.id;
}

const file = { filename: 'a.txt', content_type: 'text/plain', data: Buffer.from('Text.').toString('base64') };

async function ofThreads(kind: 'org' | 'agent' | 'team', path: string, id: string): Promise<Much> {
  const uuid = parseId(kind, id) ?? '';
  await post('/files', { ...file, [kind]: id });
  await db`
    insert into threads (app_id, sandbox_id, id, ${db(`${kind}_id`)}, title)
    select ${appId}, ${app.sandboxUuid}, gen_random_uuid(), ${uuid}, 'T' from generate_series(1, ${many})`;
  const left = async () =>
    (await db`select from threads where app_id = ${appId} and ${db(`${kind}_id`)} = ${uuid}`).count;
  return { path: `${path}/${id}`, kind, uuid, left, later: { table: 'files', where: `${kind}_id` } };
}

const owners: Record<string, () => Promise<Much>> = {
  org: async () => ofThreads('org', '/orgs', (await provision.org(app)).id),
  async user() {
    const user = await provision.user(app);
    await post('/files', { ...file, user: user.id });
    await db`
      insert into kv_entries (app_id, user_id, key, sandbox_id, id, value)
      select app_id, id, 'k' || n, sandbox_id, gen_random_uuid(), 'v' from users, generate_series(1, ${many}) n
      where id = ${user.uuid}`;
    const left = async () => (await db`select from kv_entries where user_id = ${user.uuid}`).count;
    return {
      path: `/users/${user.id}`,
      kind: 'user',
      uuid: user.uuid,
      left,
      later: { table: 'files', where: 'user_id' },
    };
  },
  agent: async () => ofThreads('agent', '/agents', await post('/agents', { name: 'A' })),
  team: async () => ofThreads('team', '/teams', (await provision.team(app)).id),
  async source() {
    const id = await knowledge.createSource({ org: (await provision.org(app)).id });
    const uuid = parseId('source', id) ?? '';
    await api('POST', `/api/v1/knowledge_sources/${id}/ingest`, { key, body: { content: { data: 'Goods.' } } });
    await db`
      insert into knowledge_tombstones (app_id, source_id, external_id, external_order)
      select ${appId}, ${uuid}, 'd' || n, 1 from generate_series(1, ${many}) n`;
    const left = async () => (await db`select from knowledge_tombstones where source_id = ${uuid}`).count;
    const later = { table: 'knowledge_ingestions', where: 'source_id' };
    return { path: `/knowledge_sources/${id}`, kind: 'source', uuid, left, later };
  },
  async automation() {
    const { id } = await automations.createAutomation({ workflow: graphOf({ id: 'done', kind: 'complete' }) });
    const uuid = parseId('automation', id) ?? '';
    await automations.call('POST', `/automations/${id}/invoke`, { idempotency_key: 'k' });
    await db`update automation_runs set sequence = ${many} where automation_id = ${uuid}`;
    const left = async () => (await db`select from automation_runs where automation_id = ${uuid}`).count;
    const later = { table: 'automation_invocations', where: 'automation_id' };
    return { path: `/automations/${id}`, kind: 'automation', uuid, left, later };
  },
};

const remove = (path: string) => api('DELETE', `/api/v1${path}`, { key });
const status = async (path: string) => (await api('GET', `/api/v1${path}`, { key })).status;
const isWaiting = async () =>
  db`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.any();

for (const [name, make] of Object.entries(owners)) {
  test(`much of ${name} is deleted in batches: what is locked keeps nothing else from being deleted`, async () => {
    const { path, uuid, left, later } = await make();
    let removed: ReturnType<typeof remove> | undefined;
    await db.begin(async (tx) => {
      const locked =
        await tx`select from ${tx(later.table)} where app_id = ${appId} and ${tx(later.where)} = ${uuid} for update`;
      assert.ok(locked.count > 0);
      removed = remove(path);
      await until(async () => (await left()) === 0);
    });
    assert.equal((await removed)?.status, 204);
    assert.equal(await status(path), 404);
  });

  test(`a deletion of ${name} whose request was killed is continued by its job`, async () => {
    const { path, kind, uuid, left, later } = await make();
    await db.begin(async (tx) => {
      await tx`select from ${tx(later.table)} where app_id = ${appId} and ${tx(later.where)} = ${uuid} for update`;
      const removed = remove(path);
      await until(async () => (await left()) === 0 && (await isWaiting()));
      await db`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      assert.equal((await removed).status, 503);
    });
    assert.equal(await status(path), 200, 'it is not deleted yet');
    const [job] = await db<{ payload: { appId: string; kind: string; id: string } }[]>`
      delete from jobs where task = 'delete_owner' and payload ->> 'id' = ${uuid} returning payload`;
    assert.deepEqual({ ...job?.payload }, { appId, kind, id: uuid });
    const context = { signal: new AbortController().signal } as never;
    await server.server.work.tasks.delete_owner?.(job?.payload ?? {}, context);
    assert.equal(await status(path), 404);
    await server.server.work.tasks.delete_owner?.(job?.payload ?? {}, context);
  });
}

test('what belongs to a user or an agent of a large org stays when the org is deleted', async () => {
  const org = await provision.org(app);
  const user = await provision.user(app, { org });
  const team = await provision.team(app, { org });
  const agent = await post('/agents', { name: 'A', user: user.id });
  const orgs = parseId('org', org.id) ?? '';
  const logo = { filename: 'logo.png', mime_type: 'image/png', data: pixel.toString('base64') };
  await api('PATCH', `/api/v1/orgs/${org.id}`, { key, body: { logo } });
  for (const owner of [{ user: user.id }, { team: team.id }, { agent }, { org: org.id }])
    await post('/files', { ...file, ...owner });
  await db`
    insert into threads (app_id, sandbox_id, id, org_id, user_id, title)
    select ${appId}, ${app.sandboxUuid}, gen_random_uuid(), ${orgs}, ${user.uuid}, 'T' from generate_series(1, ${many})`;
  const left = async (table: string) => (await db`select from ${db(table)} where org_id = ${orgs}`).count;
  assert.deepEqual([await left('threads'), await left('files')], [many, 5]);
  assert.equal((await remove(`/orgs/${org.id}`)).status, 204);
  assert.deepEqual(
    [await left('threads'), await left('files'), await left('users'), await left('teams')],
    [0, 0, 0, 0],
  );
  assert.equal((await db`select from threads where user_id = ${user.uuid}`).count, many);
  const files = await db`
    select from files where app_id = ${appId}
      and (user_id = ${user.uuid} or team_id = ${parseId('team', team.id)} or agent_id = ${parseId('agent', agent)})`;
  assert.equal(files.count, 3);
  for (const path of [`/users/${user.id}`, `/teams/${team.id}`, `/agents/${agent}`])
    assert.equal(await status(path), 200);
});

test('what is being deleted is found by no search, and starts nothing', async () => {
  const source = await owners.source?.();
  const automation = await owners.automation?.();
  assert.ok(source && automation);
  await db.begin(async (tx) => {
    await tx`select from knowledge_ingestions where source_id = ${source.uuid} for update`;
    await tx`select from automation_invocations where automation_id = ${automation.uuid} for update`;
    const removed = [remove(source.path), remove(automation.path)];
    await until(async () => (await source.left()) + (await automation.left()) === 0);
    const search = await api<{ data: unknown[] }>('POST', `/api/v1${source.path}/search`, {
      key,
      body: { query: 'goods' },
    });
    assert.deepEqual([search.status, search.body.data], [200, []]);
    const invoked = await api('POST', `/api/v1${automation.path}/invoke`, { key, body: {} });
    assert.equal(invoked.status, 422, invoked.text);
    assert.equal(await automation.left(), 0);
    void Promise.all(removed);
  });
  await until(async () => (await status(source.path)) === 404 && (await status(automation.path)) === 404);
});

/** Tables with a few rows of an owner, or of a row that is deleted in a batch. */
const few = [
  ...['assistant_grants', 'console_user_sessions', 'group_members', 'kv_usage', 'kv_watches', 'personal_tokens'],
  ...['sign_in_addresses', 'knowledge_embedders', 'knowledge_indexes', 'knowledge_models', 'knowledge_sync_states'],
  ...['installations', 'automation_graphs', 'knowledge_version_texts'],
];

test('every table whose rows are deleted with an owner is named by what is deleted in batches, or has few of them', async () => {
  const tables = { user: 'users', agent: 'agents', team: 'teams', source: 'knowledge_sources' } as const;
  const others = { installation: 'installations', automation: 'automations', webhook: 'webhooks' } as const;
  for (const [kind, table] of Object.entries({ ...tables, ...others })) {
    const named = Object.keys(contentsOf(db, { appId, kind: kind as OwnerKind, id: app.app.uuid }, [app.app.uuid]));
    const following = await db<{ name: string }[]>`
      select distinct conrelid::regclass::text as name from pg_constraint
      where contype = 'f' and confdeltype = 'c' and confrelid = ${table}::regclass and conparentid = 0`;
    const missed = following.map(({ name }) => name).filter((name) => !named.includes(name) && !few.includes(name));
    assert.deepEqual(missed, [], `of ${kind}`);
  }
});

test('every table whose rows are deleted with an org, or lose it, is named', async () => {
  const org = { appId, kind: 'org', id: app.app.uuid } as const;
  const deleted = await db<{ name: string }[]>`
    select substring(pg_get_triggerdef(oid) from $$'(\\w+)'$$) as name from pg_trigger
    where tgrelid = 'orgs'::regclass and tgname like 'delete\\_%' and tgname <> 'delete_files'`;
  const named = Object.keys(contentsOf(db, org));
  assert.deepEqual(
    deleted.map(({ name }) => name).filter((name) => !named.includes(name)),
    [],
  );
  assert.ok(deleted.length > 4 && named.includes('files'));
  const changed = await db<{ name: string }[]>`
    select conrelid::regclass::text as name from pg_constraint
    where contype = 'f' and confdeltype = 'n' and confrelid = 'orgs'::regclass and conparentid = 0`;
  assert.deepEqual(Object.keys(losesOrg(db, org)).toSorted(), changed.map(({ name }) => name).toSorted());
});
