import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import type { TestUser } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

const token = 'swordfish/42 ü';

let server: TestServer;
let client: AutomationsClient;
let user: TestUser;
let outside: Server;
let outsideUrl: string;
const received: { authorization: string | undefined; url: string | undefined }[] = [];

before(async () => {
  server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
  const app = await server.provision.app();
  user = await server.provision.user(app);
  client = new AutomationsClient(server, app);
  outside = createServer(({ headers, url }, response) => {
    received.push({ authorization: headers.authorization, url });
    response.end(JSON.stringify({ authorization: headers.authorization, url, basic: btoa('me:swordfish/42') }));
  });
  await new Promise<void>((resolve) => outside.listen(0, '127.0.0.1', resolve));
  outsideUrl = `http://127.0.0.1:${(outside.address() as AddressInfo).port}`;
  assert.equal((await client.call('PUT', '/secrets/TOKEN', { value: token })).status, 200);
  assert.equal((await client.call('PUT', '/secrets/SHORT', { value: 'swordfish/42' })).status, 200);
});
after(async () => {
  outside.closeAllConnections();
  outside.close();
  await server.close();
});

/** No table of runs, journals and events holds the secret, in any spelling. */
async function assertNowhere(...more: string[]): Promise<void> {
  for (const table of ['automation_runs', 'automation_run_entries', 'automation_run_children', 'events']) {
    const rows = await server.db`select to_jsonb(t) as row from ${server.db(table)} t`;
    const text = JSON.stringify(rows);
    for (const trace of ['swordfish', encodeURIComponent(token), btoa('swordfish/42').slice(0, 15), ...more])
      assert.ok(!text.includes(trace), `${trace} in ${table}: ${text}`);
  }
}

const written = async (key: string) =>
  (await client.call<{ value: string }>('GET', `/kv/${key}?user=${user.id}`)).body.value;

test('a secret cannot be read back', async () => {
  const listed = await client.call('GET', '/secrets');
  assert.doesNotMatch(listed.text, /swordfish/);
  assert.match(listed.text, /TOKEN/);
});

test('later nodes can use a secret in an output, and nobody can read it', async () => {
  const run = await client.runGraph(
    graphOf(
      { id: 'a', kind: 'transform', value: { auth: ['Bearer {{$secrets.TOKEN}}'] }, on_success: 'w' },
      // After the wait only the journal is left.
      { id: 'w', kind: 'wait', seconds: 0.1, on_success: 'k' },
      { id: 'k', kind: 'kv_set', user: user.id, key: 'a', value: '{{$nodes.a.auth[0]}}', on_success: 'h' },
      {
        ...{ id: 'h', kind: 'http_request', method: 'GET', url: `${outsideUrl}/x`, on_success: 'c' },
        ...{ query: { q: '{{$nodes.a.auth[0]}}' }, headers: { authorization: 'Bearer {{$secrets.SHORT}}' } },
      },
      { id: 'c', kind: 'complete', result: { all: '{{$nodes}}', length: '{{$length($nodes.a.auth[0])}}' } },
    ),
  );
  assert.equal(run.status, 'completed', JSON.stringify(run));
  assert.equal(await written('a'), `Bearer ${token}`);
  assert.equal(received.at(-1)?.authorization, 'Bearer swordfish/42');
  assert.ok(received.at(-1)?.url?.includes(new URLSearchParams({ q: `Bearer ${token}` }).toString()));
  const result = run.result as {
    all: Record<string, { auth: string[]; json: Record<string, string> }>;
    length: number;
  };
  assert.deepEqual(result.all.a?.auth, ['Bearer [redacted]']);
  assert.equal(result.all.h?.json.authorization, 'Bearer [redacted]');
  assert.equal(result.length, `Bearer ${token}`.length);
  const journal = await client.journal(run.id);
  assert.deepEqual(journal.find((entry) => entry.type === 'node_completed')?.record.metadata?.redacted, [
    { path: ['auth', 0], at: 7, secret: 'TOKEN' },
  ]);
  await assertNowhere();
});

test('items of a fan-out may be secrets', async () => {
  const run = await client.runGraph(
    graphOf(
      {
        ...{ id: 'e', kind: 'for_each', items: '[$secrets.TOKEN, $run.id]', concurrency: 1, on_success: 'c' },
        node: {
          id: 'p',
          kind: 'parallel',
          nodes: [
            { id: 'w', kind: 'wait', seconds: 0.05 },
            { id: 'k', kind: 'kv_set', user: user.id, key: 'item/{{$index}}', value: '{{$item}}' },
          ],
        },
      },
      { id: 'c', kind: 'complete', result: '{{$count($nodes.e)}}' },
    ),
  );
  assert.equal(run.result, 2, JSON.stringify(run));
  assert.equal(await written('item%2F0'), token);
  assert.equal(await written('item%2F1'), run.id);
  await assertNowhere();
});

