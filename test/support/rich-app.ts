import { production } from '../../src/db/database.ts';
import { newUuid, parseId } from '../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from './automations.ts';
import { startLanguageModel } from './language-model.ts';
import type { TestApp } from './provisioner.ts';
import type { TestServer } from './server.ts';
import { until } from './until.ts';

/** The ids in the addresses of a rich app's pages. */
type RichApp = Record<
  | 'file'
  | 'source'
  | 'document'
  | 'automation'
  | 'webhook'
  | 'user'
  | 'org'
  | 'team'
  | 'agent'
  | 'thread'
  | 'extraction',
  string
> & { runs: Record<'completed' | 'failed' | 'waiting', string> };

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** The settings that a server of a rich app needs: a language model that replies the same to everything. */
export async function startRichModel() {
  const model = await startLanguageModel();
  model.script = () => ({ text: '{"berth":"B7","reason":"Deep enough, and free until noon."}', usage: [1_240, 86] });
  const env = {
    ...{ QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'harbour-small', QUARRY_FETCH_ALLOW: '127.0.0.1/32' },
  };
  return { env, close: model.close };
}

/**
 * Fills an app as one looks after a few weeks: people, files, knowledge, automations with runs of every status,
 * approvals that wait, webhooks with failures, calls of language models, budgets and usage. Work runs through the API;
 * what lies in the past is written by SQL, as the stores write it.
 */
export async function fillRichly(server: TestServer, app: TestApp): Promise<RichApp> {
  const create = async (path: string, body: unknown): Promise<string> => {
    const made = await server.api<{ id: string }>('POST', `/api/v1${path}`, { key: app.secretKey, body });
    if (made.status > 202) throw new Error(`${path}: ${made.text}`);
    return made.body.id;
  };
  const people = await fillPeople(create);
  const knowledge = await fillKnowledge(server, app, create, people.org);
  const automations = await fillAutomations(server, app, people);
  const webhook = await fillWebhooks(server, app, create);
  await fillState(server, app, create, people);
  await fillPast(server, app, { ...people, ...automations });
  return { ...people, ...knowledge, ...automations, webhook };
}

type Create = (path: string, body: unknown) => Promise<string>;

const users = [
  ...['Ada Lind', 'Grace Okafor', 'Jean-Baptiste de la Roche-Guyon', 'Mette Møller', 'Nguyễn Thị Minh Khai', '李小龍'],
  ...['Tomás Reyes', 'Priya Raman', 'Omar Haddad', 'Ingrid Solberg'],
];

async function fillPeople(create: Create) {
  const orgs = [];
  for (const name of ['Nordhavn Terminal', 'Pilotage Service', 'Customs Office', 'Outer Quay Fisheries'])
    orgs.push(await create('/orgs', { name }));
  const [org = ''] = orgs;
  const made = [];
  for (const [at, name] of users.entries())
    made.push(
      await create('/users', {
        ...{
          name,
          email: `${['ada', 'grace', 'jean-baptiste', 'mette', 'khai', 'bruce', 'tomas', 'priya', 'omar', 'ingrid'][at]}@harbour.example`,
        },
        ...{ org: orgs[at % orgs.length], org_role: at % 3 === 0 ? 'admin' : 'member' },
      }),
    );
  const [user = ''] = made;
  const team = await create('/teams', { name: 'Berth planning', org, description: 'Assigns berths to arriving ships' });
  await create('/teams', { name: 'Night watch', org });
  await create(`/teams/${team}/members`, { user });
  await create(`/teams/${team}/members`, { user: made[4] });
  const agent = await create('/agents', { name: 'Harbour assistant', lookup_key: 'harbour', org });
  await create('/agents', { name: 'Invoice clerk', lookup_key: 'invoices', org });
  await create('/installations', { agent, kind: 'thread/messages' });
  const thread = await create('/threads', { title: 'Night watch, 27 November', agent });
  await create('/threads', { title: 'Dredging of the inner basin', agent });
  for (const content of ['The **Alba** arrives at 02:40, two hours late.', 'Berth B7 is free until noon.'])
    await create(`/threads/${thread}/messages`, { content });
  for (const name of ['Rehearsal', 'Load test']) await create('/sandboxes', { name });
  return { org, user, team, agent, thread };
}

