import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, test } from 'node:test';
import { production } from '../../../src/db/database.ts';
import { AssistantFlow } from '../../support/assistant.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { responses, startSite } from '../../support/fixture-site.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startLanguageModel } from '../../support/language-model.ts';
import { type LimitCase, namesOfLimits, tryLimit } from '../../support/limits.ts';
import { limitsOfRows } from '../../support/limits-of-rows.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { type ApiOptions, type ApiResponse, startTestServer, type TestServer } from '../../support/server.ts';
import { readProjectFile } from '../../support/source.ts';
import { until } from '../../support/until.ts';
import { uploadRequests } from '../../support/uploads.ts';

/* Every limit of docs/limits.md, tried by callers that arrive at the same time through two processes. */

const rounds = Number(process.env.LIMIT_ROUNDS ?? 1);
const mebibyte = 1024 * 1024;
const model = await startLanguageModel();
const site = await startSite({ '/slow': responses.silent });
const settings = {
  QUARRY_MCP_OAUTH: 'true',
  QUARRY_FETCH_ALLOW: '127.0.0.0/8',
  QUARRY_LLM_URL: model.url,
  QUARRY_LLM_MODEL: 'small',
  QUARRY_UNFINISHED_UPLOADS: '10',
  QUARRY_IDEMPOTENCY_RECORDS_MAX: '20',
  QUARRY_IDEMPOTENCY_MB: '1',
  QUARRY_KV_USER_BYTES_MAX: '1000',
  QUARRY_STREAMS_MAX: '10',
  QUARRY_MCP_WAITS_MAX: '6',
  QUARRY_BODY_BYTES_MAX: String(4 * mebibyte),
  QUARRY_BODY_MEMORY_MB: '8',
};
const ratePerMinute = 20;
const rateGroups = ['READS', 'WRITES', 'UPLOADS', 'EXTRACTIONS', 'SEARCH', 'INVOCATIONS'] as const;
const rates = Object.fromEntries(rateGroups.map((group) => [`QUARRY_RATE_${group}`, String(ratePerMinute)]));
const first = await startTestServer({ env: settings });
const second = await startTestServer({ env: settings, beside: first });
const limited = [
  await startTestServer({ env: { ...rates, QUARRY_JOB_WORKERS: '0' }, beside: first }),
  await startTestServer({ env: { ...rates, QUARRY_JOB_WORKERS: '0' }, beside: first }),
] as const;
after(async () => {
  for (const server of [...limited, second, first]) await server.close();
  await model.close();
  await site.close();
});
const { db, provision } = first;

/** Sends through the two processes in turn. */
const through = (number: number): TestServer => (number % 2 === 0 ? first : second);
const send = <T = object>(number: number, method: string, path: string, options: ApiOptions) =>
  through(number).api<T>(method, `/api/v1${path}`, options);
const quota = { status: 422, code: 'quota_exceeded' };

async function countOf(table: string, app: TestApp): Promise<number> {
  return (await db`select 1 from ${db(table)} where app_id = ${app.app.uuid}`).length;
}

/** An app whose callers each create one row of a table. */
function rowsOf(
  table: string,
  request: (number: number, app: TestApp) => [path: string, body: object, method?: string],
) {
  return async () => {
    const app = await provision.app();
    return {
      attempt(number: number) {
        const [path, body, method = 'POST'] = request(number, app);
        return send(number, method, path, { key: app.secretKey, body });
      },
      held: () => countOf(table, app),
    };
  };
}

/** An app with an operator's quota, and how much of it is used. */
async function appWith(measure: string, bound: number) {
  const app = await provision.app();
  await db`insert into app_quotas (app_id, measure, operator_bound) values (${app.app.uuid}, ${measure}, ${bound})`;
  const held = async () => {
    const [row] = await db<[{ used: number }]>`select app_used(${app.app.uuid}, ${production}, ${measure}) as used`;
    return row.used;
  };
  return { app, held };
}

/** Whether background work ended within its quota, as a response. */
const asResponse = (code: string | undefined) => ({
  status: code === undefined ? 200 : 422,
  body: { error: { code } },
});

