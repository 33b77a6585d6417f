import assert from 'node:assert/strict';
import { production } from '../../src/db/database.ts';
import { parseId } from '../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from './automations.ts';
import { knowledgeOf } from './knowledge.ts';
import type { LimitCase } from './limits.ts';
import type { TestApp } from './provisioner.ts';
import type { ApiOptions, ApiResponse, TestServer } from './server.ts';
import { until } from './until.ts';

type Send = <T = object>(number: number, method: string, path: string, options: ApiOptions) => Promise<ApiResponse<T>>;

const quota = { status: 422, code: 'quota_exceeded' };

/** Callers who each store a response, as the app or as one of its users. Most are stored beforehand. */
function storedResponses({ db, provision, api }: TestServer, who: 'app' | 'user') {
  return {
    async prepare() {
      const app = await provision.app();
      const user = await provision.user(app);
      const max = who === 'app' ? 100_000 : 1_000;
      const userId = who === 'app' ? null : parseId('user', user.id);
      await db`insert into openai_responses (app_id, sandbox_id, id, user_id, input, response, document_ids, created_at,
          expires_at)
        select ${app.app.uuid}, ${production}, gen_random_uuid(), ${userId ?? null}, '[]', '{}', '{}', now(),
          now() + interval '1 day' from generate_series(1, ${max - 10})`;
      const caller = who === 'app' ? { token: app.secretKey } : { token: user.token };
      const [before] = [max - 10];
      return {
        attempt: () => api('POST', '/v1/responses', { ...caller, body: { input: 'Hello.' } }),
        held: async () => (await db`select 1 from openai_responses where app_id = ${app.app.uuid}`).length - before,
      };
    },
  };
}

