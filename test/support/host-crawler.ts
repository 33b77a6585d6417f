import { setTimeout as wait } from 'node:timers/promises';
import { HostGate } from '../../src/crawls/host-gate.ts';
import { createHostLedger } from '../../src/crawls/host-store.ts';
import { openDatabase } from '../../src/db/database.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { createLogger } from '../../src/lib/log.ts';

/*
 * A process that crawls one host: sends a number of requests through its gate, and prints the start and end time of
 * each. Its only argument is JSON. With `holdMs` 0, requests never end.
 */
const { target, host, count, holdMs, ...options } = JSON.parse(process.argv[2] ?? 'null');
const db = openDatabase(target, { poolSize: 2, applicationName: 'quarry-test-crawler' });
const gate = new HostGate(createHostLedger(db, newUuid()), { ...options, log: createLogger('silent') });
const { signal } = new AbortController();
const alive = setInterval(() => {}, 60_000);
await Promise.all(
  Array.from({ length: count }, (_unused, at) =>
    gate.run({ name: host, app: `app-${at}` }, undefined, signal, async () => {
      const startAt = Date.now();
      if (holdMs === 0) {
        process.stdout.write(`${JSON.stringify({ startAt })}\n`);
        await new Promise(() => {});
      }
      await wait(holdMs);
      process.stdout.write(`${JSON.stringify({ startAt, endAt: Date.now() })}\n`);
    }),
  ),
);
clearInterval(alive);
await db.end();