const rateRequests: Record<(typeof rateGroups)[number], (app: TestApp) => [string, string, object?]> = {
  READS: () => ['GET', '/teams'],
  WRITES: () => ['POST', '/teams', { name: 'T' }],
  UPLOADS: () => ['POST', '/files', { filename: 'a', content_type: 'text/plain', data: '' }],
  EXTRACTIONS: () => ['POST', '/extractions', {}],
  SEARCH: () => ['POST', '/knowledge_sources/src_x/search', { query: 'a' }],
  INVOCATIONS: () => ['POST', '/automations/aut_x/invoke', {}],
};

const cases: LimitCase[] = [
  {
    ...{ limit: 'webhooks', max: 50, attempts: 70, refusal: quota },
    prepare: rowsOf('webhooks', (number) => ['/webhooks', { url: `https://example.com/${number}`, events: ['*'] }]),
  },
  {
    ...{ limit: 'identity issuers', max: 20, attempts: 40, refusal: quota },
    prepare: rowsOf('identity_issuers', (number) => [
      '/identity_issuers',
      { issuer: `https://issuer-${number}.example`, audience: 'a' },
    ]),
  },
  {
    ...{ limit: 'secrets of automations', max: 10, attempts: 30, refusal: quota },
    async prepare() {
      const app = await provision.app();
      await db`insert into app_secrets (app_id, sandbox_id, name, value)
        select ${app.app.uuid}, ${production}, 'S' || n, '\\x00' from generate_series(1, 490) n`;
      return {
        attempt: (number) => send(number, 'PUT', `/secrets/N${number}`, { key: app.secretKey, body: { value: 'v' } }),
        held: () => countOf('app_secrets', app),
        heldMax: 500,
      };
    },
  },
  {
    ...{ limit: 'personal tokens that are not revoked', max: 50, attempts: 70, refusal: quota },
    async prepare() {
      const app = await provision.app();
      const user = await provision.user(app);
      const body = { type: 'personal', name: 'Laptop' };
      return {
        attempt: (number) => send(number, 'POST', `/users/${user.id}/tokens`, { key: app.secretKey, body }),
        held: () => countOf('personal_tokens', app),
      };
    },
  },
  {
    ...{ limit: 'connected assistants', max: 100, attempts: 120, refusal: quota },
    async prepare() {
      const app = await provision.app();
      const user = await provision.user(app);
      const flow = new AssistantFlow(first, app.publishableKey, user.token);
      const request = await flow.request(flow.parameters(await flow.register()));
      const body = { request, decision: 'allow' };
      return {
        attempt: (number) => send(number, 'POST', '/assistant_request', { token: user.token, body }),
        held: () => countOf('assistant_grants', app),
      };
    },
  },
  {
    ...{ limit: 'QUARRY_UNFINISHED_UPLOADS', max: 10, attempts: 30, refusal: { status: 429, code: 'rate_limited' } },
    async prepare() {
      const app = await provision.app();
      return {
        attempt: (number) => uploadRequests(through(number).api).create({ key: app.secretKey }, 1),
        held: () => countOf('uploads', app),
      };
    },
  },
  {
    ...{ limit: 'QUARRY_IDEMPOTENCY_RECORDS_MAX', max: 20, attempts: 40, refusal: quota },
    async prepare() {
      const app = await provision.app();
      return {
        attempt: (number) => createTeam(number, app, `k${number}`, {}),
        held: () => countOf('teams', app),
      };
    },
  },
  {
    ...{ limit: 'QUARRY_IDEMPOTENCY_MB', max: 5, attempts: 12, refusal: quota },
    async prepare() {
      const app = await provision.app();
      return {
        attempt: (number) => createTeam(number, app, `k${number}`, { text: 'x'.repeat(200_000) }),
        held: () => countOf('teams', app),
      };
    },
  },
  {
    ...{ limit: 'QUARRY_KV_USER_BYTES_MAX', max: 10, attempts: 30, refusal: quota },
    async prepare() {
      const app = await provision.app();
      const user = await provision.user(app);
      // A key of two bytes, and a value of 98 with its quotes.
      const body = { value: 'x'.repeat(96), user: user.id };
      return {
        attempt: (number) => send(number, 'PUT', `/kv/${10 + number}`, { key: app.secretKey, body }),
        held: () => countOf('kv_entries', app),
      };
    },
  },
  {
    ...{ limit: 'QUARRY_QUOTA_FILE_BYTES', max: 10, attempts: 30, refusal: quota },
    async prepare() {
      const { app, held } = await appWith('file_bytes', 1_000);
      const body = { filename: 'a', content_type: 'text/plain', data: Buffer.alloc(100).toString('base64') };
      const attempt = (number: number) => send(number, 'POST', '/files', { key: app.secretKey, body });
      return { attempt, held, heldMax: 1_000 };
    },
  },
  {
    ...{ limit: 'QUARRY_QUOTA_DOCUMENTS', max: 4, attempts: 10, refusal: quota },
    async prepare() {
      const { app, held } = await appWith('documents', 4);
      const user = await provision.user(app);
      // A source has one ingestion at a time.
      const sources: string[] = [];
      for (let n = 0; n < 10; n++)
        sources.push(await knowledgeOf(first, { key: app.secretKey }).createSource({ user: user.id }));
      return {
        held,
        async attempt(number) {
          const knowledge = knowledgeOf(through(number), { key: app.secretKey });
          const made = await knowledge.send<{ id: string }>('POST', `/knowledge_sources/${sources[number]}/ingest`, {
            content: { data: `Text ${number}.` },
          });
          if (made.status !== 201) return made;
          const ended = await knowledge.waitForIngestion(made.body.id);
          return asResponse(ended.error?.code);
        },
      };
    },
  },
  {
    ...{ limit: 'QUARRY_QUOTA_PAGES_PER_DAY', max: 4, attempts: 10, refusal: quota },
    async prepare() {
      const { app, held } = await appWith('pages', 4);
      const body = { filename: 'a.md', content_type: 'text/markdown', data: Buffer.from('# A\n').toString('base64') };
      const file = await first.api<{ id: string }>('POST', '/api/v1/files', { key: app.secretKey, body });
      const request = { file: file.body.id, destination_kind: 'storage' };
      return { held, attempt: (number) => send(number, 'POST', '/extractions', { key: app.secretKey, body: request }) };
    },
  },
  {
    // Each run reserves 100 tokens and those of its message, and its model reports as many.
    ...{ limit: 'QUARRY_QUOTA_TOKENS_PER_DAY', max: 4, attempts: 10 },
    refusal: { status: 422, code: 'token_budget_exceeded' },
    async prepare() {
      model.script = () => ({ text: 'Hello.', usage: [18, 100] });
      const { app, held } = await appWith('tokens', 4 * 118);
      const client = new AutomationsClient(first, app);
      const node = { id: 'g', kind: 'generate', tokens: 100, messages: [{ role: 'user', content: 'Hi.' }] };
      const { id } = await client.createAutomation({ workflow: graphOf(node) });
      return {
        ...{ held, heldMax: 4 * 118 },
        async attempt(number) {
          const mine = new AutomationsClient(through(number), app);
          return asResponse((await mine.waitForEnd((await mine.invoke(id)).id)).error?.code);
        },
      };
    },
  },
  {
    ...{ limit: 'QUARRY_QUOTA_SANDBOXES', max: 5, attempts: 15, refusal: quota },
    async prepare() {
      const { app, held } = await appWith('sandboxes', 5);
      const attempt = (number: number) =>
        send(number, 'POST', '/sandboxes', { key: app.secretKey, body: { name: `S${number}` } });
      return { attempt, held };
    },
  },
  ...rateGroups.map(
    (group): LimitCase => ({
      ...{ limit: `QUARRY_RATE_${group}`, max: ratePerMinute, attempts: 60 },
      refusal: { status: 429, code: 'rate_limited' },
      // A process may be one request ahead of the database, and the budget refills meanwhile.
      slack: (elapsedMs) => limited.length + Math.ceil((elapsedMs / 60_000) * ratePerMinute),
      async prepare() {
        const app = await provision.app();
        const [method, path, body] = rateRequests[group](app);
        const options = { key: app.secretKey, ...(body === undefined ? {} : { body }) };
        return {
          attempt: (number) => (limited[number % 2] ?? first).api(method, `/api/v1${path}`, options),
          held: async () => 0,
        };
      },
    }),
  ),
  {
    // Of a process. A single app gets half.
    ...{ limit: 'QUARRY_STREAMS_MAX', max: 5, attempts: 15, refusal: { status: 429 } },
    async prepare() {
      const app = await provision.app();
      const open = new AbortController();
      const headers = { 'x-api-key': app.secretKey };
      return {
        attempt: async () => {
          const { status } = await fetch(`${first.baseUrl}/api/v1/events/stream`, { headers, signal: open.signal });
          return { status };
        },
        held: async () => 0,
        end: async () => open.abort(),
      };
    },
  },
  {
    ...{ limit: 'QUARRY_MCP_WAITS_MAX', max: 3, attempts: 10, refusal: { status: 429 } },
    prepare: prepareWaits,
  },
  {
    // Of a process: 8 MiB, of which a single app gets half.
    ...{ limit: 'QUARRY_BODY_MEMORY_MB', max: 8, attempts: 20, refusal: { status: 429 } },
    prepare: prepareBodies,
  },
  ...limitsOfRows(first, send),
];