const rules = `# Berth fees

A berth costs twelve euros a metre and day. Ships of up to twenty metres pay half in winter.

## Discounts

| Length | Summer | Winter |
| --- | --- | --- |
| up to 20 m | 12.00 | 6.00 |
| up to 60 m | 12.00 | 9.00 |
| longer | 14.50 | 12.00 |

## Late departure

A ship that leaves after noon pays for another day. The harbour master may waive the fee in a storm.
`;

async function fillKnowledge(server: TestServer, app: TestApp, create: Create, org: string) {
  const files: string[] = [];
  for (const [filename, content_type, text] of [
    ['rules/berth-fees.md', 'text/markdown', rules],
    ['rules/customs-declarations-2026.md', 'text/markdown', rules.repeat(20)],
    ['ships/arrivals.csv', 'text/csv', 'ship,metres,berth\n'.repeat(900)],
    ['ships/alba/manifest.json', 'application/json', '{"ship":"Alba","metres":42}'],
    ['notices/storm-warning-2026-11-27-with-a-long-name-that-nobody-has-shortened.txt', 'text/plain', 'Storm.'],
    ['plans/inner-basin.svg', 'image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"/>'],
  ] as const)
    files.push(await create('/files', { filename, content_type, org, data: Buffer.from(text).toString('base64') }));
  const sources: string[] = [];
  for (const name of ['Harbour rules', 'Customs handbook', 'Support mail'])
    sources.push(
      await create('/knowledge_sources', {
        ...{ type: 'knowledge/documents', org, metadata: { name } },
        version_retention_days: 30,
      }),
    );
  const [source = ''] = sources;
  // Otherwise, the ingestion that is still active is returned, and the text is not stored.
  const ingest = (of: string | undefined, title: string, content: string) =>
    create(`/knowledge_sources/${of}/ingest`, { content: { data: content }, title, on_active: 'queue' });
  for (const [at, title] of ['Berth fees', 'Pilotage', 'Dangerous goods', 'Waste and ballast water'].entries())
    await ingest(source, title, rules.replace('Berth fees', `${title} ${at}`));
  await ingest(sources[1], 'Declaring goods', rules.replace('Berth fees', 'Declaring goods'));
  await until(async () => {
    const found = await server.api<{ total_entries: number }>('GET', '/api/v1/knowledge_documents', {
      key: app.secretKey,
    });
    return found.body.total_entries >= 5;
  });
  const documents = await server.api<{ data: { id: string }[] }>('GET', '/api/v1/knowledge_documents', {
    key: app.secretKey,
  });
  const extraction = await create('/extractions', { file: files[1], destination_kind: 'storage' });
  await create('/extractions', { url: 'https://nowhere.invalid/handbook', mode: 'link', destination_kind: 'storage' });
  return { file: files[0] ?? '', source, document: documents.body.data[0]?.id ?? '', extraction };
}

const done = { id: 'done', kind: 'complete', result: { ok: true } };
const berth = graphOf(
  {
    id: 'read_request',
    kind: 'transform',
    value: { ship: '{{$.ship}}', metres: '{{$.metres}}' },
    on_success: 'is_long',
  },
  { id: 'is_long', kind: 'conditional', when: '$nodes.read_request.metres > 40', on_true: 'choose', on_false: 'small' },
  { id: 'small', kind: 'transform', value: { berth: 'B1' }, on_success: 'store' },
  {
    ...{ id: 'choose', kind: 'generate', on_success: 'store', on_error: 'not_assigned' },
    messages: [{ role: 'user', content: 'Which berth for {{$nodes.read_request.ship}}?' }],
  },
  {
    ...{ id: 'store', kind: 'kv_set', key: 'berths/{{$nodes.read_request.ship}}', value: '{{$nodes.read_request}}' },
    on_success: 'done',
  },
  done,
  { id: 'not_assigned', kind: 'fail', code: 'no_berth', message: 'No berth is free for this ship.' },
);
const approval = graphOf(
  {
    ...{ id: 'ask', kind: 'approve', question: 'Book the invoice of {{$.ship}} over {{$.total}} EUR?' },
    form: {
      type: 'object',
      required: ['ok'],
      properties: {
        ok: { type: 'boolean', title: 'Book it' },
        account: { type: 'string', enum: ['4400', '4930'], title: 'Account' },
        note: { type: 'string', title: 'Note' },
      },
    },
    ...{ timeout_seconds: 86_400, on_success: 'done' },
  },
  done,
);
const failing = graphOf(
  { id: 'weigh', kind: 'transform', value: '{{$.cargo.missing.weight + 1}}', on_success: 'report' },
  { id: 'report', kind: 'fail', code: 'scales_broken', message: 'The scales of the outer quay are broken.' },
);
const waiting = graphOf({ id: 'arrival', kind: 'wait_for_signal', name: 'arrived', on_success: 'done' }, done);

