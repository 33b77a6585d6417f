import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
before(async () => {
  server = await startTestServer();
});
after(() => server.close());

test('/healthz reports that the process is alive, /readyz that its dependencies respond', async () => {
  assert.deepEqual((await server.api('GET', '/healthz')).body, { status: 'ok' });
  assert.deepEqual((await server.api('GET', '/readyz')).body, {
    status: 'ready',
    checks: { start: 'ok', database: 'ok', migrations: 'ok', blobs: 'ok' },
  });
});

test('/readyz is 503 and names what fails when a newer release has made a schema that this one cannot serve', async () => {
  const [fact] = await server.db<{ value: string }[]>`select value from server_facts where name = 'serves_from'`;
  assert.ok(fact);
  await server.db`insert into schema_migrations (version, name, checksum) values (9999, '9999_later.sql', '')`;
  try {
    // A later schema that only adds is served.
    assert.equal((await server.api('GET', '/readyz')).status, 200);
    await server.db`update server_facts set value = '9999' where name = 'serves_from'`;
    const { status, body, headers } = await server.api<ErrorBody>('GET', '/readyz');
    assert.equal(status, 503);
    assert.equal(body.error.code, 'unavailable');
    assert.deepEqual(body.error.details, { start: 'ok', database: 'ok', migrations: 'failed', blobs: 'ok' });
    assert.ok(headers.get('retry-after'));
  } finally {
    await server.db`delete from schema_migrations where version = 9999`;
    await server.db`update server_facts set value = ${fact.value} where name = 'serves_from'`;
  }
});

test('/metrics counts requests by route, never by path', async () => {
  await server.api('GET', '/api/v1/orgs/org_nothing');
  const { text, headers } = await server.api('GET', '/metrics');
  assert.match(headers.get('content-type') ?? '', /^text\/plain/);
  assert.match(
    text,
    /quarry_http_request_duration_seconds_count\{method="GET",route="\/api\/v1\/orgs\/:org",status="4xx"\} 1/,
  );
  assert.doesNotMatch(text, /org_nothing/);
});

test('a credential that another process revoked is refused as soon as the notification arrives', async () => {
  const app = await server.provision.app();
  assert.equal((await server.api('GET', '/api/v1/orgs', { key: app.secretKey })).status, 200);
  const heard = Promise.withResolvers<void>();
  const subscription = await server.services.direct.listen('quarry_tenancy', () => heard.resolve());
  await server.db`update api_keys set revoked_at = now() where app_id = ${app.app.uuid}`;
  await heard.promise;
  assert.equal((await server.api('GET', '/api/v1/orgs', { key: app.secretKey })).status, 401);
  await subscription.unlisten();
});

test('a request on an open connection of a stopping server gets 503 in the usual error shape, and may be repeated', async () => {
  const stopping = await startTestServer();
  const { secretKey } = await stopping.provision.app();
  const { hostname, port } = new URL(stopping.baseUrl);
  const socket = connect(Number(port), hostname).setEncoding('utf8');
  let received = '';
  socket.on('data', (text: string) => {
    received += text;
  });
  const body = JSON.stringify({ name: 'Active' });
  const head = [
    'POST /api/v1/orgs HTTP/1.1',
    `host: ${hostname}`,
    `x-api-key: ${secretKey}`,
    'content-type: application/json',
    'expect: 100-continue',
    `content-length: ${body.length}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  await once(socket, 'data');
  const closed = stopping.close();
  // The server is stopping once it accepts no connection.
  await refusesConnections(Number(port), hostname);
  socket.write(`${body}GET /api/v1/orgs HTTP/1.1\r\nhost: ${hostname}\r\nx-request-id: late\r\n\r\n`);
  await once(socket, 'close');
  await closed;
  const [, active = '', late = ''] = received.split('HTTP/1.1 ').slice(1);
  assert.match(active, /^201 /);
  assert.match(late, /^503 /);
  for (const header of [/^retry-after: 1\r$/im, /^connection: close\r$/im, /^x-request-id: late\r$/im])
    assert.match(late, header);
  const { error } = JSON.parse(late.slice(late.indexOf('{'))) as ErrorBody;
  assert.equal(error.code, 'unavailable');
});

async function refusesConnections(port: number, host: string): Promise<void> {
  for (;;) {
    const socket = connect(port, host);
    const outcome = await new Promise((resolve) => socket.on('connect', resolve).on('error', resolve));
    socket.destroy();
    if (outcome instanceof Error) return;
  }
}