/** Limits that are tried elsewhere, with the reason. */
const elsewhere: Record<string, string> = {
  QUARRY_TRUST_PROXY: 'no limit: it says whose address counts (test/api/http/connections.test.ts)',
  'runs that wait for their turn': 'of an automation, with eight callers: test/api/automations/runs.test.ts',
  QUARRY_BODY_BYTES_MAX: 'one request: test/api/http/budgets.test.ts tries every route',
  QUARRY_STREAM_MEMORY_MB: 'refuses nobody, but makes streams wait: test/api/http/stream-memory.test.ts',
};

function createTeam(number: number, app: TestApp, key: string, metadata: object): Promise<ApiResponse<object>> {
  const headers = { 'idempotency-key': key };
  return send(number, 'POST', '/teams', { key: app.secretKey, body: { name: 'T', metadata }, headers });
}

/** Calls that wait for a page that never arrives. One that is not refused counts as passed. */
async function prepareWaits() {
  const app = await provision.app();
  const open = new AbortController();
  const params = { name: 'extract_url', arguments: { url: `${site.origin}/slow`, wait_seconds: 300 } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const headers = {
    ...{ 'content-type': 'application/json', 'x-api-key': app.secretKey },
    accept: 'application/json, text/event-stream',
  };
  let answered = 0;
  let sent = 0;
  const waiting = async () =>
    (await first.api<{ total_entries: number }>('GET', '/api/v1/extractions', { key: app.secretKey })).body
      .total_entries;
  return {
    async attempt() {
      let status: number | undefined;
      sent += 1;
      void fetch(`${first.baseUrl}/mcp`, { method: 'POST', headers, body, signal: open.signal })
        .then((response) => {
          answered += 1;
          status = response.status;
        })
        .catch(() => {});
      await until(async () => status !== undefined || answered + (await waiting()) === sent);
      return { status: status ?? 200 };
    },
    held: waiting,
    end: async () => open.abort(),
  };
}

/** Bodies of half a MiB that stay incomplete. One that is not refused counts as passed. */
async function prepareBodies() {
  const app = await provision.app();
  const sockets: ReturnType<typeof connect>[] = [];
  const { hostname, port, host } = new URL(first.baseUrl);
  const size = mebibyte / 2;
  let refused = 0;
  const held = async () => first.server.fastify.intake.heldBytes / size;
  return {
    async attempt() {
      const socket = connect(Number(port), hostname).on('error', () => {});
      sockets.push(socket);
      let status: number | undefined;
      socket.on('data', (chunk) => {
        if (status === undefined) refused += 1;
        status ??= Number(chunk.toString().split(' ')[1]);
      });
      const headers = { host, 'content-type': 'application/json', 'content-length': size, 'x-api-key': app.secretKey };
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
      socket.write(`POST /api/v1/files HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
      socket.write(Buffer.alloc(1_000, 0x20));
      await until(async () => status !== undefined || refused + (await held()) >= sockets.length);
      return { status: status ?? 200 };
    },
    held,
    async end() {
      for (const socket of sockets) socket.destroy();
      await until(async () => (await held()) === 0);
    },
  };
}

for (const each of cases)
  test(`${each.limit}: concurrent callers get ${each.max}, and not one more`, async () => {
    for (let round = 0; round < rounds; round++) await tryLimit(each);
  });

/** Takes until refused, and returns how often that worked and the refusal. */
async function takeAll<T extends { status: number; text: string }>(take: (number: number) => Promise<T>) {
  for (let taken = 0; ; taken++) {
    const response = await take(taken);
    if (response.status >= 300) return { taken, refusal: response };
    assert.ok(taken < 100, 'nothing was refused');
  }
}

/** What each holder takes of a limit of 10 or 20, one after the other: users, then another space, then the app's key. */
async function assertShares(max: number, take: (who: ApiOptions, number: number) => Promise<ApiResponse<object>>) {
  const app = await provision.app();
  const sandbox = await provision.sandbox(app);
  const [one, two] = [await provision.user(sandbox), await provision.user(sandbox)];
  const member = await provision.user(app);
  const all = async (who: ApiOptions) => (await takeAll((number) => take(who, number))).taken;
  const [ofOne, ofTwo] = [await all({ token: one.token }), await all({ token: two.token })];
  assert.equal(ofOne, max / 2, 'a single user gets half');
  assert.equal(ofTwo, Math.floor((max - ofOne) / 2), 'the next user gets half of the rest');
  assert.equal(await all({ key: sandbox.secretKey }), max - ofOne - ofTwo, 'a key gets what is free');
  assert.equal(await all({ token: member.token }), max / 2, 'a sandbox takes nothing from production');
  assert.equal(await all({ key: app.secretKey }), max - max / 2);
}

test('a user uses up neither the unfinished uploads of others nor, in a sandbox, those of production', async () => {
  await assertShares(10, (who) => uploadRequests(first.api).create<object>(who, 1));
});

test('a user uses up neither the Idempotency-Keys of others nor, in a sandbox, those of production', async () => {
  await assertShares(20, (who, number) =>
    first.api('POST', '/api/v1/files', {
      ...who,
      body: { filename: 'a', content_type: 'text/plain', data: '' },
      headers: { 'idempotency-key': `mine-${number}` },
    }),
  );
});

test('a user’s empty uploads reserve at most as many bytes as remain free, and what has arrived is not a reservation', async () => {
  const { app } = await appWith('file_bytes', 10_000);
  const { token } = await provision.user(app);
  const { create, append } = uploadRequests(first.api);
  const refused = await create<{ error: { code: string; details: object } }>({ token }, 6_000);
  assert.deepEqual([refused.status, refused.body.error.code], [422, 'quota_exceeded'], refused.text);
  assert.deepEqual(refused.body.error.details, { quota: 'file_bytes', limit: 10_000, used: 0, requested: 6_000 });
  const begun = await create({ token }, 5_000);
  assert.equal(begun.status, 201, begun.text);
  assert.equal((await create({ token }, 1)).status, 422);
  // The app's key may use the rest, and another user half of what then remains.
  assert.equal((await create({ key: app.secretKey }, 3_000)).status, 201);
  assert.equal((await create({ token: (await provision.user(app)).token }, 1_000)).status, 201);
  assert.equal((await append({ token }, begun.body.id, 0, Buffer.alloc(4_900))).status, 204);
  assert.equal((await create({ token }, 400)).status, 201);
});

test('every limit of docs/limits.md is tried', () => {
  const named = namesOfLimits(readProjectFile('docs/limits.md'));
  const tried = new Set([...cases.map(({ limit }) => limit), ...Object.keys(elsewhere)]);
  assert.deepEqual(
    [...named].filter((name) => !tried.has(name)),
    [],
    'add a case for each',
  );
  assert.deepEqual(
    [...tried].filter((name) => !named.has(name)),
    [],
    'these are not documented',
  );
});

test('a limit that counts before it inserts is found, and so is one that refuses too early', async () => {
  const of = (lets: (number: number, held: number) => boolean | Promise<boolean>): LimitCase => ({
    ...{ limit: 'a faulty limit', max: 3, attempts: 8, refusal: { status: 422 } },
    async prepare() {
      let held = 0;
      return {
        async attempt(number) {
          const mayPass = await lets(number, held);
          if (mayPass) held += 1;
          return { status: mayPass ? 201 : 422 };
        },
        held: async () => held,
      };
    },
  });
  const racing = of(async (_number, held) => held < 3);
  await assert.rejects(tryLimit(racing), /8 of 8 passed/);
  await assert.rejects(tryLimit(of((number) => number < 2)), /2 of 8 passed/);
  await tryLimit(of((number) => number < 3)).catch(() => assert.fail('a limit that holds was refused'));
});