async function fillAutomations(server: TestServer, app: TestApp, { agent }: { agent: string }) {
  const client = new AutomationsClient(server, app);
  const automation = async (name: string, workflow: unknown, more: Record<string, unknown> = {}) =>
    (await client.createAutomation({ name, workflow, ...more })).id;
  const assign = await automation('Assign a berth to each ship', berth, {
    ...{ lookup_key: 'assign-berth', description: 'Chooses a berth by length and draught', run_as_agent: agent },
    input_schema: { type: 'object', properties: { ship: { type: 'string' }, metres: { type: 'number' } } },
  });
  const book = await automation('Book invoices', approval, { lookup_key: 'book-invoices' });
  const weigh = await automation('Weigh cargo', failing);
  const arrive = await automation('Wait for arrival', waiting);
  await automation('Nightly report', graphOf(done), {
    type: 'scheduled',
    schedule: '0 3 * * *',
    timezone: 'Europe/Oslo',
  });
  await automation('Index new files', graphOf(done), { type: 'trigger', trigger: 'file.created' });
  await automation('Notify pilots', graphOf(done), { type: 'trigger', trigger: 'ship.arrived' });
  const draft = (name: string) =>
    client.call('POST', '/automations', { name, type: 'invoked', workflow: graphOf(done) });
  await draft('Draft: crane maintenance');
  await draft('Draft: waste collection with a long name that nobody has shortened');
  const paused = await automation('Weekly statistics', graphOf(done), { type: 'scheduled', schedule: '0 8 * * 1' });
  await client.call('POST', `/automations/${paused}/pause`);

  const ships: [string, number][] = [
    ['Alba', 42],
    ['Skarven', 18],
    ['Maersk Tvilling', 180],
    ['Havfrue', 12],
  ];
  let completed = '';
  for (const [ship, metres] of ships) {
    const run = await client.invoke(assign, { payload: { ship, metres } });
    if (ship === 'Alba') completed = run.id;
    await client.waitForEnd(run.id);
  }
  for (const [at, [ship]] of ships.entries()) await client.invoke(book, { payload: { ship, total: 1_200 * (at + 1) } });
  const failed = await client.invoke(weigh, { payload: { cargo: {} } });
  await client.waitForEnd(failed.id);
  const asleep = await client.invoke(arrive, { payload: { ship: 'Alba' } });
  const cancelled = await client.invoke(arrive, { payload: { ship: 'Skarven' } });
  await client.waitUntilWaiting(asleep.id);
  await client.call('POST', `/automation_runs/${cancelled.id}/cancel`);
  return { automation: assign, runs: { completed, failed: failed.id, waiting: asleep.id } };
}

async function fillWebhooks(server: TestServer, app: TestApp, create: Create): Promise<string> {
  const webhook = await create('/webhooks', {
    ...{ url: 'https://crm.invalid/hooks/quarry', events: ['ship.arrived', 'invoice.booked'], description: 'CRM' },
  });
  await create('/webhooks', { url: 'https://chat.invalid/hooks', events: ['*'], description: 'Chat of the watch' });
  for (const ship of ['Alba', 'Skarven', 'Havfrue'])
    await server.api('POST', '/api/v1/events', {
      key: app.secretKey,
      body: { name: 'ship.arrived', payload: { ship } },
    });
  return webhook;
}

