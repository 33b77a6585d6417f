import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ManualClock } from '../../support/manual-clock.ts';
import { type ApiOptions, type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';
import { startWatch } from '../../support/speed.ts';

const perMinute = 120;
const clock = new ManualClock();
const env = {
  QUARRY_RATE_READS: String(perMinute),
  QUARRY_RATE_WRITES: '2',
  QUARRY_RATE_SEARCH: '0',
  QUARRY_JOB_WORKERS: '0',
};
const first = await startTestServer({ env, clock });
const second = await startTestServer({ env, clock, beside: first });
after(async () => {
  await second.close();
  await first.close();
});
const { provision, db } = first;
const app = await provision.app();

const read = (server: TestServer, options: ApiOptions) => server.api<ErrorBody>('GET', '/api/v1/kv', options);

/** Reads through both servers until `count` answers are in, and how many of them passed. */
async function readMany(count: number, options: ApiOptions) {
  const watch = startWatch();
  const statuses: number[] = [];
  for (let sent = 0; sent < count; sent += 30)
    await Promise.all(
      Array.from({ length: 30 }, async (_, i) => {
        statuses.push((await read(i % 2 === 0 ? first : second, options)).status);
      }),
    );
  const filled = (watch.passedMs() / 60_000) * perMinute;
  assert.ok(statuses.every((status) => status === 200 || status === 429));
  return { passed: statuses.filter((status) => status === 200).length, filled };
}

/** As if so much time had passed for everybody. */
async function advanceClock(ms: number): Promise<void> {
  await db`update rate_budgets set filled_at = filled_at - make_interval(secs => ${ms / 1_000})`;
  clock.advance(ms);
}

test('two processes together let a credential pass as often as the limit says, and no more than their credit beyond', async () => {
  const user = await provision.user(app);
  const { passed, filled } = await readMany(3 * perMinute, { token: user.token });
  assert.ok(passed >= perMinute, `${passed} passed`);
  assert.ok(passed <= perMinute * 1.02 + filled + 2, `${passed} passed while ${filled} filled in`);
});

test('429 names the group, the limit and when to retry, and the budget fills evenly', async () => {
  const user = await provision.user(app);
  const options = { token: user.token };
  await readMany(2 * perMinute, options);
  const refused = await read(first, options);
  assert.deepEqual([refused.status, refused.body.error.code], [429, 'rate_limited']);
  assert.deepEqual(refused.body.error.details, { group: 'reads', limit: perMinute, window_seconds: 60 });
  assert.equal(refused.headers.get('ratelimit-limit'), String(perMinute));
  assert.equal(refused.headers.get('ratelimit-remaining'), '0');
  assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]\d?$/);

  await advanceClock(30_000);
  const half = await readMany(2 * perMinute, options);
  assert.ok(half.passed >= perMinute / 2 - 3, `${half.passed} passed after half a minute`);
  assert.ok(half.passed <= perMinute / 2 + half.filled + 6, `${half.passed} passed after half a minute`);
});

test('each credential has its own budget: a second user, the keys and the developer are not affected', async () => {
  const [tired, fresh] = [await provision.user(app), await provision.user(app)];
  await readMany(2 * perMinute, { token: tired.token });
  assert.equal((await read(first, { token: tired.token })).status, 429);
  assert.equal((await read(first, { token: fresh.token })).status, 200);
  assert.equal((await read(first, { key: app.secretKey })).status, 200);
  const developer = { token: app.developerToken, headers: { 'x-app': app.app.id } };
  assert.equal((await read(first, developer)).status, 200);
});

test('another token of the same user does not circumvent the limit', async () => {
  const user = await provision.user(app);
  await readMany(2 * perMinute, { token: user.token });
  const minted = await first.api<{ token: string }>('POST', `/api/v1/users/${user.id}/tokens`, {
    key: app.secretKey,
    body: { type: 'personal' },
  });
  assert.equal(minted.status, 201);
  assert.equal((await read(first, { token: minted.body.token })).status, 429);
});

test('groups are counted separately, and 0 means no limit', async () => {
  const user = await provision.user(app);
  const put = () => first.api('PUT', '/api/v1/kv/key', { token: user.token, body: { value: 'v' } });
  assert.deepEqual([(await put()).status, (await put()).status, (await put()).status], [200, 200, 429]);
  assert.equal((await read(first, { token: user.token })).status, 200);
  const source = `cso_${'0'.repeat(22)}`;
  for (let i = 0; i < 5; i++) {
    const search = { token: user.token, body: { query: 'text' } };
    assert.equal((await first.api('POST', `/api/v1/knowledge_sources/${source}/search`, search)).status, 404);
  }
});

test('routes without credentials are not limited', async () => {
  for (let i = 0; i < 2 * perMinute; i += 40)
    await Promise.all(
      Array.from({ length: 40 }, async () => assert.equal((await first.api('GET', '/healthz')).status, 200)),
    );
});

test('requests pass while the budgets cannot be charged, each process by its own count', async () => {
  const user = await provision.user(app);
  await db`alter table rate_budgets rename to rate_budgets_away`;
  try {
    let passed = 0;
    for (let i = 0; i < 2 * perMinute; i += 20)
      await Promise.all(
        Array.from({ length: 20 }, async () => {
          if ((await read(first, { token: user.token })).status === 200) passed += 1;
        }),
      );
    assert.ok(passed >= perMinute && passed <= perMinute + 2, `${passed} passed`);
  } finally {
    await db`alter table rate_budgets_away rename to rate_budgets`;
  }
});
