import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { leaseMs } from '../../../src/crawls/host-shares.ts';
import { createHostLedger } from '../../../src/crawls/host-store.ts';
import { newUuid } from '../../../src/lib/ids.ts';
import { createTestDatabase } from '../../support/database.ts';
import { endWithThisProcess } from '../../support/left-behind.ts';
import { startWatch } from '../../support/speed.ts';

const { db, target, drop } = await createTestDatabase();
const children: ChildProcess[] = [];
after(async () => {
  for (const child of children) child.kill('SIGKILL');
  await drop();
});

type Request = { startAt: number; endAt: number };
type CrawlerOptions = { host: string; count: number; holdMs: number; concurrencyMax: number; delayMs: number };

/** A process that crawls, and what it says of its requests. */
function startCrawler(options: CrawlerOptions): { child: ChildProcess; requests: AsyncIterable<Request> } {
  const program = fileURLToPath(new URL('../../support/host-crawler.ts', import.meta.url));
  const child = endWithThisProcess(
    spawn(process.execPath, [program, JSON.stringify({ target, ...options })], {
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  );
  children.push(child);
  const lines = createInterface({ input: child.stdout });
  const requests = (async function* () {
    for await (const line of lines) yield JSON.parse(line) as Request;
  })();
  return { child, requests };
}

async function crawlInTwoProcesses(options: CrawlerOptions): Promise<Request[]> {
  const crawlers = [startCrawler(options), startCrawler(options)];
  const all = await Promise.all(crawlers.map(({ requests }) => Array.fromAsync(requests)));
  for (const requests of all) assert.equal(requests.length, options.count);
  return all.flat().sort((one, other) => one.startAt - other.startAt);
}

test('two processes together send a host no more concurrent requests than one may', async () => {
  const options = { host: 'together.test', count: 60, holdMs: 100, concurrencyMax: 3, delayMs: 0 };
  const requests = await crawlInTwoProcesses(options);
  const open = requests.map(({ startAt }) => requests.filter((one) => one.startAt <= startAt && one.endAt > startAt));
  assert.equal(Math.max(...open.map((at) => at.length)), 3);
});

test('two processes keep the pause between two requests to one host', async () => {
  const requests = await crawlInTwoProcesses({
    ...{ host: 'paced.test', count: 15, holdMs: 1, concurrencyMax: 4, delayMs: 100 },
  });
  const [first, last] = [requests.at(0), requests.at(-1)];
  // The first may start late, which brings the others nearer to it. Without the other process half of this is enough.
  assert.ok((last?.startAt ?? 0) - (first?.startAt ?? 0) >= 25 * 100);
});

test('the share of a killed process is free within seconds', async () => {
  const options = { host: 'killed.test', count: 3, holdMs: 0, concurrencyMax: 2, delayMs: 0 };
  const { child, requests } = startCrawler(options);
  const lines = requests[Symbol.asyncIterator]();
  await lines.next();
  await lines.next();
  const ledger = createHostLedger(db, newUuid());
  const claim = async () => {
    const claims = [{ host: 'killed.test', claim: { inUse: 0, wanted: 2, slotsMax: 2, apps: { late: 0 } } }];
    return (await ledger.claim(claims)).get('killed.test')?.allowed;
  };
  // It lives: its requests keep what they have, however long they take.
  for (const watch = startWatch(); watch.passedMs() < leaseMs + 500; ) {
    assert.equal(await claim(), 0);
    await wait(100);
  }
  child.kill('SIGKILL');
  await once(child, 'exit');
  const watch = startWatch();
  while ((await claim()) !== 2) await wait(100);
  watch.within(leaseMs + 1_000, 'The end of its share');
});
