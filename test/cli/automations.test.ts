import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { callQuarry } from '../support/command.ts';
import type { TestApp } from '../support/provisioner.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

let server: TestServer;
let app: TestApp;
let directory: string;

before(async () => {
  server = await startTestServer();
  app = await server.provision.app();
  directory = mkdtempSync(join(tmpdir(), 'quarry-cli-'));
});
after(async () => {
  rmSync(directory, { recursive: true });
  await server.close();
});

const quarry = (...args: string[]) =>
  callQuarry(['automations', ...args], { env: { QUARRY_DATA_DIR: join(directory, 'none') } });

function write(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

const text = `name: Greet
lookup_key: greet
type: invoked
workflow:
  kind: WorkflowGraph
  version: 1
  start_node: hello
  nodes:
    - id: hello
      kind: complete
      result: "Hello {{$.name}}"
`;

test('validate points at line and node, and needs no server', async () => {
  const bad = write('bad.yaml', text.replace('kind: complete', 'kind: finish'));
  const refused = await quarry('validate', bad);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /bad\.yaml:10:7: node "hello": kind must be one of/);
  const good = await quarry('validate', write('good.yaml', text));
  assert.deepEqual([good.code, good.stderr], [0, '']);
});

test('apply creates and then updates by the lookup key; run prints the journal and the result', async () => {
  const target = ['--url', server.baseUrl, '--key', app.secretKey];
  const file = write('greet.yaml', text);
  const created = await quarry('apply', file, ...target);
  assert.equal(created.code, 0, created.stderr);
  assert.match(created.stdout, /created aut_\w+ \(running\)/);
  const ran = await quarry(
    'run',
    write('greet.yaml', text.replace('Hello', 'Bye')),
    '--payload',
    '{"name":"Ada"}',
    ...target,
  );
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /run atr_/);
  assert.match(ran.stdout, /node_completed hello "Bye Ada"/);
  assert.match(ran.stdout, /completed "Bye Ada"\n$/);
  const refused = await quarry('apply', file, '--url', server.baseUrl, '--key', 'sk_wrong_wrong');
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /401/);
});
