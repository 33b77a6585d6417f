import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { sendRequest, startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* Three processes of one installation: the clock of one is right, the others are an hour off. */
const hourMs = 3_660_000;
const clockAt = (offsetMs: number) => ({ now: () => new Date(Date.now() + offsetMs) });
const right = await startTestServer();
const ahead = await startTestServer({ beside: right, clock: clockAt(hourMs) });
const behind = await startTestServer({ beside: right, clock: clockAt(-hourMs) });
after(async () => {
  await ahead.close();
  await behind.close();
  await right.close();
});
const app = await right.provision.app();
const user = await right.provision.user(app);
const key = app.secretKey;
const processes = [right, ahead, behind];

test('a process whose clock is an hour off loses nothing that has a lifetime', async () => {
  for (const [index, { baseUrl }] of processes.entries()) {
    const body = { user: user.id, value: 'kept', ttl_seconds: 7_200 };
    const put = await sendRequest(baseUrl, 'PUT', `/api/v1/kv/long-${index}`, { key, body });
    assert.equal(put.status, 200, put.text);
    const short = { user: user.id, value: 'kept', ttl_seconds: 600 };
    assert.equal((await sendRequest(baseUrl, 'PUT', `/api/v1/kv/short-${index}`, { key, body: short })).status, 200);
  }
  for (const { baseUrl } of processes)
    for (const name of processes.keys())
      for (const kind of ['long', 'short']) {
        const found = await sendRequest(baseUrl, 'GET', `/api/v1/kv/${kind}-${name}?user=${user.id}`, { key });
        assert.equal(
          found.status,
          200,
          `${kind}-${name} on ${processes.findIndex((each) => each.baseUrl === baseUrl)}`,
        );
      }
});

test('waiting runs end, whichever process takes them', async () => {
  const client = new AutomationsClient(right, app);
  const { id } = await client.createAutomation({
    workflow: graphOf(
      { id: 'start', kind: 'trigger', on_success: 'nap' },
      { id: 'nap', kind: 'wait', seconds: 0.2, on_success: 'count' },
      { id: 'count', kind: 'kv_set', user: user.id, key: 'run/{{$run.id}}', value: 'done', on_success: 'end' },
      { id: 'end', kind: 'complete', result: {} },
    ),
  });
  const runs: string[] = [];
  for (let number = 0; number < 6; number++) runs.push((await client.invoke(id)).id);
  for (const run of runs)
    await until(async () => {
      const { body } = await right.api<{ status: string }>('GET', `/api/v1/automation_runs/${run}`, { key });
      assert.ok(!['failed', 'cancelled'].includes(body.status), JSON.stringify(body));
      return body.status === 'completed';
    });
  for (const run of runs) {
    const noted = await right.api('GET', `/api/v1/kv/${encodeURIComponent(`run/${run}`)}?user=${user.id}`, { key });
    assert.equal(noted.status, 200);
  }
});

test('a token or a link is valid or expired by the clock of the process that reads it, never an error', async () => {
  const file = await right.api<{ url: string }>('POST', '/api/v1/files', {
    key,
    body: { filename: 'a.txt', content_type: 'text/plain', data: 'YQ==' },
  });
  const { pathname, search } = new URL(file.body.url);
  const read = async (baseUrl: string) => [
    (await sendRequest(baseUrl, 'GET', '/api/v1/users/me', { token: user.token })).status,
    (await sendRequest(baseUrl, 'GET', pathname + search)).status,
  ];
  assert.deepEqual(await read(right.baseUrl), [200, 200]);
  assert.deepEqual(await read(behind.baseUrl), [200, 200]);
  const [token, link] = await read(ahead.baseUrl);
  assert.equal(token, 401);
  assert.ok(link !== undefined && link >= 400 && link < 500, String(link));
});
