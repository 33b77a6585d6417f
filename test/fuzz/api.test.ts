import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, test } from 'node:test';
import { startSite } from '../support/fixture-site.ts';
import { startLanguageModel } from '../support/language-model.ts';
import { startProvider } from '../support/oidc-provider.ts';
import { startTestServer } from '../support/server.ts';
import { sweepApi } from './api-sweep.ts';

/** Sends one of every `oneOf` requests; each seed selects others. `npm run fuzz -- --api` sends them all. */
const oneOf = Number(process.env.FUZZ_API_ONE_OF ?? 120);
const seed = Number(process.env.FUZZ_SEED ?? randomInt(2 ** 31));

const model = await startLanguageModel();
const server = await startTestServer({
  logLevel: 'silent',
  env: {
    ...{ QUARRY_JOB_WORKERS: '2', QUARRY_STREAM_SECONDS: '1', QUARRY_FETCH_ALLOW: '127.0.0.0/8' },
    ...{ QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'test', QUARRY_MCP_OAUTH: 'true' },
  },
});
const site = await startSite({ '/hook': 'ok' });
const provider = await startProvider({
  redirectUris: [`${server.baseUrl}/console/oidc/callback`, 'http://127.0.0.1:9/callback'],
});
after(async () => {
  await server.close();
  await site.close();
  await provider.close();
  await model.close();
});

test('for any value of a parameter or member, no request ends in a 5xx or hangs, and every response fits its schema', async (context) => {
  context.diagnostic(`repeat with FUZZ_SEED=${seed} FUZZ_API_ONE_OF=${oneOf}`);
  const report = await sweepApi({ server, outside: { origin: site.origin, model: model.url, provider }, oneOf, seed });
  context.diagnostic(`${report.requests} of ${report.possible} requests, slowest ${report.slowestMs} ms`);
  console.log(JSON.stringify(report, undefined, 2));
  assert.deepEqual(report.problems, []);
  assert.deepEqual(report.neverSucceeded, []);
  assert.ok(report.requests > 1_000);
});
