import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after } from 'node:test';
import { startSite } from '../support/fixture-site.ts';
import { longestTurnMs } from '../support/loop-meter.ts';
import { startProvider } from '../support/oidc-provider.ts';
import { startTestServer } from '../support/server.ts';
import { speedTest } from '../support/speed.ts';
import { judge, measureComplexity } from './complexity.ts';
import { createStories } from './complexity-stored.ts';

/** Measures one of every `oneOf` pairs of requests; each seed selects others. */
const oneOf = Number(process.env.COMPLEXITY_ONE_OF ?? 40);
const seed = Number(process.env.FUZZ_SEED ?? randomInt(2 ** 31));

speedTest('a function that takes the square of its text is found, and one that only takes long', async () => {
  const turnOf = (work: () => void) => () => longestTurnMs(async () => work());
  const square = (length: number) => () => {
    const seen: number[] = [];
    for (let index = 0; index < length; index++) if (!seen.includes(index)) seen.push(index);
  };
  const processorMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  };
  const busy = (ms: number) => () => {
    for (const start = processorMs(); processorMs() - start < ms; );
  };
  assert.match((await judge(turnOf(square(5_000)), turnOf(square(20_000)))).problem ?? '', /four times/);
  assert.match((await judge(turnOf(busy(20)), turnOf(busy(80)))).problem ?? '', /four times/);
  assert.equal((await judge(turnOf(busy(1)), turnOf(busy(4)))).problem, undefined);
});

speedTest('no request keeps the event loop busy, or takes more than its size', async (context) => {
  const server = await startTestServer({
    logLevel: 'silent',
    env: {
      QUARRY_JOB_WORKERS: '2',
      QUARRY_STREAM_SECONDS: '1',
      QUARRY_FETCH_ALLOW: '127.0.0.0/8',
      QUARRY_MCP_OAUTH: 'true',
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
  });
  context.diagnostic(`repeat with FUZZ_SEED=${seed} COMPLEXITY_ONE_OF=${oneOf}`);
  const outside = { origin: site.origin, provider };
  const { pairs, possible, slowestMs, slowest, statuses, problems } = await measureComplexity({
    server,
    outside,
    oneOf,
    seed,
  });
  context.diagnostic(`${pairs} of ${possible} pairs; the longest turn was ${slowestMs} ms: ${slowest}`);
  context.diagnostic(JSON.stringify(statuses));
  assert.deepEqual(problems, []);
  assert.ok(pairs > 50 || process.env.COMPLEXITY_ONLY !== undefined);
});

speedTest('no stored text keeps the event loop busy when it is read later', async (context) => {
  const server = await startTestServer({ logLevel: 'silent' });
  after(() => server.close());
  const problems: string[] = [];
  let [slowestMs, slowest] = [0, ''];
  for (const { name, run } of await createStories(server)) {
    await run(1);
    const { problem, largeMs } = await judge(
      () => longestTurnMs(() => run(1)),
      () => longestTurnMs(() => run(4)),
    );
    if (largeMs > slowestMs) [slowestMs, slowest] = [Math.round(largeMs), name];
    if (problem !== undefined) problems.push(`${name}: ${problem}`);
  }
  context.diagnostic(`the longest turn was ${slowestMs} ms: ${slowest}`);
  assert.deepEqual(problems, []);
});