test('a failure that names a secret does not show it', async () => {
  const failed = await client.runGraph(graphOf({ id: 'f', kind: 'fail', message: 'no {{$secrets.TOKEN}}' }));
  assert.deepEqual(failed.error, { code: 'failed', message: 'no [redacted]', node_id: 'f' });
  const thrown = await client.runGraph(
    graphOf(
      { id: 't', kind: 'transform', value: '{{$error($secrets.TOKEN)}}', on_error: 'k' },
      { id: 'k', kind: 'kv_set', user: user.id, key: 'error', value: '{{$nodes.t.error.message}}' },
    ),
  );
  assert.equal(thrown.status, 'completed', JSON.stringify(thrown));
  await assertNowhere();
});

test('no secret is handed on to another run', async () => {
  const { id: child } = await client.createAutomation({ workflow: graphOf({ id: 't', kind: 'trigger' }) });
  const keep = { id: 'a', kind: 'transform', value: '{{$secrets.TOKEN}}', on_success: 'b' };
  for (const node of [
    { kind: 'run_automation', automation: child, payload: { token: '{{$nodes.a}}' } },
    { kind: 'emit_event', name: 'x', payload: { token: '{{$base64encode("me:" & $secrets.SHORT)}}' } },
  ]) {
    const run = await client.runGraph(graphOf(keep, { id: 'b', ...node }));
    assert.equal(run.error?.code, 'secret_handed_on', JSON.stringify(run));
    assert.match(run.error?.message ?? '', /\$secrets\.(TOKEN|SHORT)/);
  }
  await assertNowhere();
});

test('a node that reads an output whose secret was deleted fails', async () => {
  await client.call('PUT', '/secrets/BRIEF', { value: 'here today' });
  const { id } = await client.createAutomation({
    workflow: graphOf(
      { id: 'a', kind: 'transform', value: '{{$secrets.BRIEF}}', on_success: 'w' },
      { id: 'w', kind: 'wait_for_signal', name: 'go', on_success: 'x' },
      { id: 'x', kind: 'transform', value: '{{$nodes.w}}', on_success: 'y' },
      { id: 'y', kind: 'transform', value: '{{$nodes.a}}' },
    ),
  });
  const { id: run } = await client.invoke(id);
  await client.waitUntilWaiting(run);
  assert.equal((await client.call('DELETE', '/secrets/BRIEF')).status, 204);
  assert.equal((await client.call('DELETE', '/secrets/BRIEF')).status, 404);
  await client.call('POST', `/automation_runs/${run}/signal`, { name: 'go' });
  const { error } = await client.waitForEnd(run);
  assert.deepEqual([error?.code, error?.node_id], ['secret_gone', 'y'], JSON.stringify(error));
  await assertNowhere('here today');
});

test('secrets are read and decrypted once for each version of them, and a change counts for the next step', async (context) => {
  const own = await server.provision.app();
  const of = new AutomationsClient(server, own);
  await of.call('PUT', '/secrets/ONE', { value: 'first-value-1' });
  await of.call('PUT', '/secrets/TWO', { value: 'second-value-2' });
  const unwrap = context.mock.method(server.services.secrets, 'unwrap');
  const { id } = await of.createAutomation({
    workflow: graphOf(
      { id: 'wait', kind: 'wait_for_signal', name: 'go', on_success: 'end' },
      { id: 'end', kind: 'complete', result: { length: '{{$length($secrets.ONE)}}' } },
    ),
  });
  /** How often a secret of this app was decrypted. The server unwraps other keys as well. */
  const decrypted = () =>
    unwrap.mock.calls.filter(({ result }) => /^(?:longer-)?\w+-value/.test(`${result?.plain}`)).length;
  // One after the other: runs that begin at the same moment may read a new version together.
  const runs = [];
  for (let count = 0; count < 3; count++) {
    const run = await of.invoke(id);
    await of.waitUntilWaiting(run.id);
    runs.push(run);
  }
  assert.equal(decrypted(), 2);
  await of.call('PUT', '/secrets/ONE', { value: 'longer-first-value' });
  for (const run of runs) {
    await of.call('POST', `/automation_runs/${run.id}/signal`, { name: 'go' });
    assert.deepEqual((await of.waitForEnd(run.id)).result, { length: 18 });
  }
  assert.equal(decrypted(), 4);
});