/** Limits of how many rows an app, a group, an approval or a sync may have. Large ones are nearly reached beforehand. */
export function limitsOfRows(server: TestServer, send: Send): LimitCase[] {
  const { db, provision } = server;
  const count = async (table: string, app: TestApp) =>
    (
      await db<[{ total: number }]>`select count(*)::integer as total from ${db(table)} where app_id = ${app.app.uuid}`
    )[0].total;
  const rows = (
    table: string,
    path: string,
    body: (number: number) => object,
    method = 'POST',
    prepare = async (_app: TestApp): Promise<unknown> => undefined,
    heldMax?: number,
  ) => ({
    async prepare() {
      const app = await provision.app();
      await prepare(app);
      return {
        attempt: (number: number) =>
          send(number, method, path.replace('#', String(number)), { key: app.secretKey, body: body(number) }),
        held: () => count(table, app),
        ...(heldMax === undefined ? {} : { heldMax }),
      };
    },
  });
  const model = { provider: 'openai', model: 'm', url: 'https://models.example.com/v1' };
  return [
    {
      ...{ limit: 'models', max: 100, attempts: 120, refusal: quota },
      ...rows('models', '/models', (number) => ({ ...model, name: `m${number}` })),
    },
    {
      ...{ limit: 'aliases of models', max: 100, attempts: 120, refusal: quota },
      ...rows(
        ...(['model_aliases', '/model_aliases', (number: number) => ({ name: `a${number}`, models: ['m'] })] as const),
        'POST',
        (app) => send(0, 'POST', '/models', { key: app.secretKey, body: { ...model, name: 'm' } }),
      ),
    },
    {
      ...{ limit: 'budgets for models', max: 10, attempts: 30, refusal: quota },
      ...rows(
        ...(['model_budgets', '/model_budgets', () => ({ subject: 'app', period: 'day', tokens: 100 })] as const),
        'POST',
        (app) => db`insert into model_budgets (app_id, sandbox_id, id, subject, period, tokens)
          select ${app.app.uuid}, ${production}, gen_random_uuid(), 'user', 'day', 1 from generate_series(1, 190)`,
        200,
      ),
    },
    {
      ...{ limit: 'stored responses of OpenAI clients', max: 10, attempts: 30, refusal: quota },
      ...storedResponses(server, 'app'),
    },
    {
      ...{ limit: 'stored responses of a user', max: 10, attempts: 30, refusal: quota },
      ...storedResponses(server, 'user'),
    },
    {
      ...{ limit: 'config entries', max: 10, attempts: 30, refusal: quota },
      ...rows(
        ...(['configs', '/config/new/#', () => ({ content: 'Text.' })] as const),
        'PUT',
        (app) => db`insert into configs (app_id, sandbox_id, id, owner_id, virtual_path, version)
          select ${app.app.uuid}, ${production}, gen_random_uuid(), ${app.app.uuid}, 'old/' || n, 1
          from generate_series(1, 9990) n`,
        10_000,
      ),
    },
    {
      ...{ limit: 'erasures', max: 10, attempts: 30, refusal: quota },
      async prepare() {
        const app = await provision.app();
        const users: string[] = [];
        for (let n = 0; n < 30; n++) users.push((await provision.user(app)).id);
        await db`insert into erasures (app_id, sandbox_id, id, subject_kind, subject_id, status, created_at)
          select ${app.app.uuid}, ${production}, gen_random_uuid(), 'user', gen_random_uuid(), 'done', now()
          from generate_series(1, 99990)`;
        return {
          ...{ held: () => count('erasures', app), heldMax: 100_000 },
          attempt: (number) => send(number, 'POST', '/erasures', { key: app.secretKey, body: { user: users[number] } }),
        };
      },
    },
    {
      ...{ limit: 'running erasures', max: 10, attempts: 30, refusal: quota },
      async prepare() {
        const app = await provision.app();
        const users: string[] = [];
        for (let n = 0; n < 30; n++) users.push((await provision.user(app)).id);
        // Without jobs, none of them ends.
        await db`insert into erasures (app_id, sandbox_id, id, subject_kind, subject_id, created_at)
          select ${app.app.uuid}, ${production}, gen_random_uuid(), 'user', gen_random_uuid(), now()
          from generate_series(1, 90)`;
        return {
          held: async () => (await count('erasures', app)) - 90,
          attempt: (number) => send(number, 'POST', '/erasures', { key: app.secretKey, body: { user: users[number] } }),
        };
      },
    },
    {
      ...{ limit: 'groups', max: 10, attempts: 30, refusal: quota },
      ...rows(
        ...(['groups', '/groups', (number: number) => ({ namespace: 'new', external_id: `g${number}` })] as const),
        'POST',
        (app) => db`insert into groups (app_id, sandbox_id, id, namespace, external_id)
          select ${app.app.uuid}, ${production}, gen_random_uuid(), 'old', n::text from generate_series(1, 99990) n`,
        100_000,
      ),
    },
    {
      ...{ limit: 'members of a group', max: 5, attempts: 10, refusal: quota },
      async prepare() {
        const app = await provision.app();
        const body = { namespace: 'n', external_id: 'e' };
        const made = await send<{ id: string }>(0, 'POST', '/groups', { key: app.secretKey, body });
        assert.equal(made.status, 201, made.text);
        const group = parseId('group', made.body.id) ?? '';
        const users: string[] = [];
        for (let n = 0; n < 10; n++) users.push((await provision.user(app)).id);
        await db`with made as (
            insert into users (app_id, sandbox_id, id)
            select ${app.app.uuid}, ${production}, gen_random_uuid() from generate_series(1, 99995) returning id)
          insert into group_members (app_id, group_id, user_id) select ${app.app.uuid}, ${group}, id from made`;
        return {
          ...{ held: () => count('group_members', app), heldMax: 100_000 },
          attempt: (number) =>
            send(number, 'POST', `/groups/${made.body.id}/members`, {
              ...{ key: app.secretKey, body: { user: users[number] } },
            }),
        };
      },
    },
    {
      ...{ limit: 'links to an approval', max: 20, attempts: 40, refusal: quota },
      async prepare() {
        const app = await provision.app();
        const boss = await provision.user(app);
        const client = new AutomationsClient(server, app);
        const node = { id: 'ask', kind: 'approve', question: 'Sure?', users: [boss.id] };
        const { id } = await client.createAutomation({ workflow: graphOf(node) });
        const run = await client.invoke(id);
        let approval: string | undefined;
        await until(async () => {
          const path = `/approvals?run=${run.id}`;
          const { body } = await send<{ data: { id: string }[] }>(0, 'GET', path, { key: app.secretKey });
          approval = body.data[0]?.id;
          return approval !== undefined;
        });
        return {
          attempt: (number) =>
            send(number, 'POST', `/approvals/${approval}/links`, {
              key: app.secretKey,
              body: { to: `${number}@a.example` },
            }),
          held: () => count('approval_links', app),
        };
      },
    },
    {
      ...{ limit: 'documents waiting to be indexed by syncs', max: 0, attempts: 4 },
      refusal: { status: 429, code: 'rate_limited' },
      async prepare() {
        const { app, sync, source } = await begin();
        await db`insert into knowledge_sync_items (app_id, source_id, position, sync_id, external_id)
          select ${app.app.uuid}, ${source}, n, ${parseId('sync', sync.id) ?? ''}, n::text
          from generate_series(1000, 2999) n`;
        return { attempt: (number) => putBatch(number, app, sync, 1), held: async () => 0 };
      },
    },
    {
      ...{ limit: 'batches', max: 0, attempts: 4, refusal: { status: 409, code: 'conflict' } },
      async prepare() {
        const { app, sync } = await begin();
        await db`update knowledge_syncs set batches = 100000 where app_id = ${app.app.uuid}`;
        return { attempt: (number) => putBatch(number, app, sync, 100_001), held: async () => 0 };
      },
    },
  ];

  type Sync = { id: string; fence: number };

  async function begin() {
    const app = await provision.app();
    const user = await provision.user(app);
    const source = await knowledgeOf(server, { key: app.secretKey }).createSource({ user: user.id });
    const path = `/knowledge_sources/${source}/syncs`;
    const { status, body, text } = await send<Sync>(0, 'POST', path, { key: app.secretKey, body: { mode: 'changes' } });
    assert.equal(status, 201, text);
    return { app, sync: body, source: parseId('source', source) ?? '' };
  }

  function putBatch(number: number, app: TestApp, { id, fence }: Sync, batch: number) {
    const body = { fence, deletes: [{ external_id: 'gone' }], cursor: 'c' };
    return send(number, 'PUT', `/knowledge_syncs/${id}/batches/${batch}`, { key: app.secretKey, body });
  }
}
