import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Metrics } from '../../../src/http/metrics.ts';
import { addJob } from '../../../src/jobs/queue.ts';
import { newUuid } from '../../../src/lib/ids.ts';
import { registerMonitoring, registerParserMetrics } from '../../../src/monitoring/register.ts';
import { htmlPage, startSite } from '../../support/fixture-site.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const server = await startTestServer({ env: { QUARRY_EMBEDDER: 'lexical', QUARRY_FETCH_ALLOW: '127.0.0.1' } });
after(() => server.close());
const { api, provision, db, services } = server;
const app = await provision.app();

/** The numbers of this moment: what the server itself shows may be a few seconds old. */
async function measure(): Promise<Map<string, number>> {
  const metrics = new Metrics();
  registerMonitoring({ ...services, metrics, databasePoolSize: 6, keptMs: 0 });
  registerParserMetrics(metrics, services.parser);
  return readSeries(await metrics.registry.metrics());
}

function readSeries(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
}

test('jobs are counted as waiting, active, scheduled and set aside, with their ages', async () => {
  const hour = 3_600_000;
  await addJob(db, 'nobodys_task', {}, { inMs: -hour });
  await addJob(db, 'nobodys_task', {}, { inMs: hour });
  await addJob(db, 'stuck_task', {});
  await db`update jobs set locked_at = now() - interval '2 hours', locked_by = 'worker-gone' where task = 'stuck_task'`;
  await addJob(db, 'failed_task', {}, { maxAttempts: 1 });
  await db`update jobs set attempts = 1 where task = 'failed_task'`;
  const series = await measure();
  assert.equal(series.get('quarry_jobs{kind="nobodys_task",state="ready"}'), 1);
  assert.equal(series.get('quarry_jobs{kind="nobodys_task",state="scheduled"}'), 1);
  assert.ok((series.get('quarry_jobs_oldest_seconds{kind="nobodys_task",state="ready"}') ?? 0) >= 3_600);
  assert.equal(series.get('quarry_jobs{kind="failed_task",state="failed"}'), 1);
  // The sweep for workers that died may have taken the job back meanwhile.
  const stuck = ['running', 'ready'].map((state) => series.get(`quarry_jobs{kind="stuck_task",state="${state}"}`) ?? 0);
  assert.deepEqual(stuck.sort(), [0, 1]);
});

test('a job that was active when its process died is counted as crashed', async () => {
  await addJob(db, 'orphaned_task', {});
  await db`update jobs set locked_at = now(), locked_by = 'worker-dead' where task = 'orphaned_task'`;
  const name = 'quarry_jobs_crashed_total{task="orphaned_task"}';
  // The second check that misses the process releases its jobs.
  while (readSeries((await api('GET', '/metrics')).text).get(name) !== 1)
    await new Promise((resolve) => setTimeout(resolve, 100));
});

test('active work is shown by state, with the age of the oldest', async () => {
  const before = await measure();
  assert.equal(before.get('quarry_work{kind="extraction",state="running"}'), undefined);
  await db`insert into extractions (app_id, id, sandbox_id, kind, state, destination_kind, created_at)
    values (${app.app.uuid}, ${newUuid()}, ${app.sandboxUuid}, 'site', 'running', 'storage', now() - interval '1 hour')`;
  const series = await measure();
  assert.equal(series.get('quarry_work{kind="extraction",state="running"}'), 1);
  assert.ok((series.get('quarry_work_oldest_seconds{kind="extraction",state="running"}') ?? 0) >= 3_600);
});

test('workers, the connection pool, parsers and streams have metrics', async () => {
  const series = await measure();
  assert.equal(series.get('quarry_workers'), 1);
  assert.equal(series.get('quarry_database_up'), 1);
  assert.equal(series.get('quarry_database_pool_size'), 6);
  assert.ok((series.get('quarry_database_wait_seconds') ?? -1) >= 0);
  assert.ok([...series.keys()].some((name) => name.startsWith('quarry_database_connections{kind="quarry",')));
  assert.equal(series.get('quarry_parser_waiting'), 0);
  assert.equal(series.get('quarry_parser_processes_max'), 1);
  assert.equal(series.get('quarry_streams_open'), 0);
});

