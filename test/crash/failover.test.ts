import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { checkLedger, createFixture, Ledger, startActors } from '../support/crash-ledger.ts';
import { EventStream } from '../support/event-stream.ts';
import { startPostgresPair } from '../support/postgres-pair.ts';
import { sendRequest } from '../support/request.ts';
import { type ServedProcess, startServe } from '../support/serve.ts';
import { startWatch } from '../support/speed.ts';
import { until } from '../support/until.ts';

/*
 * The primary is killed under mixed load and its synchronous standby is promoted.
 *   CRASH_FAILOVERS=10 node test/run.ts test/crash/failover.test.ts
 */
const failovers = Number(process.env.CRASH_FAILOVERS ?? 1);
/** How long the load runs before the kill, and how long nobody notices that the primary is gone. */
const acknowledgedMin = 40;
const outageMs = 1_000;
const reconnectMsMax = 10_000;

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-failover-'));
const secret = '0f7c1a94d7c35e28b0f4a1c96d82e735';
const running: { close(): Promise<void> }[] = [];
after(async () => {
  await Promise.all(running.map((each) => each.close()));
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
});

for (let round = 1; round <= failovers; round++)
  test(`a killed primary costs only retries, and every process follows the promoted standby (${round})`, async (context) => {
    const pair = await startPostgresPair({ synchronous: true });
    const processes: ServedProcess[] = [];
    running.push({
      async close() {
        await Promise.all(processes.map((each) => each.kill()));
        await pair.close();
      },
    });
    const settings = (role: string): Record<string, string> => ({
      DATABASE_URL: `${pair.url}?target_session_attrs=read-write`,
      QUARRY_DATA_DIR: join(dataDir, String(round)),
      QUARRY_SECRET: secret,
      QUARRY_LOG_LEVEL: 'silent',
      QUARRY_PARSE_WORKERS: '1',
      QUARRY_DB_POOL: '4',
      ...(role === 'worker' ? { QUARRY_PUBLIC_URL: processes[0]?.baseUrl ?? '' } : {}),
    });
    for (const role of ['http', 'http', 'worker']) processes.push(await startServe(settings(role), ['--only', role]));
    const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, String(round), 'credentials.json'), 'utf8'));
    const [first, second] = processes as [ServedProcess, ServedProcess];
    let turn = 0;
    const connection = () => ({ baseUrl: (turn++ % 2 === 0 ? first : second).baseUrl, key: String(key) });
    const fixture = await createFixture(connection());
    const ledger = new Ledger();
    const watch = (lastId?: number) =>
      EventStream.open(`${second.baseUrl}/api/v1/kv_watch?user=${fixture.user}&prefix=after`, {
        'x-api-key': key,
        ...(lastId === undefined ? {} : { 'last-event-id': String(lastId) }),
      });
    let stream = await watch();
    let isOver = false;
    running.push({
      async close() {
        isOver = true;
      },
    });
    const actors = startActors(connection, fixture, ledger, () => isOver).finally(() => {
      isOver = true;
    });
    const reach = (count: number) => Promise.race([actors, until(() => isOver || ledger.acknowledged >= count)]);

    await reach(acknowledgedMin);
    await pair.primary.kill();
    await wait(outageMs);
    const refused = await Promise.all(
      [first, second].map(({ baseUrl }) => sendRequest(baseUrl, 'GET', `/api/v1/kv?user=${fixture.user}`, { key })),
    );
    for (const { status, headers, text } of refused)
      assert.deepEqual([status, headers.get('retry-after')], [503, '1'], text);
    const before = ledger.acknowledged;
    await pair.standby.db`select pg_promote()`;
    const promoted = startWatch();
    await Promise.all(processes.map((each) => until(() => isReady(each))));
    context.diagnostic(`every process is ready ${Math.round(promoted.passedMs())} ms after the promotion`);
    promoted.within(reconnectMsMax, 'The reconnection');

    // A watcher that reconnects as browsers do sees the changes.
    const written = await sendRequest(first.baseUrl, 'PUT', '/api/v1/kv/after', {
      ...{ key, body: { user: fixture.user, value: 'the failover' } },
    });
    assert.equal(written.status, 200, written.text);
    await until(async () => {
      const event = await stream.next();
      if (event === undefined) stream = await watch(stream.lastId);
      return event?.data.key === 'after';
    });
    promoted.within(reconnectMsMax, 'The reconnection of the watcher');
    stream.close();

    await reach(before + acknowledgedMin);
    isOver = true;
    await actors;
    await checkLedger(connection(), fixture, ledger);
    context.diagnostic(`${ledger.acknowledged} acknowledged writes, ${ledger.retries} retries`);
    assert.ok(ledger.retries > 0);
    for (const each of processes.toReversed()) assert.equal(await each.stop(), 0);
  });

async function isReady({ baseUrl }: ServedProcess): Promise<boolean> {
  return (await fetch(`${baseUrl}/readyz`)).status === 200;
}
