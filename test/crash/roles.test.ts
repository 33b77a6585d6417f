import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type TestExtraction, waitForExtraction } from '../support/extractions.ts';
import { type FixtureSite, htmlPage, startSite } from '../support/fixture-site.ts';
import { sendRequest } from '../support/request.ts';
import { type ServedProcess, startServe } from '../support/serve.ts';
import { openTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-roles-'));
const secret = '6b1f0a94d7c35e28b0f4a1c96d82e735';
let database: TestDatabase;
let proxy: TcpProxy;
let http: ServedProcess;
let site: FixtureSite | undefined;
const processes: ServedProcess[] = [];

before(async () => {
  database = await createTestDatabase();
  proxy = await openTcpProxy(database.target);
  http = await start('http');
});
after(async () => {
  await Promise.all(processes.map((each) => each.kill()));
  await site?.close();
  await proxy.close();
  await database.drop();
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
});

function settings(more: Record<string, string> = {}): Record<string, string> {
  return {
    DATABASE_URL: proxy.url,
    QUARRY_DATA_DIR: dataDir,
    QUARRY_SECRET: secret,
    QUARRY_LOG_LEVEL: 'warn',
    QUARRY_PARSE_WORKERS: '1',
    QUARRY_DB_POOL: '4',
    QUARRY_CRAWL_CONCURRENCY: '1',
    QUARRY_FETCH_ALLOW: '127.0.0.1',
    ...more,
  };
}

async function start(role: 'http' | 'worker'): Promise<ServedProcess> {
  const publicUrl = role === 'worker' ? { QUARRY_PUBLIC_URL: http.baseUrl } : {};
  const served = await startServe(settings(publicUrl), ['--only', role]);
  processes.push(served);
  return served;
}

/** The error of `quarry serve` when it does not start. */
async function refusal(env: Record<string, string>, args: string[]): Promise<string> {
  try {
    const served = await startServe(env, args);
    await served.kill();
    return 'It started.';
  } catch (error) {
    return String(error);
  }
}

test('an http process accepts a crawl that only a worker runs, and a second worker finishes what a killed one began', async () => {
  const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
    secret_key: string;
  };
  const hold = Promise.withResolvers<void>();
  site = await startSite({
    '/': htmlPage('Start', ['/one', '/two']),
    '/one': htmlPage('One', []),
    '/two': async (_request, response) => {
      await hold.promise;
      response.setHeader('content-type', 'text/html').end(htmlPage('Two', []));
    },
  });
  const created = await sendRequest<TestExtraction>(http.baseUrl, 'POST', '/api/v1/extractions', {
    key,
    body: { destination_kind: 'storage', url: `${site.origin}/`, mode: 'site', sitemap: 'skip' },
  });
  assert.equal(created.status, 202);
  // Documents in a request are read within the request, by the parsers of the http process itself.
  const file = await sendRequest<{ id: string }>(http.baseUrl, 'POST', '/api/v1/files', {
    key,
    body: { filename: 'a.html', content_type: 'text/html', data: Buffer.from('<h1>Inline</h1>').toString('base64') },
  });
  const inline = await sendRequest<TestExtraction>(http.baseUrl, 'POST', '/api/v1/extractions', {
    key,
    body: { destination_kind: 'storage', file: file.body.id },
  });
  assert.deepEqual([inline.status, inline.body.state], [201, 'done']);

  const waiting = await database.db`select 1 from jobs where locked_at is not null`;
  assert.equal(waiting.length, 0, 'no job has begun');
  assert.deepEqual(site.requests, []);

  const first = await start('worker');
  await site.waitForRequest('/two');
  await first.kill();
  hold.resolve();
  const second = await start('worker');
  const done = await waitForExtraction(http.baseUrl, key, created.body.id);
  assert.equal(done.state, 'done');
  assert.deepEqual(done.progress, { discovered: 3, done: 3, failed: 0 });
  assert.ok(done.outputs.every((output) => output.file?.url.startsWith(http.baseUrl)));

  assert.equal((await fetch(`${second.baseUrl}/healthz`)).status, 200);
  assert.match(await (await fetch(`${second.baseUrl}/metrics`)).text(), /process_cpu/);
  for (const path of ['/api/v1/files', '/openapi.json', '/docs'])
    assert.equal((await sendRequest(second.baseUrl, 'GET', path, { key })).status, 404, path);

  assert.equal(await second.stop(), 0);
  assert.equal(await http.stop(), 0);
  // PostgreSQL may still be ending the sessions of the process.
  const sessions = () =>
    database.db`select application_name from pg_stat_activity
      where application_name like 'quarry-p%' and datname = current_database()`;
  await until(async () => (await sessions()).length === 0);
});

test('a process that would store files in a different place from the others does not start', async () => {
  const other = join(dataDir, 'other');
  assert.match(await refusal(settings({ QUARRY_DATA_DIR: other }), ['--only', 'http']), /in another blob store/);
});

test('a root secret other than the one the database was created with is refused', async () => {
  assert.match(await refusal(settings({ QUARRY_SECRET: 'a'.repeat(16) + secret.slice(16) }), []), /root secret is not/);
});

test('roles without an external database are refused with the reason', async () => {
  assert.match(await refusal({ QUARRY_DATA_DIR: dataDir }, ['--only', 'http']), /requires DATABASE_URL/);
  assert.match(await refusal(settings(), ['--only', 'worker']), /QUARRY_PUBLIC_URL is required/);
});