test('requests are counted by route and class of status, errors by code, and no label names a tenant', async () => {
  const org = await api<{ id: string }>('POST', '/api/v1/orgs', { key: app.secretKey, body: { name: 'Org' } });
  await api('GET', `/api/v1/orgs/${org.body.id}`, { key: app.secretKey });
  await api('GET', '/api/v1/orgs/org_nothing', { key: app.secretKey });
  const { text } = await api('GET', '/metrics');
  const series = readSeries(text);
  const route = '/api/v1/orgs/:org';
  const request = (status: string) =>
    series.get(`quarry_http_request_duration_seconds_count{method="GET",route="${route}",status="${status}"}`);
  assert.deepEqual([request('2xx'), request('4xx')], [1, 1]);
  assert.equal(series.get(`quarry_http_errors_total{method="GET",route="${route}",code="not_found"}`), 1);
  for (const secret of [org.body.id, app.app.id, app.app.uuid, app.secretKey]) assert.ok(!text.includes(secret));
});

test('deliveries, requests to sites, searches, contents of files and lanes of jobs are counted', async () => {
  const key = app.secretKey;
  const site = await startSite({ '/hook': htmlPage('Received') });
  try {
    for (const path of ['/hook', '/missing']) {
      const body = { url: `${site.origin}${path}`, events: ['order.paid'] };
      assert.equal((await api('POST', '/api/v1/webhooks', { key, body })).status, 201);
    }
    assert.equal((await api('POST', '/api/v1/events', { key, body: { name: 'order.paid' } })).status, 201);
    const user = await provision.user(app);
    const body = { type: 'knowledge/documents', user: user.id };
    const source = await api<{ id: string }>('POST', '/api/v1/knowledge_sources', { key, body });
    const search = { query: 'anything', mode: 'fulltext' };
    await api('POST', `/api/v1/knowledge_sources/${source.body.id}/search`, { key, body: search });
    await api('POST', '/api/v1/files/uploads', { key, body: 'Text.', headers: { 'content-type': 'text/plain' } });

    const read = async () => readSeries((await api('GET', '/metrics')).text);
    const attempts = (series: Map<string, number>, outcome: string) =>
      series.get(`quarry_webhook_attempt_duration_seconds_count{outcome="${outcome}"}`) ?? 0;
    await until(async () => {
      const series = await read();
      return attempts(series, 'delivered') === 1 && attempts(series, 'refused') >= 1;
    });
    const series = await read();
    const atLeastOne = [
      'quarry_fetch_duration_seconds_count{outcome="2xx"}',
      'quarry_fetch_duration_seconds_count{outcome="4xx"}',
      'quarry_search_duration_seconds_count{mode="fulltext"}',
      'quarry_blob_duration_seconds_count{store="disk",operation="put",outcome="succeeded"}',
    ];
    for (const name of atLeastOne) assert.ok((series.get(name) ?? 0) >= 1, name);
    const now = await measure();
    // The refused delivery waits for its next attempt, which may be due by now.
    const waiting = ['due', 'scheduled'].map(
      (state) => now.get(`quarry_work{kind="webhook_delivery",state="${state}"}`) ?? 0,
    );
    assert.deepEqual(waiting.sort(), [0, 1]);
    // The job that no process takes.
    assert.ok((now.get('quarry_job_lanes') ?? 0) >= 1 && (now.get('quarry_job_lane_largest') ?? 0) >= 1);
  } finally {
    await site.close();
  }
});

test('scrapes query the database once in a few seconds, however frequent they are', async () => {
  const metrics = new Metrics();
  let looks = 0;
  const counting = new Proxy(services.db, {
    get: (target, name) => {
      if (name === 'begin') looks += 1;
      return Reflect.get(target, name);
    },
  });
  registerMonitoring({ ...services, db: counting, metrics, databasePoolSize: 6 });
  await Promise.all([metrics.registry.metrics(), metrics.registry.metrics()]);
  await metrics.registry.metrics();
  assert.equal(looks, 1);
});

test('with a token in the settings, /metrics requires it', async () => {
  const token = 'metrics-token-of-this-test';
  const closed = await startTestServer({ env: { QUARRY_METRICS_TOKEN: token }, beside: server });
  try {
    assert.equal((await closed.api('GET', '/metrics')).status, 401);
    assert.equal((await closed.api('GET', '/metrics', { token: 'another-token' })).status, 401);
    assert.equal((await closed.api('GET', '/metrics', { key: app.secretKey })).status, 401);
    assert.equal((await closed.api('GET', '/metrics', { token })).status, 200);
  } finally {
    await closed.close();
  }
});

test('/metrics responds while the database does not', async () => {
  const lost = await startTestServer({ beside: server, logLevel: 'fatal' });
  try {
    await lost.services.db.end({ timeout: 0 });
    const { status, text } = await lost.api('GET', '/metrics');
    assert.equal(status, 200);
    assert.equal(readSeries(text).get('quarry_database_up'), 0);
  } finally {
    await lost.close();
  }
});
