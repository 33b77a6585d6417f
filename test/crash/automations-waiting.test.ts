import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, before, test } from 'node:test';
import { startAutomationWorker } from '../support/automation-workers.ts';
import { AutomationsClient, graphOf } from '../support/automations.ts';
import { type FixtureSite, startSite } from '../support/fixture-site.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

let server: TestServer;
let site: FixtureSite;
const workers: ChildProcess[] = [];
const asked: { request: IncomingMessage; response: ServerResponse }[] = [];
let onAsked = (): void => {};

before(async () => {
  server = await startTestServer({ env: { QUARRY_JOB_WORKERS: '0', QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
  site = await startSite({}, (request, response) => {
    asked.push({ request, response });
    onAsked();
  });
});
after(async () => {
  for (const worker of workers) worker.kill('SIGKILL');
  await server.close();
  await site.close();
});

async function startWorker(): Promise<ChildProcess> {
  const worker = await startAutomationWorker(server, {
    QUARRY_JOB_WORKERS: '1',
    QUARRY_FETCH_ALLOW: '127.0.0.0/8',
  });
  workers.push(worker);
  return worker;
}

function waitForRequests(count: number): Promise<void> {
  return new Promise((resolve) => {
    onAsked = () => asked.length >= count && resolve();
    onAsked();
  });
}

test('requests that wait in a killed process are repeated by another process, with the same key', async () => {
  const client = new AutomationsClient(server, await server.provision.app());
  const call = { id: 'call', kind: 'http_request', method: 'POST', url: `${site.origin}/`, timeout_seconds: 3_600 };
  const { id } = await client.createAutomation({ workflow: graphOf(call) });
  const victim = await startWorker();
  const runs = await Promise.all(Array.from({ length: 20 }, () => client.invoke(id)));
  await waitForRequests(20);
  const keys = asked.map(({ request }) => request.headers['idempotency-key']).sort();
  assert.equal(new Set(keys).size, 20);

  await startWorker();
  victim.kill('SIGKILL');
  await waitForRequests(40);
  const again = asked.slice(20);
  assert.deepEqual(again.map(({ request }) => request.headers['idempotency-key']).sort(), keys);
  for (const { response } of again) response.end('at last');
  for (const run of runs) {
    assert.equal((await client.waitForEnd(run.id)).status, 'completed');
    const ends = (await client.journal(run.id)).filter((entry) => entry.type === 'node_completed');
    assert.equal(ends.length, 1);
  }
});
