import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { openDatabase } from '../../src/db/database.ts';
import { formatId } from '../../src/lib/ids.ts';
import { createTestDatabase } from '../support/database.ts';
import { EventStream, type StreamEvent } from '../support/event-stream.ts';
import { sendRequest } from '../support/request.ts';
import { type ServedProcess, startServe } from '../support/serve.ts';
import { startWatch } from '../support/speed.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';

/*
 * Watchers of key-value entries and readers of the event stream, over two processes that are killed in turns while
 * others write through them. `npm run crash:watchers` runs it with 1,000 watchers for ten minutes.
 */
const watchersMax = Number(process.env.CRASH_WATCHERS ?? 24);
const secondsMax = Number(process.env.CRASH_SECONDS ?? 2);
/** Each process is killed once. */
const killsMin = 2;
const killEverySeconds = secondsMax / Math.min(60, Math.max(killsMin, secondsMax / 10));
/** The mean time until a watcher drops its connection by itself. */
const dropSeconds = Math.max(2, secondsMax / 20);
const watchersPerUser = 10;
const keys = ['a', 'b/1', 'b/2'];
const pauseMs = watchersMax > 100 ? 50 : 5;

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-crash-watchers-'));
chmodSync(dataDir, 0o755);
const { target, drop } = await createTestDatabase();
const proxy = await openTcpProxy(target);
after(async () => {
  await proxy.close();
  await drop();
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
});

const env = {
  QUARRY_DATA_DIR: dataDir,
  QUARRY_SECRET: randomBytes(32).toString('hex'),
  QUARRY_LOG_LEVEL: 'silent',
  QUARRY_DB_POOL: '6',
  QUARRY_STREAM_SECONDS: '60',
  DATABASE_URL: proxy.url,
};

type Subscription = {
  path: string;
  headers: Record<string, string>;
  /** Checks that this event is the next one. */
  take(event: StreamEvent): void;
};

/** Reads a stream until it is stopped. Whenever the stream ends, resumes after the last event. */
class Watcher {
  connections = 0;
  readonly #subscription: Subscription;
  readonly #processes: readonly ServedProcess[];
  readonly #ready = Promise.withResolvers<void>();
  #stream: EventStream | undefined;
  #isOver = false;
  readonly ended: Promise<void>;

  constructor(subscription: Subscription, processes: readonly ServedProcess[]) {
    this.#subscription = subscription;
    this.#processes = processes;
    this.ended = this.#run();
    this.ended.catch((error) => this.#ready.reject(error));
  }

  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  stop(): void {
    this.#isOver = true;
    this.#stream?.close();
  }

  async #run(): Promise<void> {
    let lastId: number | undefined;
    while (!this.#isOver) {
      const stream = await this.#open(lastId);
      if (stream === undefined) {
        await wait(50 + Math.random() * 250);
        continue;
      }
      this.#stream = stream;
      this.connections += 1;
      const drop = setTimeout(() => stream.close(), dropSeconds * 2_000 * Math.random() + 100);
      for (let event = await stream.next(); event !== undefined; event = await stream.next()) {
        if (event.event === 'ready') this.#ready.resolve();
        else this.#subscription.take(event);
        lastId = stream.lastId ?? lastId;
      }
      clearTimeout(drop);
      lastId = stream.lastId ?? lastId;
    }
  }

  async #open(lastId: number | undefined): Promise<EventStream | undefined> {
    const { path, headers } = this.#subscription;
    const { baseUrl } = this.#processes[Math.floor(Math.random() * this.#processes.length)] as ServedProcess;
    const resumed: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': String(lastId) };
    const stream = await EventStream.open(`${baseUrl}${path}`, { ...headers, ...resumed }).catch(() => undefined);
    if (stream === undefined || stream.response.statusCode === 200) return stream;
    stream.close();
    assert.ok((stream.response.statusCode ?? 0) >= 500, `${path} is ${stream.response.statusCode}`);
    return undefined;
  }
}

/** Checks the increments of one user's entries: each value must follow the previous one. */
class Counts {
  readonly last = new Map<string, number>();

  take({ event, data }: StreamEvent): void {
    const { key, value } = data as { key: string; value: string };
    assert.equal(event, 'put');
    assert.equal(Number(value), (this.last.get(key) ?? 0) + 1, `${key} after ${this.last.get(key)}`);
    this.last.set(key, Number(value));
  }
}

/** Checks the events of the app by their sequence: none may be missing. */
class Sequence {
  static readonly ids = new Map<number, string>();
  last = 0;

  take({ event, data }: StreamEvent): void {
    const { sequence, id } = data as { sequence: number; id: string };
    assert.equal(event, 'event');
    assert.equal(sequence, this.last + 1);
    const known = Sequence.ids.get(sequence) ?? id;
    assert.equal(id, known);
    Sequence.ids.set(sequence, id);
    this.last = sequence;
  }
}

