import assert from 'node:assert/strict';
import { AutomationsClient } from '../automations.ts';
import { EventStream } from '../event-stream.ts';
import type { TestApp } from '../provisioner.ts';
import { pixel } from '../reference/tenants.ts';
import type { ApiOptions, TestServer } from '../server.ts';
import type { startIssuer } from '../token-issuer.ts';

type Json = Record<string, unknown>;
type Made = Json & { id: string };

/** An installation in use: something in every domain, some of it unfinished. */
export type UsedInstallation = {
  /** Credentials by the name that a read has in `as`. */
  credentials: Record<string, ApiOptions>;
  app: Pick<TestApp, 'publishableKey' | 'secretKey'>;
  /** What a client sees. Each read is repeated after an upgrade. */
  reads: { as: string; path: string }[];
  /** Work that an upgraded server has to finish. */
  unfinished: { source: string; file: string; waitingChild: string; parentRun: string };
};

const password = 'correct horse battery';
const email = 'ada@example.com';
const fileText = '# Opening hours\n\nWe open at nine.\n';

/** Fills a new server through its API, as clients do. */
export async function useInstallation(
  server: TestServer,
  app: TestApp,
  { site, issuer }: { site: string; issuer: Awaited<ReturnType<typeof startIssuer>> },
): Promise<UsedInstallation> {
  const credentials: UsedInstallation['credentials'] = {
    key: { key: app.secretKey },
    developer: { token: app.developerToken, headers: { 'x-app': app.app.id } },
  };
  const reads: UsedInstallation['reads'] = [];
  const read = (path: string, as = 'key') => reads.push({ as, path: `/api/v1${path}` });

  async function send<T = Made>(method: string, path: string, body?: unknown, as = credentials.key): Promise<T> {
    const {
      status,
      body: made,
      text,
    } = await server.api<T>(method, `/api/v1${path}`, {
      ...as,
      ...(body === undefined ? {} : { body }),
    });
    assert.ok(status >= 200 && status < 300, `${method} ${path}: ${status} ${text}`);
    return made;
  }
  /** Creates a resource. It is later read by its id and in its list. */
  async function create<T = Made>(path: string, body: unknown, as = credentials.key): Promise<T & { id: string }> {
    const made = await send<T & { id: string }>('POST', path, body, as);
    if (!reads.some((each) => each.path === `/api/v1${path}`)) read(path);
    read(`${path}/${made.id}`);
    return made;
  }
  async function until(path: string, isWanted: (body: Json) => boolean): Promise<Json> {
    let body: Json = {};
    for (const deadline = Date.now() + 300_000; Date.now() < deadline; ) {
      body = await send<Json>('GET', path);
      if (isWanted(body)) return body;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    throw new Error(`${path} never returned what was waited for: ${JSON.stringify(body)}`);
  }

  const { user, agent, team } = await createPeople();
  const file = await createContents();
  const source = await createKnowledge();
  const { waitingChild, parentRun } = await createAutomations();
  await createWebhook();
  await signIn();
  // Reading the log first writes the entries that wait.
  await send('GET', '/audit');
  await send('GET', '/credential_uses', undefined, credentials.developer);
  const { publishableKey, secretKey } = app;
  return {
    app: { publishableKey, secretKey },
    credentials,
    reads,
    unfinished: { source, file, waitingChild, parentRun },
  };

  async function createPeople() {
    reads.push({ as: 'developer', path: `/protected/api/v1/developer/apps/${app.app.id}` });
    const quotas = { quotas: { documents: 10_000 } };
    const appPath = `/protected/api/v1/developer/apps/${app.app.id}`;
    assert.equal((await server.api('PATCH', appPath, { token: app.developerToken, body: quotas })).status, 200);
    const sandbox = await create('/sandboxes', { name: 'Staging' });
    await send('POST', '/keys', { type: 'publishable', name: 'Shop', sandbox: sandbox.id });
    read('/keys');
    const madeOrg = await create('/orgs', { name: 'Harbour', slug: 'harbour' });
    const madeUser = await create('/users', {
      ...{ email, password, name: 'Ada', org: madeOrg.id, org_role: 'admin', metadata: { plan: 'pro' } },
    });
    const { access_token: token } = await send<{ access_token: string }>('POST', `/users/${madeUser.id}/tokens`, {
      type: 'session',
    });
    const laptop = await send<{ token: string }>('POST', `/users/${madeUser.id}/tokens`, { name: 'Laptop' }, { token });
    credentials.ada = { token: laptop.token };
    read('/users/me', 'ada');
    read(`/users/${madeUser.id}/tokens`);
    const madeTeam = await create('/teams', { name: 'Research', org: madeOrg.id });
    await send('POST', `/teams/${madeTeam.id}/members`, { user: madeUser.id, role: 'admin' });
    read(`/teams/${madeTeam.id}/members`);
    const madeAgent = await create('/agents', { name: 'Librarian', lookup_key: 'librarian', user: madeUser.id });
    await create('/installations', { agent: madeAgent.id, kind: 'thread/messages' });
    const thread = await create('/threads', { title: 'Opening hours', agent: madeAgent.id });
    await send('POST', `/threads/${thread.id}/messages`, { content: 'We open at nine.', metadata: { channel: 'web' } });
    await create('/identity_issuers', {
      ...{ issuer: issuer.issuer, audience: 'https://quarry.example', create_users: true },
    });
    const bob = { key: app.publishableKey, token: await issuer.sign('bob', { name: 'Bob' }) };
    await send('GET', '/users/me', undefined, bob);
    read('/users');
    return { user: madeUser.id, agent: madeAgent.id, team: madeTeam.id };
  }

  async function createContents(): Promise<string> {
    const data = Buffer.from(fileText).toString('base64');
    const made = await create('/files', { filename: 'hours.md', content_type: 'text/markdown', data, user });
    await send('PATCH', `/files/${made.id}`, {
      acl: { add: [{ principal_type: 'team', principal: team, actions: ['read'] }] },
    });
    await create('/files', { filename: 'pixel.png', content_type: 'image/png', data: pixel, share: true });
    const named = Object.entries({ filename: 'scan.txt', content_type: 'text/plain' });
    const upload = {
      ...{ 'tus-resumable': '1.0.0', 'upload-length': '9' },
      'upload-metadata': named.map(([name, value]) => `${name} ${Buffer.from(value).toString('base64')}`).join(','),
    };
    const begun = await server.api('POST', '/api/v1/uploads', { ...credentials.key, headers: upload });
    assert.equal(begun.status, 201, begun.text);
    const toConfig = { destination_kind: 'config', destination_path: 'handbook' };
    await create('/extractions', { file: made.id, ...toConfig });
    const ofSite = await create('/extractions', { url: `${site}/`, mode: 'site', destination_kind: 'storage' });
    await until(`/extractions/${ofSite.id}`, ({ state }) => state === 'done');
    read('/config');
    read('/config/handbook/hours.md');
    const headers = { 'x-api-key': app.secretKey };
    const watch = await EventStream.open(`${server.baseUrl}/api/v1/kv_watch?user=${user}`, headers);
    await watch.take();
    for (const [key, value] of [
      ['theme', 'dark'],
      ['greeting', 'Guten Tag, ☕'],
    ]) {
      await send('PUT', `/kv/${key}`, { value, user });
      read(`/kv/${key}?user=${user}`);
    }
    watch.close();
    await send('PUT', '/kv/visit', { value: 'short', ttl_seconds: 86_400, user });
    await send('POST', '/kv_increment', { key: 'visits', by: 41, user });
    read(`/kv/visits?user=${user}`);
    const idempotent = { ...credentials.key, headers: { 'idempotency-key': 'the-first-order' } };
    await send('POST', '/threads', { title: 'Made once' }, idempotent);
    return made.id;
  }

  async function createKnowledge(): Promise<string> {
    const made = await create('/knowledge_sources', {
      ...{ type: 'knowledge/documents', agent, metadata: { topic: 'shop' } },
    });
    const ingestion = await send('POST', `/knowledge_sources/${made.id}/ingest`, {
      content: { data: 'We open at nine and close at six.', content_type: 'text/plain' },
      title: 'Opening hours',
      metadata: { year: 2026 },
    });
    const ended = await until(`/knowledge_ingestions/${ingestion.id}`, ({ status }) => status === 'succeeded');
    const { document: first } = ended.metadata as { document: string };
    const batch = await send<{ data?: Made[] } & Made>('POST', `/knowledge_sources/${made.id}/ingest/batch`, {
      // More than one bundle of the index.
      items: Array.from({ length: 33 }, (_, day) => ({
        content: { data: `On day ${day}, parcels arrive at ${(day % 12) + 1}.` },
        title: `Day ${day}`,
      })),
    });
    await until(`/knowledge_ingestions/${batch.id}`, ({ status }) => status === 'succeeded');
    // Replaced, so that chunks of the old version wait to be removed.
    const replacing = await send('PATCH', `/knowledge_documents/${first}`, {
      content: { data: 'We open at ten and close at six.' },
    });
    await until(`/knowledge_ingestions/${replacing.id}`, ({ status }) => status === 'succeeded');
    const search = `/knowledge_sources/${made.id}/search`;
    assert.ok(
      (await send<{ data: Json[] }>('POST', search, { query: 'open at ten', mode: 'fulltext' })).data.length > 0,
    );
    read(`/knowledge_documents?source=${made.id}`);
    read(`/knowledge_documents/${first}`);
    read(`/knowledge_ingestions/${ingestion.id}`);
    const inbound = await create('/installations', { agent, kind: 'webhook/inbound' });
    const found = await send<{ data: Made[] }>('GET', `/knowledge_sources?installation=${inbound.id}`);
    const { url } = await send<{ url: string }>('POST', `/knowledge_sources/${found.data[0]?.id}/inbound_url`, {});
    const posted = await server.api('POST', new URL(url).pathname, { body: 'A new order arrived.' });
    assert.ok(posted.status < 300, posted.text);
    return made.id;
  }

  async function createAutomations() {
    const workflow = {
      ...{ kind: 'WorkflowGraph', version: 1, start_node: 'start' },
      nodes: [
        { id: 'start', kind: 'trigger', on_success: 'wait' },
        { id: 'wait', kind: 'wait_for_signal', name: 'decision', on_success: 'done' },
        { id: 'done', kind: 'transform', value: '{{$nodes.wait}}' },
      ],
    };
    const approval = await create('/automations', {
      ...{ name: 'Approve an order', lookup_key: 'approve-order', type: 'invoked', workflow },
    });
    await send('POST', `/automations/${approval.id}/activate`);
    const invoke = async (order: number) =>
      (
        await send('POST', `/automations/${approval.id}/invoke`, {
          payload: { order },
          idempotency_key: `order-${order}`,
        })
      ).id;
    const [done, waiting] = [await invoke(42), await invoke(43)];
    const client = new AutomationsClient(server, app);
    await client.waitUntilWaiting(done);
    await client.waitUntilWaiting(waiting);
    await send('POST', `/automation_runs/${done}/signal`, { name: 'decision', payload: { approved: true } });
    await client.waitForEnd(done);
    for (const run of [done, waiting]) {
      read(`/automation_runs/${run}`);
      read(`/automation_runs/${run}/journal`);
    }
    const parent = await create('/automations', {
      ...{ name: 'Approve many', type: 'invoked' },
      workflow: {
        ...{ kind: 'WorkflowGraph', version: 1, start_node: 'child' },
        nodes: [
          { id: 'child', kind: 'run_automation', automation: approval.id, payload: { order: 44 }, on_success: 'ask' },
          { id: 'ask', kind: 'generate', messages: [{ role: 'user', content: 'Greet the customer.' }] },
        ],
      },
    });
    await send('POST', `/automations/${parent.id}/activate`);
    /** Starts a run of the parent. Returns it with its child run, which waits. */
    const invokeParent = async () => {
      const { id } = await send('POST', `/automations/${parent.id}/invoke`, {});
      const isChild = ({ parent_run: from }: Json) => from === id;
      const { data } = await until('/automation_runs', (page) => (page.data as Json[]).some(isChild));
      const child = String((data as Json[]).find(isChild)?.id);
      await client.waitUntilWaiting(child);
      return { id, child };
    };
    const ended = await invokeParent();
    await send('POST', `/automation_runs/${ended.child}/signal`, { name: 'decision', payload: {} });
    await client.waitForEnd(ended.id);
    const { id: parentRun, child: waitingChild } = await invokeParent();
    for (const run of [ended.id, parentRun, waitingChild]) read(`/automation_runs/${run}`);
    const scheduled = await create('/automations', {
      ...{ name: 'Every new year', type: 'scheduled', schedule: '0 0 1 1 *', workflow },
    });
    await send('POST', `/automations/${scheduled.id}/activate`);
    await send('PUT', '/secrets/CRM_TOKEN', { value: 'the token of the CRM' });
    read('/secrets');
    await send('POST', '/events', { name: 'order.paid', payload: { order: 42 } });
    return { waitingChild, parentRun };
  }

  async function createWebhook(): Promise<void> {
    const webhook = await create('/webhooks', { url: `${site}/hook`, events: ['order.paid'] });
    await send('POST', `/webhooks/${webhook.id}/test`, {});
    await until(`/webhooks/${webhook.id}/deliveries`, ({ data }) =>
      (data as { state: string }[]).every(({ state }) => state === 'delivered'),
    );
    read(`/webhooks/${webhook.id}/deliveries`);
  }

  async function signIn(): Promise<void> {
    const as = { key: app.publishableKey };
    await send('POST', '/auth/login', { email, password }, as);
    const wrong = await server.api('POST', '/api/v1/auth/login', { ...as, body: { email, password: 'not that one' } });
    assert.equal(wrong.status, 401);
    const body = { publishable_key: app.publishableKey, email, password };
    const session = await server.api('POST', '/console/session', { body });
    assert.equal(session.status, 201, session.text);
    const ofDeveloper = await server.api('POST', '/console/session', { body: { developer_token: app.developerToken } });
    assert.ok(ofDeveloper.status < 300, ofDeveloper.text);
  }
}

/** Continues the work of an upgraded installation: finishes what was started before. */
export async function resumeWork(server: TestServer, { app, unfinished }: UsedInstallation) {
  const { source, file, waitingChild, parentRun } = unfinished;
  const as = { key: app.secretKey };
  const login = await server.api('POST', '/api/v1/auth/login', {
    key: app.publishableKey,
    body: { email, password },
  });
  assert.equal(login.status, 200, login.text);

  const search = `/api/v1/knowledge_sources/${source}/search`;
  const query = { query: 'When do you open?', mode: 'fulltext' };
  const found = await server.api<{ data: { content: string }[] }>('POST', search, { ...as, body: query });
  assert.match(found.body.data[0]?.content ?? found.text, /We open at ten/);

  const { body: shown } = await server.api<{ url: string }>('GET', `/api/v1/files/${file}`, as);
  const { pathname, search: signature } = new URL(shown.url);
  assert.equal((await server.api('GET', pathname + signature)).text, fileText);

  const signal = { name: 'decision', payload: { approved: true } };
  const sent = await server.api('POST', `/api/v1/automation_runs/${waitingChild}/signal`, { ...as, body: signal });
  assert.equal(sent.status, 200, sent.text);
  const ended = await new AutomationsClient(server, app).waitForEnd(parentRun);
  assert.equal(ended.status, 'completed', JSON.stringify(ended));
}