async function fillState(
  server: TestServer,
  app: TestApp,
  create: Create,
  { user, agent }: { user: string; agent: string },
) {
  const key = app.secretKey;
  for (let at = 0; at < 24; at++)
    await server.api('PUT', `/api/v1/kv/${encodeURIComponent(`ships/${String(at).padStart(3, '0')}`)}`, {
      ...{ key, body: { user, value: JSON.stringify({ ship: `Alba ${at}`, metres: at * 7, berth: `B${at % 9}` }) } },
    });
  for (const name of ['CRM_TOKEN', 'SMTP_PASSWORD', 'WEATHER_KEY'])
    await server.api('PUT', `/api/v1/secrets/${name}`, { key, body: { value: 'v' } });
  await create('/keys', { type: 'secret', name: 'Server of the berth planner' });
  await create('/keys', { type: 'publishable', name: 'Website' });
  await create('/identity_issuers', { issuer: 'https://login.harbour.example', audience: 'quarry' });
  await create('/models', {
    ...{
      name: 'large',
      provider: 'anthropic',
      model: 'claude-large',
      key: 'secret',
      prices: { input: 3_000_000, output: 15_000_000 },
    },
    context_tokens: 200_000,
  });
  await create('/model_aliases', { name: 'smart', models: ['large'] });
  await create('/model_budgets', {
    subject: 'app',
    period: 'month',
    tokens: 5_000_000,
    cost: 20_000_000,
    soft_cost: 15_000_000,
  });
  await create('/model_budgets', { subject: 'agent', subject_id: agent, period: 'day', tokens: 200_000 });
}

/** Three weeks of runs, requests and calls of language models. */
async function fillPast(server: TestServer, app: TestApp, made: { automation: string; agent: string; user: string }) {
  const { db } = server;
  const appId = app.app.uuid;
  const automation = parseId('automation', made.automation);
  const agent = parseId('agent', made.agent);
  const user = parseId('user', made.user);
  const states = ['completed', 'completed', 'completed', 'completed', 'failed', 'completed', 'cancelled'];
  const error = JSON.stringify({ code: 'no_berth', message: 'No berth is free for this ship.', node_id: 'choose' });
  for (let number = 0; number < 120; number++) {
    const at = new Date(Date.now() - (number + 1) * 4 * hourMs + (number % 5) * 900_000);
    const status = states[(number * 3) % states.length] ?? 'completed';
    await db`
      insert into automation_runs (app_id, id, sandbox_id, automation_id, graph_version, type, status, payload, error,
        started_at, completed_at, created_at, updated_at)
      values (${appId}, ${uuidAt(at)}, ${production}, ${automation ?? ''}, 1, 'invoked', ${status}, '{}',
        ${status === 'failed' ? error : null}::text::json, ${at}, ${new Date(at.getTime() + 400 + (number % 9) * 730)}, ${at}, ${at})`;
    const tokens = 600 + ((number * 377) % 2_400);
    await db`
      insert into model_calls (app_id, id, sandbox_id, model, provider, provider_model, status, error_code, reserved_tokens,
        prompt_tokens, completion_tokens, input_price, output_price, cost, latency_ms, first_token_ms, agent_id, automation_id,
        node_id, created_at, ended_at)
      values (${appId}, ${uuidAt(at)}, ${production}, ${number % 4 === 0 ? 'large' : 'default'}, 'openai',
        ${number % 4 === 0 ? 'claude-large' : 'harbour-small'}, ${number % 11 === 5 ? 'failed' : 'succeeded'},
        ${number % 11 === 5 ? 'model_unavailable' : null}, ${tokens + 2_048}, ${tokens}, ${80 + (number % 13) * 9}, 150000, 600000,
        ${Math.round((tokens * 150_000 + 90 * 600_000) / 1_000_000)}, ${700 + (number % 17) * 110}, ${220 + (number % 7) * 40},
        ${agent ?? ''}, ${automation ?? ''}, 'choose', ${at}, ${at})`;
  }
  for (let day = 0; day < 30; day++) {
    const at = new Date(Date.now() - day * dayMs);
    const requests = 900 + ((day * 271) % 800) + (at.getDay() % 6 === 0 ? -600 : 0);
    await db`
      insert into credential_uses (app_id, sandbox_id, day, kind, credential_id, first_at, last_at, requests, refused)
      values (${appId}, ${production}, ${at.toISOString().slice(0, 10)}, 'user', ${user ?? ''}, ${at}, ${at}, ${requests},
        ${(day * 7) % 23})
      on conflict do nothing`;
  }
}

/** A new id that sorts as if it was made then. */
function uuidAt(at: Date): string {
  const time = at.getTime().toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}${newUuid().slice(13)}`;
}
