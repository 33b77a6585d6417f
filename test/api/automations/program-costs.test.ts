import assert from 'node:assert/strict';
import { after, mock, test } from 'node:test';
import { Connection } from '../../../src/db/connection.ts';
import { AutomationsClient } from '../../support/automations.ts';
import { ProgramWorker, programOf, started } from '../../support/programs.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* What workers of runs in code cost the database, and others. */

const server = await startTestServer();
after(() => server.close());

test('a repeatable request of a worker does not wait with what it has locked', async () => {
  const app = await server.provision.app();
  const own = new AutomationsClient(server, app);
  const send = (path: string, idempotencyKey: string, body: object) =>
    server.api<{ entries: { type: string }[] }>('POST', `/api/v1${path}`, {
      ...{ key: app.secretKey, headers: { 'idempotency-key': idempotencyKey } },
      body: { wait_seconds: 30, ...body },
    });
  const { id } = await own.createAutomation({ workflow: programOf('invoice'), max_concurrent_runs: 1 });
  const { id: run } = await own.invoke(id);
  await own.invoke(id);
  const work = await new ProgramWorker(own).take(id);
  // The next run is ready and may not start, which a look finds out under a lock.
  const claim = { automations: [id], code_version: 'v1', lease_seconds: 60 };
  const claimed = await send('/automation_work/claim', 'claim-1', claim);
  assert.equal(claimed.status, 204, claimed.text);

  const { sequence } = await work.write([started('asks', { kind: 'signal', name: 'go' })]);
  const { waits } = server.services.process.streamBudget;
  const waiting = send(`/automation_runs/${run}/entries`, 'wait-1', {
    ...{ claim: work.claimed.claim, after_sequence: sequence, entries: [] },
  });
  await until(() => waits.taken > 0);
  assert.equal((await own.call('POST', `/automation_runs/${run}/signal`, { name: 'go' })).status, 200);
  const told = await waiting;
  assert.equal(told.status, 200, told.text);
  assert.deepEqual(
    told.body.entries.map(({ type }) => type),
    ['signal_received', 'node_completed'],
  );
});

test('the end of one of many children reads none of the others', async () => {
  const app = await server.provision.app();
  const own = new AutomationsClient(server, app);
  const ownWorker = new ProgramWorker(own);
  const [child, id] = await Promise.all(
    ['child', 'parent'].map(async (name) => (await own.createAutomation({ workflow: programOf(name) })).id),
  );
  if (child === undefined || id === undefined) throw new Error('There is no automation.');
  await own.invoke(id);
  const work = await ownWorker.take(id);
  const kids = Array.from({ length: 40 }, (_, n) => started(`kid-${n}`, { kind: 'child', automation: child }));
  await work.write(kids, { release: {} });
  const kid = await ownWorker.take(child);
  const sent = mock.method(Connection.prototype, 'execute');
  await kid.write([{ type: 'run_completed', payload: 'done' }]);
  const next = await ownWorker.take(id, { wait_seconds: 20 });
  sent.mock.restore();
  assert.equal(next.claimed.journal.at(-1)?.record.payload, 'done');
  const ofOne = /^\s*select \* from automation_runs where app_id = \$1 and id = \$2\s*$/;
  const reads = sent.mock.calls.filter(
    ({ arguments: [{ text, values }] }) => ofOne.test(text) && values[0] === app.app.uuid,
  );
  assert.ok(reads.length < 20, `${reads.length} reads of a run`);
});

test('a worker asks for runs of many automations with as many statements as for one', async () => {
  const app = await server.provision.app();
  const own = new AutomationsClient(server, app);
  const names: string[] = [];
  for (let n = 0; n < 12; n++) {
    const lookupKey = n % 2 === 0 ? {} : { lookup_key: `workflow-${n}` };
    const { id } = await own.createAutomation({ workflow: programOf('invoice'), ...lookupKey });
    names.push(lookupKey.lookup_key ?? id);
  }
  const body = (automations: string[]) => ({ automations, code_version: 'v1', lease_seconds: 60 });
  const sent = mock.method(Connection.prototype, 'execute');
  const claimed = await own.call('POST', '/automation_work/claim', body(names));
  sent.mock.restore();
  assert.equal(claimed.status, 204, claimed.text);
  const reads = sent.mock.calls.filter(
    ({ arguments: [{ text, values }] }) => text.includes('from automations a where') && values.includes(app.app.uuid),
  );
  assert.equal(reads.length, 1);
  const unknown = await own.call('POST', '/automation_work/claim', body([...names, 'none']));
  assert.match(unknown.text, /automations\.12/);
});