test('watchers that resume miss nothing and get nothing twice, whichever process is killed', async (context) => {
  const db = openDatabase(target, { poolSize: 2, applicationName: 'quarry-test' });
  const processes = [await startServe(env)];
  try {
    processes.push(await startServe(env));
    const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
      secret_key: string;
    };
    let sent = 0;
    const send = <T>(method: string, path: string, body: unknown) =>
      sendRequest<T>(processes[sent++ % 2]?.baseUrl ?? '', method, `/api/v1${path}`, { key, body });

    const kvWatchers = Math.ceil(watchersMax / 2);
    const users: string[] = [];
    for (let n = 0; n < Math.ceil(kvWatchers / watchersPerUser); n++)
      users.push((await send<{ id: string }>('POST', '/users', { email: `${n}@example.test` })).body.id);
    const counts: { user: string; keys: string[]; counts: Counts }[] = [];
    const sequences: Sequence[] = [];
    const watchers: Watcher[] = [];
    const headers = { 'x-api-key': key };
    for (let n = 0; n < watchersMax; n++) {
      if (n >= kvWatchers) {
        const sequence = new Sequence();
        sequences.push(sequence);
        const take = (event: StreamEvent) => sequence.take(event);
        watchers.push(new Watcher({ path: '/api/v1/events/stream', headers, take }, processes));
        continue;
      }
      const user = users[n % users.length] ?? '';
      const [query, seen] = [
        ['', keys],
        ['&key=a', ['a']],
        ['&prefix=b/', ['b/1', 'b/2']],
      ][n % 3] as [string, string[]];
      const count = new Counts();
      counts.push({ user, keys: seen, counts: count });
      const take = (event: StreamEvent) => count.take(event);
      watchers.push(new Watcher({ path: `/api/v1/kv_watch?user=${user}${query}`, headers, take }, processes));
    }
    // A watcher that fails makes the test fail while it runs.
    const failed = Promise.withResolvers<never>();
    for (const watcher of watchers) watcher.ended.catch(failed.reject);
    failed.promise.catch(() => {});
    await Promise.race([Promise.all(watchers.map(({ ready }) => ready)), failed.promise]);

    let isOver = false;
    const until = async (work: () => Promise<unknown>) => {
      while (!isOver) {
        await work().catch(() => {});
        await wait(pauseMs);
      }
    };
    const pick = <T>(list: readonly T[]) => list[Math.floor(Math.random() * list.length)] as T;
    const writers = [
      until(() => send('POST', '/kv_increment', { user: pick(users), key: pick(keys) })),
      until(() => send('POST', '/kv_increment', { user: pick(users), key: pick(keys) })),
      until(() => send('POST', '/events', { name: 'tick', payload: { n: sent } })),
    ];
    const watch = startWatch();
    let kills = 0;
    for (let n = 0; watch.passedMs() < secondsMax * 1_000 || kills < killsMin; n = 1 - n) {
      await Promise.race([wait(killEverySeconds * 1_000 * (0.5 + Math.random())), failed.promise]);
      await processes[n]?.kill();
      kills += 1;
      processes[n] = await startServe(env);
    }
    isOver = true;
    await Promise.all(writers);

    const final = new Map<string, number>();
    for (const user of users)
      for (const name of keys) {
        const found = await sendRequest<{ value?: string }>(
          processes[0]?.baseUrl ?? '',
          'GET',
          `/api/v1/kv/${encodeURIComponent(name)}?user=${user}`,
          { key },
        );
        if (found.status === 200) final.set(`${user} ${name}`, Number(found.body.value));
      }
    const readEvents = async () =>
      db<{ id: string; position: number | null }[]>`select id, position from events order by position`;
    let events = await readEvents();
    for (; events.some(({ position }) => position === null); events = await readEvents()) await wait(20);
    const lastSequence = events.length;
    const isBehind = () =>
      sequences.some(({ last }) => last !== lastSequence) ||
      counts.some(({ user, keys: seen, counts: { last } }) =>
        seen.some((name) => last.get(name) !== final.get(`${user} ${name}`)),
      );
    while (isBehind()) await Promise.race([wait(50), failed.promise]);
    const stored = events.map(({ id, position }) => [position, formatId('event', id)]);
    assert.deepEqual(
      [...Sequence.ids].sort(([a], [b]) => a - b),
      stored,
    );

    for (const watcher of watchers) watcher.stop();
    await Promise.all(watchers.map(({ ended }) => ended));
    const connections = watchers.reduce((sum, each) => sum + each.connections, 0);
    const increments = [...final.values()].reduce((sum, value) => sum + value, 0);
    context.diagnostic(
      `${watchersMax} watchers, ${connections} connections, ${kills} kills, ${increments} increments, ${events.length} events`,
    );
    assert.ok(increments > 0 && events.length > 0 && connections > watchersMax);
  } finally {
    for (const each of processes) await each.kill();
    await db.end({ timeout: 5 });
  }
});
