import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { findConfinement } from '../../src/content/parse/pool/confinement.ts';
import { ownWorkerFile } from '../../src/content/parse/pool/process.ts';
import { findCluster } from '../../src/db/embedded.ts';
import { canReach } from '../../src/db/postgres-account.ts';
import { createTestDatabase } from '../support/database.ts';
import { endWithThisProcess, stopPostgresWithThisProcess } from '../support/left-behind.ts';
import { sendRequest } from '../support/request.ts';
import { startServe } from '../support/serve.ts';
import { projectRoot } from '../support/source.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';

const root = mkdtempSync(join(tmpdir(), 'quarry-lifecycle-'));
chmodSync(root, 0o755);
after(() => rmSync(root, { recursive: true, force: true, maxRetries: 5 }));

const isRoot = process.getuid?.() === 0;
const nobody = { uid: 65_534, gid: 65_534 };
const node = process.execPath;
const mainFile = join(projectRoot, 'src/main.ts');
const lean = { QUARRY_PARSE_WORKERS: '1', QUARRY_DB_POOL: '4', QUARRY_LOG_LEVEL: 'warn' };
let directories = 0;

function newDataDir(): string {
  directories += 1;
  const dataDir = join(root, `data-${directories}`);
  stopPostgresWithThisProcess(dataDir);
  return dataDir;
}

function environment(more: Record<string, string>): Record<string, string> {
  return { PATH: `${join(projectRoot, 'node_modules/.bin')}:/usr/bin:/bin`, HOME: root, PORT: '0', ...lean, ...more };
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

function serverPid(dataDir: string): number {
  return Number(readFileSync(join(dataDir, 'server.pid'), 'utf8'));
}

function postgresPid(dataDir: string): number {
  return Number(readFileSync(join(findCluster(dataDir), 'postmaster.pid'), 'utf8').split('\n')[0]);
}

/** What a command printed until it ended, or until `until` matched. */
async function output(child: ChildProcess, until?: RegExp): Promise<string> {
  let text = '';
  const matched = Promise.withResolvers<void>();
  const read = (chunk: Buffer) => {
    text += chunk;
    if (until?.test(text)) matched.resolve();
  };
  child.stdout?.on('data', read);
  child.stderr?.on('data', read);
  await Promise.race([matched.promise, once(child, 'close')]);
  return text;
}

function credentials(dataDir: string): { base_url: string; app: string; secret_key: string } {
  return JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8'));
}

test('SIGTERM to npm start ends everything in order and leaves no process', async () => {
  const dataDir = newDataDir();
  const npm = spawn('npm', ['start'], { cwd: projectRoot, env: environment({ QUARRY_DATA_DIR: dataDir }) });
  const text = await output(npm, /Credentials .*\n/);
  assert.match(text, /Quarry listens on http:\/\/127\.0\.0\.1:\d+/);
  assert.match(text, /API reference +http:\/\/127\.0\.0\.1:\d+\/docs/);
  const pids = [serverPid(dataDir), postgresPid(dataDir)];
  assert.ok(pids.every(isRunning));
  npm.kill('SIGTERM');
  await once(npm, 'close');
  assert.deepEqual(pids.filter(isRunning), []);
  assert.ok(!existsSync(join(findCluster(dataDir), 'postmaster.pid')), 'PostgreSQL shut down in order');
});

test('the server finishes active requests before it stops', async () => {
  const dataDir = newDataDir();
  const server = await startServe({ ...lean, QUARRY_DATA_DIR: dataDir });
  const { secret_key: key } = credentials(dataDir);
  // The request's head is sent. Its body waits until the server has begun to stop.
  const url = new URL('/api/v1/orgs', server.baseUrl);
  const sent = request(url, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json', expect: '100-continue' },
  });
  sent.flushHeaders();
  await once(sent, 'continue');
  const stopped = server.stop();
  sent.end(JSON.stringify({ name: 'Late' }));
  const [response] = await once(sent, 'response');
  response.resume();
  assert.equal(response.statusCode, 201);
  assert.equal(await stopped, 0);
});

/** Sends a request whose body never arrives, which keeps a server draining. */
async function holdRequest(baseUrl: string, dataDir: string): Promise<void> {
  const held = request(new URL('/api/v1/orgs', baseUrl), {
    method: 'POST',
    headers: {
      'x-api-key': credentials(dataDir).secret_key,
      'content-type': 'application/json',
      expect: '100-continue',
    },
  });
  held.on('error', () => {});
  held.flushHeaders();
  await once(held, 'continue');
}

test('a server whose PostgreSQL has died does not wait for requests in progress', async () => {
  const dataDir = newDataDir();
  const server = await startServe({ ...lean, QUARRY_LOG_LEVEL: 'info', QUARRY_DATA_DIR: dataDir });
  await holdRequest(server.baseUrl, dataDir);
  process.kill(postgresPid(dataDir), 'SIGKILL');
  assert.equal(await server.ended, 1);
  assert.match(server.output(), /"reason":"database"/);
  assert.doesNotMatch(server.output(), /"msg":"Stopped"/, 'it waited until the request was given up');
});

