import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, before, test } from 'node:test';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { type TestExtraction, waitForExtraction } from '../../support/extractions.ts';
import { type FixtureSite, htmlPage, startSite } from '../../support/fixture-site.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* Two places for jobs, and more runs and crawls than that which wait for a site that does not answer. */

let server: TestServer;
let app: TestApp;
let other: TestApp;
let site: FixtureSite;
let hanging: { request: IncomingMessage; response: ServerResponse }[] = [];
const waiters = new Set<() => void>();

before(async () => {
  server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8', QUARRY_JOB_WORKERS: '2' } });
  app = await server.provision.app();
  other = await server.provision.app();
  site = await startSite({ '/robots.txt': '', '/page': htmlPage('Page') }, (request, response) => {
    hanging.push({ request, response });
    for (const look of waiters) look();
  });
});
after(async () => {
  await server.close();
  await site.close();
});

/** Resolves when so many requests hang. */
function waitForOpenRequests(count: number): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (hanging.length < count) return;
      waiters.delete(look);
      resolve();
    };
    waiters.add(look);
    look();
  });
}

function respondToAll(): void {
  for (const { response } of hanging) response.setHeader('content-type', 'text/plain').end('at last');
  hanging = [];
}

const calls = (more: Record<string, unknown> = {}) =>
  graphOf({ id: 'call', kind: 'http_request', method: 'POST', url: `${site.origin}/hangs`, ...more });

test('runs that wait for a response occupy no slot: other runs, events and pages continue', async () => {
  const client = new AutomationsClient(server, app);
  const { id } = await client.createAutomation({ workflow: calls({ timeout_seconds: 60 }) });
  const runs = await Promise.all(Array.from({ length: 40 }, () => client.invoke(id)));
  await waitForOpenRequests(40);

  const neighbour = new AutomationsClient(server, other);
  await neighbour.createAutomation({
    type: 'trigger',
    trigger: 'told',
    workflow: graphOf({ id: 'note', kind: 'kv_set', user: '{{$.payload.user}}', key: 'told', value: 'yes' }),
  });
  const user = await server.provision.user(other);
  const run = await neighbour.runGraph(
    graphOf({ id: 'tell', kind: 'emit_event', name: 'told', payload: { user: user.id } }),
  );
  assert.equal(run.status, 'completed');
  await until(async () => (await neighbour.call('GET', `/kv/told?user=${user.id}`)).status === 200);
  const page = await server.api<TestExtraction>('POST', '/api/v1/extractions', {
    key: other.secretKey,
    body: { destination_kind: 'storage', destination_path: 'o', url: `${site.origin}/page`, mode: 'link' },
  });
  assert.equal((await waitForExtraction(server.baseUrl, other.secretKey, page.body.id)).state, 'done');

  assert.equal(hanging.length, 40);
  respondToAll();
  for (const { id: waiting } of runs) assert.equal((await client.waitForEnd(waiting)).status, 'completed');
  // The job that worked on a run releases its claim after the run has ended.
  await until(async () => (await server.db`select 1 from automation_work_claims`).length === 0);
});

test('claims that a process does not hold are released, and no others', async () => {
  const client = new AutomationsClient(server, app);
  const { id } = await client.createAutomation({ workflow: calls({ timeout_seconds: 3_600 }) });
  const run = await client.invoke(id);
  await waitForOpenRequests(1);
  // As by a claim that the database carried out after its connection was lost.
  await server.db`
    insert into automation_work_claims (app_id, run_id, command_id, worker)
    select app_id, run_id, 'lost', worker from automation_work_claims`;
  const claims = () => server.db<{ commandId: string }[]>`select command_id from automation_work_claims`;
  await until(async () => {
    await server.server.work.ticker.tick();
    return (await claims()).length === 1;
  });
  const [started] = (await client.journal(run.id)).filter((entry) => entry.node_id === 'call');
  assert.equal((await claims())[0]?.commandId, started?.command_id);
  respondToAll();
  assert.equal((await client.waitForEnd(run.id)).status, 'completed');
});

test('a request whose start the database refused to write is made later', async () => {
  const client = new AutomationsClient(server, app);
  await server.db`create sequence starts`;
  await server.db`
    create function refuse_first_start() returns trigger language plpgsql as $$ begin
      if new.type = 'node_started' and new.node_id = 'call' and nextval('starts') = 1 then
        raise exception 'no space' using errcode = '53100';
      end if;
      return new;
    end $$`;
  await server.db`
    create trigger refuse_first_start before insert on automation_run_entries
    for each row execute function refuse_first_start()`;
  try {
    const { id } = await client.createAutomation({ workflow: calls({ timeout_seconds: 60 }) });
    const run = await client.invoke(id);
    await waitForOpenRequests(1);
    respondToAll();
    assert.equal((await client.waitForEnd(run.id)).status, 'completed');
  } finally {
    await server.db`drop trigger refuse_first_start on automation_run_entries`;
  }
});

test('cancelling a run aborts its request', async () => {
  const client = new AutomationsClient(server, app);
  const { id } = await client.createAutomation({ workflow: calls({ timeout_seconds: 3_600 }) });
  const run = await client.invoke(id);
  await waitForOpenRequests(1);
  const closed = new Promise<void>((resolve) => hanging[0]?.response.once('close', resolve));
  assert.equal((await client.call('POST', `/automation_runs/${run.id}/cancel`)).status, 200);
  // The node itself would wait for an hour.
  await closed;
  hanging = [];
});

test('a node may wait for longer than the maximum of a Node timer', async () => {
  const client = new AutomationsClient(server, app);
  const { id } = await client.createAutomation({ workflow: calls({ timeout_seconds: 30 * 24 * 3_600 }) });
  const run = await client.invoke(id);
  await waitForOpenRequests(1);
  respondToAll();
  assert.equal((await client.waitForEnd(run.id)).status, 'completed');
});

test('a signal is handled while another branch waits for a response', async () => {
  const client = new AutomationsClient(server, app);
  const workflow = graphOf({
    id: 'both',
    kind: 'parallel',
    nodes: [
      { id: 'call', kind: 'http_request', method: 'GET', url: `${site.origin}/hangs`, timeout_seconds: 60 },
      { id: 'go', kind: 'wait_for_signal', name: 'go' },
    ],
  });
  const { id } = await client.createAutomation({ workflow });
  const run = await client.invoke(id);
  await waitForOpenRequests(1);
  assert.equal(
    (await client.call('POST', `/automation_runs/${run.id}/signal`, { name: 'go', payload: 7 })).status,
    200,
  );
  await client.waitUntil(run.id, (_run, page) =>
    page.data.some((entry) => entry.type === 'node_completed' && entry.node_id === 'go'),
  );
  assert.equal(hanging.length, 1);
  respondToAll();
  const done = await client.waitForEnd(run.id);
  assert.equal(done.status, 'completed');
  assert.equal((done.result as { go: unknown }).go, 7);
});
