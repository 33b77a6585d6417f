import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AutomationsClient, graphOf, types } from '../support/automations.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

let server: TestServer;
let client: AutomationsClient;

before(async () => {
  server = await startTestServer();
  client = new AutomationsClient(server, await server.provision.app());
});

after(() => server?.close());

test('an expression that its deadline ended fails the run without a retry', async () => {
  const run = await client.runGraph(
    graphOf({
      id: 'each',
      kind: 'for_each',
      items: '[1..3]',
      node: {
        id: 'one',
        kind: 'transform',
        value: '{{$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /^(a+)+$/)}}',
        retry: { max_attempts: 100, initial_seconds: 0 },
      },
      retry: { max_attempts: 100, initial_seconds: 0 },
      concurrency: 1,
    }),
  );
  assert.equal(run.status, 'failed');
  assert.equal(run.error?.code, 'expression_limit');
  assert.deepEqual(types(await client.journal(run.id)), [
    ...['run_started', 'node_started each', 'node_started one', 'node_failed one', 'node_failed each', 'run_failed'],
  ]);
});
