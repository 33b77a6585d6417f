import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startTestServer } from '../support/server.ts';
import { sweepApi } from './api-sweep.ts';

/** Sends one of every so many requests; `npm run fuzz -- --api` sends them all. */
const oneOf = Number(process.env.FUZZ_API_ONE_OF ?? 20);

const server = await startTestServer({
  logLevel: 'silent',
  env: { QUARRY_JOB_WORKERS: '2', QUARRY_STREAM_SECONDS: '1' },
});
after(() => server.close());

test('for any value of a parameter or member, no request ends in a 5xx or hangs, and every response fits its schema', async () => {
  const report = await sweepApi({ server, oneOf });
  console.log(JSON.stringify(report, undefined, 2));
  assert.deepEqual(report.problems, []);
  assert.ok(report.requests > 1_000);
});
