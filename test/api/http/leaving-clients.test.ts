import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, test } from 'node:test';
import { AutomationsClient } from '../../support/automations.ts';
import { ProgramWorker, programOf } from '../../support/programs.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* Clients that leave before their request has reached what waits for the end of its response. */

const server = await startTestServer();
after(() => server.close());
const { api, db, provision } = server;

type Sent = { path: string; key: string; length: number; body: string };

/** Sends a request, and leaves during a query that begins like this. Returns when the server has noticed. */
async function leaveDuring(table: string, query: string, { path, key, length, body }: Sent): Promise<void> {
  const { hostname, port, host } = new URL(server.baseUrl);
  const { connections } = server.services.process;
  const headers = [`host: ${host}`, `x-api-key: ${key}`, 'content-type: application/json', `content-length: ${length}`];
  await until(() => connections.requestsInProgress === 0);
  await db.begin(async (tx) => {
    await tx`lock table ${tx(table)} in access exclusive mode`;
    const socket = connect(Number(port), hostname).on('error', () => {});
    socket.write(`POST ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n${body}`);
    await until(async () => {
      // A transaction would see the same activity again and again.
      const waiting = await db`
        select from pg_locks l join pg_stat_activity a using (pid)
        where l.relation = ${table}::regclass and not l.granted and a.datname = current_database()
          and strpos(a.query, ${query}) > 0`;
      return waiting.count > 0;
    });
    socket.destroy();
    await until(() => connections.requestsInProgress === 0);
  });
}

test('a body that was announced by a client who has left since holds no memory', async () => {
  const { secretKey: key } = await provision.app();
  const length = 2 * 1024 * 1024;
  const sent = { path: '/api/v1/files', key, length, body: '{"filename":' };
  await leaveDuring('api_keys', 'from credentials c join api_keys', sent);
  // It waits for the same look-up of the key, so the other one has gone on before.
  assert.equal((await api('GET', '/api/v1/files', { key })).status, 200);
  assert.equal(server.services.process.intake.heldBytes, 0);
});

test('no run is claimed for a worker that has left before it begins to wait', async () => {
  const app = await provision.app();
  const client = new AutomationsClient(server, app);
  const worker = new ProgramWorker(client);
  const { id } = await client.createAutomation({ workflow: programOf('invoice') });
  const run = await client.invoke(id);
  const body = JSON.stringify({ automations: [id], code_version: 'v1', lease_seconds: 3_600, wait_seconds: 30 });
  const sent = { path: '/api/v1/automation_work/claim', key: app.secretKey, length: Buffer.byteLength(body), body };
  await leaveDuring('automations', 'a.lookup_key = any(', sent);
  const claimed = await worker.claim(id);
  assert.equal(claimed.status, 200, claimed.text);
  assert.equal(claimed.body.run.id, run.id);
});
