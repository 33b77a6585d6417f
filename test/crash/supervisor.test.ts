import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { externalDatabase } from '../support/cells-of-process.ts';
import { runQuarry } from '../support/command.ts';
import { findFreePort } from '../support/free-port.ts';
import { type ServedProcess, startServe } from '../support/serve.ts';
import { startWatch } from '../support/speed.ts';

const root = mkdtempSync(join(tmpdir(), 'quarry-supervisor-'));
chmodSync(root, 0o755);
const dataDir = join(root, 'data');
const writesPerMinute = 200;
const external = await externalDatabase();
const settings = {
  ...external.settings,
  QUARRY_DATA_DIR: dataDir,
  QUARRY_PROCESSES: '2',
  QUARRY_PARSE_WORKERS: '1',
  QUARRY_DB_POOL: '4',
  QUARRY_RATE_UPLOADS: String(writesPerMinute),
};
let server: ServedProcess;
let key: string;

before(async () => {
  server = await startServe(settings);
  await until(() => logged('All processes started').length === 1, 'The start of all processes');
  key = (JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as { secret_key: string }).secret_key;
});
after(async () => {
  await server.kill();
  rmSync(root, { recursive: true, force: true, maxRetries: 5 });
});

type Reply = { status: number; headers: Record<string, unknown>; body: string };

/** Sends a request on a new connection: the supervisor passes connections to its processes in turn. */
function call(method: string, path: string, body?: unknown, apiKey = key): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
    const sent = request(new URL(path, server.baseUrl), { method, headers, agent: false }, async (response) => {
      try {
        const chunks: Buffer[] = await response.toArray();
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString(),
        });
      } catch (error) {
        reject(error);
      }
    });
    sent.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** The log lines with this message, oldest first. */
function logged(message: string): { process: string; childPid: number }[] {
  const lines = server.output().split('\n');
  return lines
    .filter((line) => line.includes(`"msg":"${message}"`))
    .map((line) => JSON.parse(line) as { process: string; childPid: number });
}

const pollMs = 20;

const startsOf = (name: string) => logged('Process started').filter(({ process }) => process === name);

async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (const deadline = Date.now() + 300_000; !(await condition()); )
    if (Date.now() > deadline) assert.fail(`${what} did not happen:\n${server.output()}`);
    else await new Promise((resolve) => setTimeout(resolve, pollMs));
}

