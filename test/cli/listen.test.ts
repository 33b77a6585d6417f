import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { webhookMessages } from '../../src/events/schema.ts';
import { callQuarry, startQuarry } from '../support/command.ts';
import { startTestServer } from '../support/server.ts';
import { isSigned, WebhookReceiver } from '../support/webhook-receiver.ts';

/* `quarry listen` sends events to a program on this machine, and `quarry trigger` emits samples of them. */

const server = await startTestServer();
const app = await server.provision.app();
const receiver = await WebhookReceiver.start();
const directory = mkdtempSync(join(tmpdir(), 'quarry-listen-'));
const env = {
  QUARRY_DATA_DIR: join(directory, 'no-data'),
  QUARRY_API_URL: server.baseUrl,
  QUARRY_API_KEY: app.secretKey,
};
after(async () => {
  await server.close();
  await receiver.close();
  rmSync(directory, { recursive: true, force: true });
});

const emit = (name: string) => server.api('POST', '/api/v1/events', { key: app.secretKey, body: { name } });

/** Starts `quarry listen` and waits until its stream is open. */
async function startListening(path: string, ...options: string[]) {
  const listening = startQuarry(['listen', '--forward', `${receiver.origin}${path}`, ...options], { env });
  while (!listening.errors().includes('Watching.'))
    await new Promise((resolve) => listening.child.stderr.once('data', resolve));
  return listening;
}

test('every documented event arrives as a webhook would send it, signed and marked as a test', async () => {
  const count = String(webhookMessages.length);
  const listening = await startListening('/all', '--limit', count);
  for (const { event } of webhookMessages) {
    const triggered = await callQuarry(['trigger', event], { env });
    assert.match(triggered.stdout, /^evt_\w{22}\n$/, triggered.stderr);
  }
  const { code, stdout, stderr } = await listening.ended;
  assert.equal(code, 0, stderr);
  assert.match(stdout, / {2}200 {2}file\.created {2}evt_\w{22} {2}\d+ ms\n/);
  const [secret = ''] = /whsec_\S+/.exec(stderr) ?? [];
  const messages = await receiver.waitFor('/all', webhookMessages.length);
  assert.deepEqual(
    messages.map(({ event }) => event.type),
    webhookMessages.map(({ event }) => event),
  );
  for (const message of messages) {
    assert.ok(isSigned(message, secret));
    assert.equal(message.headers['webhook-id'], message.event.id);
    assert.equal(message.event.data.test, true);
  }
  assert.deepEqual(messages[0]?.event.data.file, 'fil_0000000000000000000000');
  const failed = messages.find(({ event }) => event.type === 'automation_run.failed')?.event.data;
  assert.deepEqual([failed?.status, failed?.error], ['failed', { code: 'sample', message: 'sample' }]);
});

test('listen takes only the events that it names, replays the last ones, and keeps its secret in a file', async () => {
  const file = join(directory, 'secret');
  const live = await startListening('/live', '--limit', '2', '--events', 'order.paid', '--secret-file', file);
  for (const name of ['order.opened', 'order.paid', 'order.closed', 'order.paid']) await emit(name);
  assert.equal((await live.ended).code, 0);
  const options = ['--replay', '3', '--limit', '3', '--secret-file', file];
  const again = await callQuarry(['listen', '--forward', `${receiver.origin}/again`, ...options, '--json'], { env });
  assert.equal(again.code, 0, again.stderr);
  const replayed = await receiver.waitFor('/again', 3);
  assert.deepEqual(
    replayed.map(({ event }) => event.type),
    ['order.paid', 'order.closed', 'order.paid'],
  );
  const secret = readFileSync(file, 'utf8').trim();
  const taken = await receiver.waitFor('/live', 2);
  for (const message of [...taken, ...replayed]) assert.ok(isSigned(message, secret));
  assert.deepEqual(
    taken.map(({ event }) => event.id),
    [replayed[0]?.event.id, replayed[2]?.event.id],
  );
});

test('a receiver that refuses or is gone is reported, and the next event is sent', async () => {
  receiver.respond = (response) => response.writeHead(500).end();
  const refused = await startListening('/refused', '--limit', '1');
  await emit('order.paid');
  assert.match((await refused.ended).stdout, / {2}500 {2}order\.paid /);
  const gone = ['--forward', 'http://127.0.0.1:9/', '--replay', '2', '--limit', '2'];
  const ran = await callQuarry(['listen', ...gone], { env });
  assert.match(ran.stdout, /^(\S+ {2}ECONNREFUSED {2}order\.\w+ .*\n){2}$/);
});

test('wrong use exits with 2, and a publishable key with 1', async () => {
  const cases: [string[], RegExp][] = [
    [['trigger', 'file.creatd'], /Did you mean "file\.created"\?/],
    [['trigger', 'entirely.else'], /Events: file\.created, /],
    [['trigger', 'file.created', '--data', '[]'], /--data/],
    [['listen', '--forward', 'nowhere'], /--forward takes a URL/],
    [['listen', '--forward', receiver.origin, '--secret-file', import.meta.filename], /contains no secret/],
  ];
  for (const [args, message] of cases) {
    const ran = await callQuarry(args, { env });
    assert.equal(ran.code, 2, ran.stdout);
    assert.match(ran.stderr, message);
  }
  const publishable = { ...env, QUARRY_API_KEY: app.publishableKey };
  assert.equal((await callQuarry(['trigger', 'file.created'], { env: publishable })).code, 1);
});