test('a second signal ends the server and its PostgreSQL immediately', async () => {
  const dataDir = newDataDir();
  const server = await startServe({ ...lean, QUARRY_DATA_DIR: dataDir });
  const postgres = postgresPid(dataDir);
  await holdRequest(server.baseUrl, dataDir);
  const again = setInterval(() => process.kill(server.pid, 'SIGTERM'), 200);
  const code = await server.stop();
  clearInterval(again);
  assert.equal(code, 1);
  // It has received its signal. The directory is free as soon as it has ended.
  await until(() => !isRunning(postgres));
});

test('after kill -9 the next start serves the same data and accepts the same keys', async () => {
  const dataDir = newDataDir();
  const first = await startServe({ ...lean, QUARRY_DATA_DIR: dataDir });
  const before = credentials(dataDir);
  assert.equal(statSync(join(dataDir, 'credentials.json')).mode & 0o777, 0o600);
  assert.equal(statSync(join(dataDir, 'secret')).mode & 0o777, 0o600);
  const made = await sendRequest<{ id: string }>(first.baseUrl, 'POST', '/api/v1/orgs', {
    key: before.secret_key,
    body: { name: 'Kept' },
  });
  assert.equal(made.status, 201);
  await first.kill();
  const second = await startServe({ ...lean, QUARRY_DATA_DIR: dataDir });
  const found = await sendRequest(second.baseUrl, 'GET', `/api/v1/orgs/${made.body.id}`, { key: before.secret_key });
  assert.equal(found.status, 200);
  assert.deepEqual(credentials(dataDir), { ...before, base_url: second.baseUrl });
  assert.equal(await second.stop(), 0);
});

test('commands work beside a running server, which a second server on the directory does not', async () => {
  const dataDir = newDataDir();
  const server = await startServe({ ...lean, QUARRY_DATA_DIR: dataDir });
  const env = environment({ QUARRY_DATA_DIR: dataDir });
  const second = endWithThisProcess(spawn(node, [mainFile, 'serve'], { env }));
  assert.match(await output(second), /Another Quarry server .* is using the data directory/);
  assert.equal(second.exitCode, 1);

  const fresh = JSON.parse(execFileSync(node, [mainFile, 'credentials', '--json'], { env, encoding: 'utf8' }));
  assert.deepEqual(Object.keys(fresh), ['base_url', 'app', 'developer_token', 'secret_key', 'publishable_key']);
  assert.equal(fresh.base_url, server.baseUrl);
  const { status } = await sendRequest(server.baseUrl, 'GET', '/api/v1/orgs', { key: fresh.secret_key });
  assert.equal(status, 200);
  const findings = execFileSync(node, [mainFile, 'doctor'], { env, encoding: 'utf8' });
  assert.match(findings, /^ok +parsers +a child process reads documents$/m);
  const { network, userId } = findConfinement(ownWorkerFile);
  assert.match(findings, network ? /^ok +parsers +.*network namespace/m : /^warn +parsers +.*no network isolation/im);
  if (userId !== undefined)
    assert.match(findings, new RegExp(`^ok +parsers +parser processes run as user ${userId}`, 'm'));
  assert.equal(await server.stop('SIGINT'), 0);
});

test('a port in use is reported, and the failed start leaves nothing running', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const address = taken.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const dataDir = newDataDir();
  const child = endWithThisProcess(
    spawn(node, [mainFile, 'serve'], {
      env: environment({ QUARRY_DATA_DIR: dataDir, PORT: String(port) }),
    }),
  );
  assert.match(await output(child), new RegExp(`Port ${port} on 127.0.0.1 is in use`));
  assert.equal(child.exitCode, 1);
  assert.ok(!existsSync(join(findCluster(dataDir), 'postmaster.pid')));
  taken.close();
});

test('every mistake in the settings is reported together, before anything starts', async () => {
  const dataDir = newDataDir();
  const child = endWithThisProcess(
    spawn(node, [mainFile, 'serve'], {
      env: environment({ QUARRY_DATA_DIR: dataDir, PORT: 'eighty', QUARRY_DB_POOL: '1' }),
    }),
  );
  const text = await output(child);
  assert.match(text, /PORT must be a whole number/);
  assert.match(text, /QUARRY_DB_POOL must be a whole number/);
  assert.ok(!existsSync(dataDir));
});

test('a data directory that cannot be created is reported with what to set', async () => {
  const file = join(root, 'no-directory');
  writeFileSync(file, '');
  // Linux refuses new names below /proc as if /proc did not exist.
  const withoutChildren = process.platform === 'linux' ? ['/proc/quarry/data'] : [];
  for (const dataDir of [file, join(file, 'data'), ...withoutChildren]) {
    const env = environment({ QUARRY_DATA_DIR: dataDir });
    const child = endWithThisProcess(spawn(node, [mainFile, 'serve'], { env }));
    assert.match(await output(child), /^The data directory .* could not be created: .* Set QUARRY_DATA_DIR to /m);
    assert.equal(child.exitCode, 1);
  }
});