function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** The processes below this one at any depth. */
function descendants(pid: number): number[] {
  const parents = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const parent = Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${name}/stat`, 'utf8'))?.[1]);
        return [{ pid: Number(name), parent }];
      } catch {
        return [];
      }
    });
  const below = (of: number): number[] =>
    parents.filter(({ parent }) => parent === of).flatMap((each) => [each.pid, ...below(each.pid)]);
  return below(pid);
}

async function readSeries(): Promise<Map<string, number>> {
  const { status, body } = await call('GET', '/metrics');
  assert.equal(status, 200);
  const text = body.replaceAll(/\{cell="own"\}|cell="own",|,cell="own"/g, '');
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
}

test('two processes serve requests on one socket and one runs jobs, with one log', () => {
  const names = logged('Process started').map((line) => line.process);
  assert.deepEqual(names.toSorted(), ['http 1', 'http 2', 'worker 1']);
  const lines = server
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'));
  assert.ok(lines.every((line) => typeof JSON.parse(line).pid === 'number'));
});

test('`quarry doctor` shows how many processes start', async () => {
  const { stdout } = await runQuarry(['doctor'], { env: settings });
  assert.match(stdout, /^ok +processes +`quarry serve` starts 2 for requests, 1 for background jobs;/m);
});

const countedRoute = '/api/v1/teams';
const countedRequests = 21;
const countedSeries = `quarry_http_request_duration_seconds_count{method="GET",route="${countedRoute}",status="2xx"}`;

test('/metrics of any process shows the sum over all', async () => {
  for (let i = 0; i < countedRequests; i++) assert.equal((await call('GET', countedRoute)).status, 200);
  for (let i = 0; i < 3; i++) {
    const series = await readSeries();
    assert.equal(series.get(countedSeries), countedRequests);
    assert.equal(series.get('quarry_processes{kind="http",state="running"}'), 2);
    assert.equal(series.get('quarry_processes{kind="worker",state="running"}'), 1);
    assert.equal(series.get('quarry_database_pool_size'), 3 * 4);
    assert.equal(series.get('quarry_workers'), 1, 'a number from the database counts once');
  }
});

test('when processes are killed under load, clients see only retries, nothing acknowledged is lost and counters never fall', async () => {
  const kept: string[] = [];
  const wrong: Reply[] = [];
  let retries = 0;
  let stopping = false;
  let isStarting = false;
  const work = async () => {
    while (!stopping) {
      try {
        const reply = await call('POST', '/api/v1/orgs', { name: 'Kept' });
        if (reply.status === 201) kept.push(JSON.parse(reply.body).id);
        else if (reply.status === 503 && reply.headers['retry-after'] !== undefined) retries += 1;
        else wrong.push(reply);
      } catch {
        retries += 1;
      }
      // A process that is starting needs the processor.
      if (isStarting) await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  };
  const clients = Array.from({ length: 8 }, work);
  for (const child of ['http 1', 'worker 1', 'http 2']) {
    const [keptBefore, before] = [kept.length, startsOf(child).length];
    await until(() => kept.length > keptBefore + 20, 'Progress under load');
    process.kill(startsOf(child).at(-1)?.childPid ?? 0, 'SIGKILL');
    isStarting = true;
    await until(() => startsOf(child).length > before, `The restart of ${child}`);
    isStarting = false;
  }
  stopping = true;
  await Promise.all(clients);
  assert.deepEqual(wrong, []);
  assert.ok(retries > 0, 'requests were in progress');
  const check = async () => {
    for (let id = kept.pop(); id !== undefined; id = kept.pop())
      assert.equal((await call('GET', `/api/v1/orgs/${id}`)).status, 200);
  };
  await Promise.all(Array.from({ length: 8 }, check));
  const series = await readSeries();
  assert.equal(series.get(countedSeries), countedRequests);
  assert.equal(series.get('quarry_process_restarts_total{kind="http"}'), 2);
});

test('a process that hangs is replaced, and the others go on', async () => {
  const hung = startsOf('worker 1').at(-1)?.childPid ?? 0;
  process.kill(hung, 'SIGSTOP');
  try {
    await until(() => startsOf('worker 1').at(-1)?.childPid !== hung, 'The replacement');
  } finally {
    if (isRunning(hung)) process.kill(hung, 'SIGCONT');
  }
  assert.equal(isRunning(hung), false);
  assert.equal(logged('A process has not replied for a minute: it is killed').length, 1);
  assert.equal(logged('Process ended').at(-1)?.childPid, hung);
  assert.equal((await call('GET', countedRoute)).status, 200);
});

test('a revoked key is refused by every process', async () => {
  const created = await call('POST', '/api/v1/keys', { type: 'secret' });
  assert.equal(created.status, 201, created.body);
  const { id, full_key: fresh } = JSON.parse(created.body) as { id: string; full_key: string };
  for (let i = 0; i < 6; i++) assert.equal((await call('GET', '/api/v1/orgs', undefined, fresh)).status, 200);
  assert.equal((await call('DELETE', `/api/v1/keys/${id}`)).status, 204);
  const replies = async () => [
    await call('GET', '/api/v1/orgs', undefined, fresh),
    await call('GET', '/api/v1/orgs', undefined, fresh),
  ];
  await until(async () => (await replies()).every(({ status }) => status === 401), 'The revocation');
  for (let i = 0; i < 6; i++) assert.equal((await call('GET', '/api/v1/orgs', undefined, fresh)).status, 401);
});

test('a rate limit holds over all processes together', async () => {
  const watch = startWatch();
  const statuses: number[] = [];
  for (let i = 0; i < 12; i++)
    statuses.push(
      ...(await Promise.all(
        Array.from({ length: 30 }, async () => (await call('POST', '/api/v1/files', { filename: 'a.txt' })).status),
      )),
    );
  const passed = statuses.filter((status) => status !== 429).length;
  const filled = (watch.passedMs() / 60_000) * writesPerMinute;
  // Each process may exceed the limit by its credit, one hundredth.
  assert.ok(passed <= writesPerMinute + filled + 2 * Math.ceil(writesPerMinute / 100), `${passed} passed`);
  assert.ok(passed >= writesPerMinute * 0.9, `${passed} passed`);
});

test('after kill -9 of the supervisor its processes end, and the next one serves the same data on the metrics port too', async () => {
  const created = await call('POST', '/api/v1/orgs', { name: 'Stays' });
  assert.equal(created.status, 201);
  const pids = ['http 1', 'http 2', 'worker 1'].map((name) => startsOf(name).at(-1)?.childPid ?? 0);
  assert.ok(pids.every(isRunning));
  await server.kill();
  await until(() => !pids.some(isRunning), 'The end of the processes');

  const port = await findFreePort();
  server = await startServe({ ...settings, QUARRY_METRICS_PORT: String(port) });
  assert.equal((await call('GET', `/api/v1/orgs/${JSON.parse(created.body).id}`)).status, 200);
  await until(() => logged('All processes started').length === 1, 'The start of all processes');
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  assert.match(metrics, /^quarry_processes\{kind="http",state="running"\} 2$/m);
  assert.equal((await call('GET', '/metrics')).status, 404);
});

test('SIGTERM finishes requests in progress within ten seconds and leaves no process', async () => {
  const sent = request(new URL('/api/v1/orgs', server.baseUrl), {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json', expect: '100-continue' },
    agent: false,
  });
  sent.flushHeaders();
  await once(sent, 'continue');
  const pids = descendants(server.pid);
  assert.ok(pids.length >= (external.target === undefined ? 4 : 3));
  const asked = startWatch();
  const stopped = server.stop();
  sent.end(JSON.stringify({ name: 'Late' }));
  const [response] = await once(sent, 'response');
  response.resume();
  assert.equal(response.statusCode, 201);
  assert.equal(await stopped, 0);
  asked.within(10_000, 'The end of all processes');
  assert.deepEqual(pids.filter(isRunning), []);
});

test('one process needs no supervisor', async () => {
  server = await startServe({ ...settings, QUARRY_PROCESSES: '1' });
  assert.deepEqual(logged('Process started'), []);
  const commands = descendants(server.pid).map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
  assert.deepEqual(
    commands.filter((command) => command.includes('main.ts')),
    [],
  );
  assert.equal(await server.stop(), 0);
});

test('if the port is in use, the supervisor ends with the reason', async () => {
  const blocker = createServer().listen(0, '127.0.0.1');
  await once(blocker, 'listening');
  const { port } = blocker.address() as { port: number };
  await assert.rejects(
    startServe({ ...settings, PORT: String(port) }),
    new RegExp(`The server ended:[^]*Port ${port} on 127.0.0.1 is in use`),
  );
  blocker.close();
});
