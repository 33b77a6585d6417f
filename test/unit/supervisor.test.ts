import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { Metrics } from '../../src/http/metrics.ts';
import { FleetMetrics } from '../../src/supervisor/fleet-metrics.ts';
import { forwardLines } from '../../src/supervisor/lines.ts';
import { planProcesses } from '../../src/supervisor/plan.ts';

const plan = (env: Record<string, string>, cores: number) => planProcesses(readConfig(env), cores);

test('one process up to two cores, then one per core for requests and one for jobs for every four', () => {
  assert.deepEqual(plan({}, 1), { all: 1, http: 0, worker: 0 });
  assert.deepEqual(plan({}, 2), { all: 1, http: 0, worker: 0 });
  assert.deepEqual(plan({}, 4), { all: 0, http: 4, worker: 1 });
  assert.deepEqual(plan({}, 16), { all: 0, http: 16, worker: 4 });
  assert.deepEqual(plan({ QUARRY_PROCESSES: '1' }, 16), { all: 1, http: 0, worker: 0 });
  assert.deepEqual(plan({ QUARRY_PROCESSES: '3' }, 2), { all: 0, http: 3, worker: 1 });
  assert.deepEqual(plan({ QUARRY_JOB_WORKERS: '0' }, 4), { all: 0, http: 4, worker: 0 });
});

test('a role that is set is one process, unless a number of them is set', () => {
  const external = { DATABASE_URL: 'postgres://a', QUARRY_SECRET: '6b1f0a94d7c35e28b0f4a1c96d82e735' };
  assert.deepEqual(plan({ ...external, QUARRY_ROLE: 'http' }, 16), { all: 0, http: 1, worker: 0 });
  assert.deepEqual(plan({ ...external, QUARRY_ROLE: 'http', QUARRY_PROCESSES: '4' }, 16), {
    all: 0,
    http: 4,
    worker: 0,
  });
});

test('a wrong number of processes is refused by name', () => {
  for (const wrong of ['0', '65', 'all', '1.5'])
    assert.throws(() => readConfig({ QUARRY_PROCESSES: wrong }), /QUARRY_PROCESSES must be auto or a whole number/);
});

test('the lines of a log stay whole', async () => {
  const from = new PassThrough();
  const written: string[] = [];
  forwardLines(from, (lines) => written.push(lines.toString()));
  for (const chunk of ['{"a":', '1}\n{"b"', ':2}\n', 'killed']) from.write(chunk);
  from.end();
  await finished(from);
  assert.deepEqual(written, ['{"a":1}\n', '{"b":2}\n', 'killed\n']);
});

test('metrics of several processes add up, each in its own way, and counters outlive their process', async () => {
  const fleet = new FleetMetrics();
  for (const pid of [1, 2]) {
    const metrics = new Metrics();
    metrics.counter('requests_total', 'Requests').inc(pid);
    metrics.gauge('open', 'Open', () => pid);
    metrics.gauge('rows', 'Rows', () => 7, 'first');
    metrics.gauge('up', 'Up', () => pid - 1, 'min');
    metrics.observeRequest('GET', '/a', 200, pid);
    fleet.keep(pid, await metrics.registry.getMetricsAsJSON());
  }
  const read = async (name: string) => Number(new RegExp(`^${name} (.*)$`, 'm').exec(await fleet.text())?.[1]);
  const requestSeconds = 'quarry_http_request_duration_seconds_sum\\{method="GET",route="/a",status="2xx"\\}';
  assert.deepEqual(
    [
      await read('requests_total'),
      await read('open'),
      await read('rows'),
      await read('up'),
      await read(requestSeconds),
    ],
    [3, 3, 7, 0, 3],
  );
  await fleet.end(2);
  assert.deepEqual([await read('requests_total'), await read('open'), await read(requestSeconds)], [3, 1, 3]);
});