test('two processes share an external database, and no embedded one is started', async () => {
  const database = await createTestDatabase();
  const proxy = await openTcpProxy(database.target);
  const shared = { ...lean, DATABASE_URL: proxy.url, QUARRY_SECRET: 'f3a91c7be2d84056b8e17d0c95a64f21' };
  const [oneDir, otherDir] = [newDataDir(), newDataDir()];
  mkdirSync(join(oneDir, 'blobs'), { recursive: true });
  mkdirSync(otherDir);
  symlinkSync(join(oneDir, 'blobs'), join(otherDir, 'blobs'));
  try {
    const [one, other] = await Promise.all([
      startServe({ ...shared, QUARRY_DATA_DIR: oneDir }),
      startServe({ ...shared, QUARRY_DATA_DIR: otherDir }),
    ]);
    const made = [oneDir, otherDir].filter((directory) => existsSync(join(directory, 'credentials.json')));
    assert.equal(made.length, 1, 'one of them made the first credentials');
    assert.ok(!existsSync(join(oneDir, 'postgres')) && !existsSync(join(otherDir, 'postgres')));
    const { secret_key: key } = credentials(made[0] ?? '');
    const org = await sendRequest<{ id: string }>(one.baseUrl, 'POST', '/api/v1/orgs', {
      key,
      body: { name: 'Shared' },
    });
    assert.equal((await sendRequest(other.baseUrl, 'GET', `/api/v1/orgs/${org.body.id}`, { key })).status, 200);
    await one.kill();
    assert.equal((await sendRequest(other.baseUrl, 'GET', `/api/v1/orgs/${org.body.id}`, { key })).status, 200);
    assert.equal(await other.stop(), 0);
  } finally {
    await proxy.close();
    await database.drop();
  }
});

test('an ordinary user may run the server', { skip: !isRoot || !canReach(nobody, projectRoot) }, async () => {
  const dataDir = newDataDir();
  mkdirSync(dataDir, { mode: 0o700 });
  chownSync(dataDir, nobody.uid, nobody.gid);
  const child = endWithThisProcess(
    spawn(node, [mainFile, 'serve'], { env: environment({ QUARRY_DATA_DIR: dataDir }), ...nobody }),
  );
  const text = await output(child, /Credentials .*\n/);
  assert.match(text, /Quarry listens on/, text);
  assert.equal(statSync(join(dataDir, 'credentials.json')).uid, nobody.uid);
  child.kill('SIGTERM');
  await once(child, 'close');
  assert.equal(child.exitCode, 0);
});

test('root may run it from a clone that only root can enter', { skip: !isRoot }, async () => {
  const closed = join(root, 'closed');
  const clone = join(closed, 'clone');
  mkdirSync(clone, { recursive: true });
  chmodSync(closed, 0o700);
  for (const name of ['src', 'migrations', 'package.json'])
    cpSync(join(projectRoot, name), join(clone, name), { recursive: true });
  symlinkSync(join(projectRoot, 'node_modules'), join(clone, 'node_modules'));
  // The packages are then found in the clone, as after an installation there.
  const asInstalled = ['--preserve-symlinks', '--preserve-symlinks-main'];
  const dataDir = join(clone, 'data');
  const child = endWithThisProcess(
    spawn(node, [...asInstalled, join(clone, 'src/main.ts'), 'serve'], {
      cwd: clone,
      env: environment({ QUARRY_DATA_DIR: dataDir }),
    }),
  );
  const text = await output(child, /Credentials .*\n/);
  assert.match(text, /Quarry listens on/, text);
  const place = readFileSync(join(dataDir, 'postgres.place'), 'utf8').trim();
  child.kill('SIGTERM');
  await once(child, 'close');
  assert.equal(child.exitCode, 0);
  rmSync(place, { recursive: true, force: true });
});

test('bin/quarry.js uses the Node that the project installs, and passes on signals and the exit code', async () => {
  const bin = join(projectRoot, 'bin/quarry.js');
  const dataDir = newDataDir();
  const child = endWithThisProcess(spawn(node, [bin, 'serve'], { env: environment({ QUARRY_DATA_DIR: dataDir }) }));
  await output(child, /Credentials .*\n/);
  const pid = serverPid(dataDir);
  child.kill('SIGTERM');
  await once(child, 'close');
  assert.equal(child.exitCode, 0);
  assert.ok(!isRunning(pid));
  const wrong = spawn(node, [bin, 'nonsense'], { env: environment({}) });
  assert.match(await output(wrong), /unknown command/);
  assert.equal(wrong.exitCode, 2);
});
