import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, mock, test } from 'node:test';
import { checkTracing } from '../../../src/cli/operate/doctor-surroundings.ts';
import { readConfig } from '../../../src/config/config.ts';
import { createFetcher } from '../../../src/content/fetch/guarded-fetch.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { startTracing } from '../../../src/tracing/start.ts';
import { isTracing, traceFrom } from '../../../src/tracing/trace.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { waitForExtraction } from '../../support/extractions.ts';
import { startTestServer } from '../../support/server.ts';
import { startTraceCollector } from '../../support/trace-collector.ts';

/*
 * One server records everything below and sends the rest when it closes; the tests look at what has arrived then.
 */
const traceOf = (digit: string) => digit.repeat(32);
const traceparent = (digit: string) => `00-${traceOf(digit)}-${'b'.repeat(16)}-01`;
const secret = 'swordfish-42';
const collector = await startTraceCollector();
after(() => collector.close());

const seen: { path: string; traceparent: string | undefined }[] = [];
const site = createServer((request, response) => {
  seen.push({ path: request.url ?? '', traceparent: request.headers.traceparent as string | undefined });
  response.writeHead(request.url === '/robots.txt' ? 404 : 200, { 'content-type': 'text/html' });
  response.end(`<title>A page</title><main><h1>A page</h1><p>${'Text of the page. '.repeat(40)}</p></main>`);
});
await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
after(() => {
  site.closeAllConnections();
  site.close();
});
const { port } = site.address() as AddressInfo;
const env = {
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20collector-key',
};
const logged: { requestId?: string; task?: string; trace_id?: string; span_id?: string; msg?: string }[] = [];

before(async () => {
  const write = mock.method(process.stderr, 'write', (text: string) => {
    for (const line of text.split('\n')) if (line.startsWith('{')) logged.push(JSON.parse(line));
    return true;
  });
  const server = await startTestServer({ logLevel: 'info', env: { ...env, QUARRY_FETCH_ALLOW: '127.0.0.1' } });
  try {
    const app = await server.provision.app();
    const user = await server.provision.user(app);
    const client = new AutomationsClient(server, app);
    await client.call('PUT', '/secrets/TOKEN', { value: secret });
    const send = (method: string, path: string, digit: string, body?: unknown, headers = {}) =>
      server.api<{ id: string }>(method, path, {
        ...{ key: app.secretKey, body },
        headers: { traceparent: traceparent(digit), ...headers },
      });

    await send('PUT', `/api/v1/kv/${secret}`, '1', { value: secret, user: user.id });
    const { id } = await client.createAutomation({
      workflow: graphOf(
        { id: 'wait', kind: 'wait', seconds: 1.5, on_success: 'call' },
        {
          ...{ id: 'call', kind: 'http_request', method: 'GET', url: `http://127.0.0.1:${port}/hook?key=${secret}` },
          ...{ headers: { authorization: 'Bearer {{$secrets.TOKEN}}' } },
        },
      ),
    });
    const run = await send('POST', `/api/v1/automations/${id}/invoke`, '2', { payload: { secret } });
    assert.equal(run.status, 200, run.text);
    assert.equal((await client.waitForEnd(run.body.id)).status, 'completed');

    const url = `http://127.0.0.1:${port}/page?key=${secret}`;
    const body = { destination_kind: 'storage', destination_path: 'out', mode: 'site', url, max_pages: 1 };
    const extraction = await send('POST', '/api/v1/extractions', '3', body);
    assert.equal(extraction.status, 202, extraction.text);
    await waitForExtraction(server.baseUrl, app.secretKey, extraction.body.id);

    await send('GET', '/api/v1/automations', '4', undefined, { 'x-request-id': 'traced-request' });
    await Promise.all(['5', '6'].map((digit) => send('GET', `/api/v1/kv/${secret}?user=${user.id}`, digit)));

    const fetcher = createFetcher({ allow: ['127.0.0.1', 'own.test'], resolve: async () => ['127.0.0.1'] });
    await traceFrom('fetching', { continues: traceparent('7') }, async () => {
      for (const host of ['own.test', 'stranger.test'])
        await (await fetcher.fetch(`http://${host}:${port}/from-${host}`)).bytes();
    });
    await fetcher.close();
  } finally {
    await server.close();
    write.mock.restore();
  }
});

