import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { installCluster } from '../support/cluster.ts';
import { callQuarry, startQuarry } from '../support/command.ts';
import { until } from '../support/until.ts';

/* `quarry dev`: a server for developing, and an app that follows its files. */

const root = mkdtempSync(join(tmpdir(), 'quarry-dev-test-'));
const dataDir = join(root, 'data');
after(() => rmSync(root, { recursive: true, force: true }));

const greet = (word: string) => `lookup_key: greet
name: Greet
type: invoked
workflow:
  kind: WorkflowGraph
  version: 1
  start_node: start
  nodes:
    - { id: start, kind: trigger, on_success: done }
    - { id: done, kind: complete, result: "${word} {{$.name}}" }
`;

/** Writes a file as editors do: to another name, then over the old one. */
function save(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, `${path}~`), text);
  renameSync(join(root, `${path}~`), join(root, path));
}

const env = {
  PORT: '0',
  QUARRY_DATA_DIR: dataDir,
  QUARRY_PARSE_WORKERS: '1',
  QUARRY_PARSE_NETWORK: 'shared',
};

const quarry = (...args: string[]) => callQuarry(args, { env: { QUARRY_DATA_DIR: dataDir } });
const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

type Line = { msg?: string; level?: string; pid?: number; event?: string; base_url?: string; action?: string };
const readLines = (text: string) =>
  text
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as Line);

function startDev() {
  mkdirSync(dataDir, { recursive: true });
  installCluster(dataDir);
  const dev = startQuarry(['dev'], { env, cwd: root });
  after(() => dev.child.kill('SIGKILL'));
  /** The line that `matches` and that was printed after `from` others. */
  const line = async (matches: (line: Line) => boolean, from = 0) => {
    const find = () => readLines(dev.output()).slice(from).find(matches);
    await until(() => find() !== undefined);
    return find() ?? {};
  };
  const pids = () => [...new Set(readLines(dev.output()).flatMap(({ pid }) => pid ?? []))];
  return { ...dev, line, pids, count: () => readLines(dev.output()).length };
}

test('files are applied at each save, mistakes and runs are shown, and the server comes back after a crash', async () => {
  save('.env', 'GREETING=Hello\n');
  save('app/automations/greet.yaml', greet('$' + '{env:GREETING}'));
  const dev = startDev();
  await dev.line(({ msg }) => msg === 'Applied 1');
  const hello = await quarry('runs', 'invoke', 'greet', '--payload', '{"name": "Ada"}', '--json');
  assert.match(hello.stdout, /"result":"Hello Ada"/, hello.stderr);
  await dev.line(
    ({ event, msg }) => event === 'automation_run.completed' && /^greet {2}atr_.*Hello Ada/.test(msg ?? ''),
  );

  const link = await quarry('console');
  assert.match(link.stdout, /^http:\/\/127\.0\.0\.1:\d+\/console#sign-in=csl_[\w-]{43}\n$/, link.stderr);
  assert.doesNotMatch(dev.output(), /csl_/, 'no link is in a log');

  save('app/automations/greet.yaml', greet('Hi').replace('name: Greet', 'name: ['));
  await dev.line(({ level, msg }) => level === 'error' && /^app\/automations\/greet\.yaml:\d+:\d+: /.test(msg ?? ''));
  const same = await quarry('runs', 'invoke', 'greet', '--payload', '{"name": "Bob"}', '--json');
  assert.match(same.stdout, /"result":"Hello Bob"/, 'a mistake in a file changes nothing');

  let shown = dev.count();
  save('app/automations/greet.yaml', greet('Hi'));
  await dev.line(({ msg }) => msg === 'Applied 1', shown);

  const [server = 0] = dev.pids();
  shown = dev.count();
  process.kill(server, 'SIGKILL');
  await dev.line(({ msg }) => /^The server ended \(signal SIGKILL\)/.test(msg ?? ''), shown);
  await dev.line(({ base_url: url, msg }) => url !== undefined || msg === 'The server runs again', shown);
  const again = await quarry('runs', 'invoke', 'greet', '--payload', '{"name": "Cy"}', '--json');
  assert.match(again.stdout, /"result":"Hi Cy"/, again.stderr);

  shown = dev.count();
  save('.env', 'QUARRY_AUDIT=loud\n');
  await dev.line(({ level, msg }) => level === 'error' && /QUARRY_AUDIT must be one of off/.test(msg ?? ''), shown);
  const kept = await quarry('runs', 'invoke', 'greet', '--payload', '{"name": "Eve"}', '--json');
  assert.match(kept.stdout, /"result":"Hi Eve"/, 'a mistake in .env changes nothing');

  shown = dev.count();
  save('.env', 'GREETING=Good day\n');
  save('app/automations/greet.yaml', greet('$' + '{env:GREETING}'));
  await dev.line(({ msg }) => msg === '.env changed: restarting the server', shown);
  await dev.line(({ action }) => action === 'update', shown);
  await until(async () => {
    const result = await quarry('runs', 'invoke', 'greet', '--payload', '{"name": "Di"}', '--json');
    return /"result":"Good day Di"/.test(result.stdout);
  });

  const all = dev.pids();
  dev.child.kill('SIGINT');
  assert.equal((await dev.ended).code, 0, dev.errors());
  assert.deepEqual(all.filter(isAlive), []);
  assert.match((await quarry('stop')).stdout, /No server and no PostgreSQL runs/);
});

test('a killed dev takes its server along', async () => {
  save('app/automations/greet.yaml', greet('Hello'));
  const dev = startDev();
  await dev.line(({ base_url: url }) => url !== undefined);
  const [server = 0] = dev.pids();
  assert.ok(isAlive(server));
  dev.child.kill('SIGKILL');
  await until(() => !isAlive(server));
  assert.match((await quarry('stop')).stdout, /No server and no PostgreSQL runs/);
});

test('a setting that is wrong ends it with the reason, and another server on the directory goes on', async () => {
  save('.env', 'QUARRY_PARSE_WORKERS=none\n');
  const wrong = startQuarry(['dev'], { env: { QUARRY_DATA_DIR: join(root, 'other'), PORT: '0' }, cwd: root });
  const { code, stdout, stderr } = await wrong.ended;
  assert.equal(code, 1);
  assert.match(stdout + stderr, /QUARRY_PARSE_WORKERS/);

  save('.env', '');
  const dev = startDev();
  const { base_url: url = '' } = await dev.line(({ base_url: found }) => found !== undefined);
  const second = await startQuarry(['dev'], { env, cwd: root }).ended;
  assert.equal(second.code, 1, second.stdout);
  assert.equal((await fetch(`${url}/readyz`)).status, 200);
  dev.child.kill('SIGINT');
  assert.equal((await dev.ended).code, 0);
});