test('a request, its statements, the job, the fetches and the parser are one trace', () => {
  const trace = traceOf('3');
  const request = collector.find(/^POST .*\/extractions$/, trace);
  assert.equal(request.parentSpanId, 'b'.repeat(16));
  assert.equal(request.attributes['http.response.status_code'], 202);
  const root = request.name;
  assert.ok(collector.pathOf(collector.find(/^SQL insert into/, trace)).includes(root));
  assert.deepEqual(collector.pathOf(collector.find(/^job crawl$/, trace)).at(-1), root);
  const fetched = collector.find(/^fetch GET$/, trace);
  assert.deepEqual([collector.pathOf(fetched).includes('job crawl'), collector.pathOf(fetched).at(-1)], [true, root]);
  assert.deepEqual(fetched.attributes['server.address'], '127.0.0.1');
  const parsed = collector.find(/^parser (?:page|parse)$/, trace);
  assert.deepEqual([collector.pathOf(parsed).includes('job crawl'), collector.pathOf(parsed).at(-1)], [true, root]);
});

test('a run stays in the trace of its invocation, across the jobs that advance it', () => {
  const trace = traceOf('2');
  const root = collector.find(/^POST .*\/invoke$/, trace).name;
  const [first, ...later] = collector.spans.filter(({ name, traceId }) => name === 'run' && traceId === trace);
  assert.ok(first && later.length > 0, 'the run was advanced before and after its wait');
  assert.deepEqual(collector.pathOf(first), ['run', 'job advance_run', root]);
  const entries = [first, ...later].flatMap(({ events }) => events.map(({ name }) => name));
  for (const entry of ['run_started', 'timer_started', 'node_completed', 'run_completed'])
    assert.ok(entries.includes(entry), entry);
  const path = collector.pathOf(collector.find(/^fetch GET$/, trace));
  assert.deepEqual(path.slice(0, 3), ['fetch GET', 'node http_request', 'run']);
  assert.equal(seen.find(({ path }) => path.startsWith('/hook'))?.traceparent?.slice(3, 35), trace);
});

test('requests that share a statement each show their wait for it', () => {
  for (const digit of ['5', '6'])
    assert.match(collector.pathOf(collector.find(/^shared statement$/, traceOf(digit))).at(-1) ?? '', /^GET .*\/kv/);
});

test('only hosts that the operator named receive the trace', () => {
  const sent = (host: string) => seen.find(({ path }) => path === `/from-${host}`);
  assert.equal(sent('own.test')?.traceparent?.slice(3, 35), traceOf('7'));
  assert.ok(sent('stranger.test'));
  assert.equal(sent('stranger.test')?.traceparent, undefined);
});

test('log lines of requests and jobs name the trace', () => {
  assert.equal(logged.find(({ requestId }) => requestId === 'traced-request')?.trace_id, traceOf('4'));
  const request = collector.find(/^GET .*\/automations$/, traceOf('4'));
  assert.equal(logged.find(({ requestId }) => requestId === 'traced-request')?.span_id, request.spanId);
});

test('no key, value, path, query or secret of a caller is in a span', () => {
  assert.ok(collector.text().length > 10_000);
  assert.doesNotMatch(collector.text(), new RegExp(secret));
  assert.doesNotMatch(collector.text(), /sk_|collector-key|swordfish/);
  assert.ok(collector.authorizations.every((header) => header === 'Bearer collector-key'));
});

test('tracing is off without the setting, and `quarry doctor` says whether the collector accepts it', async () => {
  assert.equal(isTracing(), false);
  const log = createLogger('silent');
  assert.equal(startTracing(readConfig({}), log), undefined);
  const wrong = readConfig({ ...env, OTEL_EXPORTER_OTLP_HEADERS: 'no pair' });
  assert.throws(() => startTracing(wrong, log), /OTEL_EXPORTER_OTLP_HEADERS must be name=value pairs/);
  assert.throws(() => readConfig({ OTEL_TRACES_SAMPLER_ARG: '1.5' }), /OTEL_TRACES_SAMPLER_ARG must be a number/);

  assert.match((await checkTracing(readConfig({}))).message, /^off/);
  assert.deepEqual(await checkTracing(readConfig(env)), {
    level: 'ok',
    message: `on; the collector at ${new URL(collector.url).host} accepts traces`,
  });
  const nowhere = await checkTracing(readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/elsewhere` }));
  assert.deepEqual([nowhere.level, /does not accept/.test(nowhere.message)], ['warn', true]);
});

test('a sample of no traces sends nothing, and the work is the same', async () => {
  const before = collector.spans.length;
  const stop = startTracing(readConfig({ ...env, OTEL_TRACES_SAMPLER_ARG: '0' }), createLogger('silent'));
  // The caller's own wish to record does not count.
  assert.equal(await traceFrom('sampled', { continues: traceparent('8') }, async () => 7), 7);
  await stop?.();
  assert.equal(collector.spans.length, before);
});
