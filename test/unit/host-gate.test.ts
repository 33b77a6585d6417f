import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { HostGate } from '../../src/crawls/host-gate.ts';
import { claimShare, type HostLedger, type HostShares, leaseMs, liveShares } from '../../src/crawls/host-shares.ts';
import { createLogger } from '../../src/lib/log.ts';
import { startWatch } from '../support/speed.ts';

const never = new AbortController().signal;
const log = createLogger('silent');
// The gate's own timers keep no process alive.
const alive = setInterval(() => {}, 60_000);
after(() => clearInterval(alive));

/** What the database does for all processes. */
class Ledger {
  readonly #watch = startWatch();
  readonly #hosts = new Map<string, { shares: HostShares; nextAt: number }>();
  aheadMs = 0;
  claims = 0;

  of(process: string): HostLedger {
    return {
      claim: async (claims) => {
        this.claims += 1;
        await new Promise(setImmediate);
        const grants = claims.flatMap(({ host, claim }) => {
          const row = this.#row(host);
          row.shares = liveShares(row.shares, this.#now());
          if (claim === undefined) {
            delete row.shares[process];
            return [];
          }
          const { share, ...grant } = claimShare(row.shares, process, claim, this.#now());
          row.shares[process] = share;
          return [[host, grant] as const];
        });
        return new Map(grants);
      },
      takeTurn: async (host, pauseMs) => {
        const row = this.#row(host);
        const startAt = Math.max(this.#now(), row.nextAt);
        row.nextAt = startAt + pauseMs;
        return startAt - this.#now();
      },
    };
  }

  #row(host: string) {
    const row = this.#hosts.get(host) ?? { shares: {}, nextAt: 0 };
    this.#hosts.set(host, row);
    return row;
  }

  #now(): number {
    return this.#watch.passedMs() + this.aheadMs;
  }
}

function gateOf(options: { concurrencyMax: number; delayMs?: number }, ledger = new Ledger().of('a')): HostGate {
  return new HostGate(ledger, { delayMs: 0, log, ...options });
}

/** A host, as this app asks for it. */
function at(name: string, app: number | string = 0): { name: string; app: string } {
  return { name, app: String(app) };
}

/** Requests that stay open until the test ends them. */
class Requests {
  readonly open = new Map<string, (() => void)[]>();
  #news = Promise.withResolvers<void>();

  to(name: string): () => Promise<void> {
    return () =>
      new Promise((resolve) => {
        this.open.set(name, [...(this.open.get(name) ?? []), resolve]);
        this.#tell();
      });
  }

  count(name: string): number {
    return this.open.get(name)?.length ?? 0;
  }

  end(name: string): void {
    this.open.get(name)?.shift()?.();
    this.#tell();
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await this.#news.promise;
  }

  #tell(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }
}

test('a host gets no more requests at a time than allowed, and hosts do not wait for each other', async () => {
  const gate = gateOf({ concurrencyMax: 2 });
  const requests = new Requests();
  const running = Array.from({ length: 6 }, (_, n) =>
    gate.run(at('a.test', n), undefined, never, requests.to('a.test')),
  );
  running.push(gate.run(at('b.test'), undefined, never, requests.to('b.test')));
  await requests.until(() => requests.count('a.test') === 2 && requests.count('b.test') === 1);
  requests.end('b.test');
  for (let left = 6; left > 0; left--) {
    await requests.until(() => requests.count('a.test') === Math.min(2, left));
    await new Promise(setImmediate);
    assert.equal(requests.count('a.test'), Math.min(2, left));
    requests.end('a.test');
  }
  await Promise.all(running);
});

test('a host that hangs for one app has a slot for the next app, and apps take turns at it', async () => {
  const gate = gateOf({ concurrencyMax: 4 });
  const requests = new Requests();
  const stop = new AbortController();
  const hanging = Array.from({ length: 10 }, () =>
    gate.run(at('a.test', 'first'), undefined, stop.signal, requests.to('first')),
  );
  await requests.until(() => requests.count('first') === 3);
  const second = gate.run(at('a.test', 'second'), undefined, never, requests.to('second'));
  await requests.until(() => requests.count('second') === 1);
  assert.equal(requests.count('first'), 3);
  // All slots are taken: the next one goes to the app that has none, not to the one that has waited longest.
  const third = gate.run(at('a.test', 'third'), undefined, never, requests.to('third'));
  requests.end('first');
  await requests.until(() => requests.count('third') === 1);
  assert.equal(requests.count('first'), 2);
  requests.end('second');
  requests.end('third');
  await Promise.all([second, third]);
  await requests.until(() => requests.count('first') === 3);
  stop.abort(new Error('over'));
  for (let left = 3; left > 0; left--) requests.end('first');
  assert.equal((await Promise.allSettled(hanging)).filter(({ status }) => status === 'rejected').length, 6);
});

test('a request that is aborted while it waits takes no turn', async () => {
  const gate = gateOf({ concurrencyMax: 1 });
  const first = Promise.withResolvers<void>();
  const leaving = new AbortController();
  const running = gate.run(at('a.test'), undefined, never, () => first.promise);
  const gone = gate.run(at('a.test'), undefined, leaving.signal, async () => assert.fail('it had left'));
  const third = gate.run(at('a.test'), undefined, never, async () => 'third');
  leaving.abort();
  await assert.rejects(gone);
  first.resolve();
  await running;
  assert.equal(await third, 'third');
});

test('a request that fails makes room for the next', async () => {
  const gate = gateOf({ concurrencyMax: 1 });
  await assert.rejects(gate.run(at('a.test'), 1, never, () => Promise.reject(new Error('broken'))));
  assert.equal(await gate.run(at('a.test'), 1, never, async () => 'next'), 'next');
});

test('a host that one process crawls costs no claim a request', async () => {
  const ledger = new Ledger();
  const gate = gateOf({ concurrencyMax: 8 }, ledger.of('a'));
  const watch = startWatch();
  for (let round = 0; round < 500; round++)
    await Promise.all(Array.from({ length: 8 }, (_, n) => gate.run(at('a.test', n), undefined, never, async () => {})));
  const seconds = watch.passedMs() / 1_000;
  assert.ok(ledger.claims <= 3 + 2 * seconds, `${ledger.claims} claims in ${seconds} s`);
});

test('processes share the requests of a host, and the later one gets its part', async () => {
  const ledger = new Ledger();
  const [first, second] = ['a', 'b'].map((name) => gateOf({ concurrencyMax: 4 }, ledger.of(name))) as [
    HostGate,
    HostGate,
  ];
  let open = 0;
  let most = 0;
  const request = async () => {
    open += 1;
    most = Math.max(most, open);
    await new Promise(setImmediate);
    open -= 1;
  };
  // The first process has always more to ask for until the second one is through.
  let isOver = false;
  const endless = Array.from({ length: 8 }, async (_unused, app) => {
    while (!isOver) await first.run(at('x.test', app), undefined, never, request);
  });
  await first.run(at('x.test'), undefined, never, request);
  await Promise.all(
    Array.from({ length: 40 }, (_unused, app) => second.run(at('x.test', app), undefined, never, request)),
  );
  isOver = true;
  await Promise.all(endless);
  assert.equal(most, 4);
});

test('a host that asks for a pause gets it from all processes together, one request at a time', async () => {
  const ledger = new Ledger();
  const gates = ['a', 'b'].map((name) => gateOf({ concurrencyMax: 4 }, ledger.of(name)));
  const watch = startWatch();
  const starts: number[] = [];
  let open = 0;
  const request = async () => {
    starts.push(watch.passedMs());
    open += 1;
    assert.equal(open, 1);
    await new Promise(setImmediate);
    open -= 1;
  };
  await Promise.all(gates.flatMap((gate) => [1, 2, 3].map((n) => gate.run(at('x.test', n), 40, never, request))));
  assert.equal(starts.length, 6);
  // Timers may fire up to a millisecond early.
  assert.ok((starts.at(-1) ?? 0) >= 5 * 40 - 1);
});

test('a dead process’s share is free when its lease ends, and not before', async () => {
  const ledger = new Ledger();
  const requests = new Requests();
  const dying = ledger.of('dying');
  const dead = gateOf({ concurrencyMax: 1 }, dying);
  void dead.run(at('x.test'), undefined, never, requests.to('dying'));
  await requests.until(() => requests.count('dying') === 1);
  dying.claim = () => new Promise(() => {});

  const gate = gateOf({ concurrencyMax: 1 }, ledger.of('a'));
  const running = gate.run(at('x.test'), undefined, never, requests.to('a'));
  for (const before = ledger.claims; ledger.claims < before + 2; ) await new Promise(setImmediate);
  assert.equal(requests.count('a'), 0);
  ledger.aheadMs = leaseMs;
  await requests.until(() => requests.count('a') === 1);
  requests.end('a');
  await running;
});

test('where processes outnumber slots, each gets one in turn', () => {
  const processes = ['a', 'b', 'c', 'd', 'e'];
  const inUse = new Map<string, number>();
  const served = new Map<string, number>();
  let shares: HostShares = {};
  for (let now = 0; now < 60_000; now += 250) {
    for (const process of processes) {
      shares = liveShares(shares, now);
      const claim = { inUse: 0, wanted: 4, slotsMax: 2, apps: { [process]: 0 } };
      const { share, allowed } = claimShare(shares, process, claim, now);
      shares[process] = share;
      inUse.set(process, allowed);
      served.set(process, (served.get(process) ?? 0) + allowed);
    }
    assert.ok([...inUse.values()].reduce((sum, count) => sum + count, 0) <= 2);
  }
  const counts = processes.map((process) => served.get(process) ?? 0);
  assert.ok(Math.min(...counts) >= 0.8 * Math.max(...counts), counts.join(', '));
});

test('an app gets no more of a host from three processes than another app from one of them', async () => {
  const ledger = new Ledger();
  const gates = ['a', 'b', 'c'].map((name) => gateOf({ concurrencyMax: 9 }, ledger.of(name)));
  const requests = new Requests();
  const stop = new AbortController();
  /** Requests without end, twelve at a time. */
  const ask = (gate: HostGate, app: string) =>
    Array.from({ length: 12 }, async () => {
      while (!stop.signal.aborted) await gate.run(at('x.test', app), undefined, stop.signal, requests.to(app));
    });
  const [first, second, third] = gates as [HostGate, HostGate, HostGate];
  const asked = [first, second, third].flatMap((gate) => ask(gate, 'wide'));
  await requests.until(() => requests.count('wide') >= 6);
  asked.push(...ask(third, 'narrow'));
  while (requests.count('narrow') < 4) {
    if (requests.count('wide') > requests.count('narrow')) requests.end('wide');
    assert.ok(requests.count('wide') + requests.count('narrow') <= 9);
    await wait(20);
  }
  stop.abort(new Error('over'));
  for (; requests.count('wide') > 0; ) requests.end('wide');
  for (; requests.count('narrow') > 0; ) requests.end('narrow');
  await Promise.allSettled(asked);
});

test('a host that hangs for one app in two processes has a slot for the next app, in either of them', async () => {
  const ledger = new Ledger();
  const gates = ['a', 'b'].map((name) => gateOf({ concurrencyMax: 4 }, ledger.of(name)));
  const requests = new Requests();
  const stop = new AbortController();
  const asked: Promise<void>[] = [];
  const ask = (gate: HostGate | undefined, app: string, count: number) => {
    for (let n = 0; n < count; n++)
      asked.push(gate?.run(at('x.test', app), undefined, stop.signal, requests.to(app)) as Promise<void>);
  };
  ask(gates[0], 'hanging', 10);
  await requests.until(() => requests.count('hanging') === 3);
  ask(gates[1], 'hanging', 10);
  // Two renewals: the second process has seen what the first one holds.
  for (const before = ledger.claims; ledger.claims < before + 6; ) await new Promise(setImmediate);
  assert.equal(requests.count('hanging'), 3);
  ask(gates[1], 'other', 1);
  await requests.until(() => requests.count('other') === 1);
  stop.abort(new Error('over'));
  requests.end('other');
  for (; requests.count('hanging') > 0; ) requests.end('hanging');
  await Promise.allSettled(asked);
});

test('each process gets an equal part of the slots, and the others get what it does not need', () => {
  let shares: HostShares = {};
  const settle = (wanted: Record<string, number>): Record<string, number> => {
    const allowed: Record<string, number> = {};
    for (let round = 0; round < 4; round++)
      for (const [process, count] of Object.entries(wanted)) {
        const claim = { inUse: 0, wanted: count, slotsMax: 8, apps: { [process]: 0 } };
        const { share, ...grant } = claimShare(shares, process, claim, 0);
        shares[process] = share;
        allowed[process] = grant.allowed;
      }
    return allowed;
  };
  assert.deepEqual(settle({ a: 8 }), { a: 8 });
  assert.deepEqual(settle({ a: 8, b: 8 }), { a: 4, b: 4 });
  shares = {};
  assert.deepEqual(settle({ a: 8, b: 2 }), { a: 6, b: 2 });
});

test('an app that crawls from three processes weighs as much as one that crawls from one', () => {
  let shares: HostShares = {};
  const claims: [string, string[]][] = [
    ['a', ['wide']],
    ['b', ['wide']],
    ['c', ['wide', 'narrow']],
  ];
  const allowed: Record<string, number> = {};
  for (let round = 0; round < 4; round++)
    for (const [process, names] of claims) {
      const apps = Object.fromEntries(names.map((name) => [name, 0]));
      const { share, ...grant } = claimShare(shares, process, { inUse: 0, wanted: 12, slotsMax: 12, apps }, 0);
      shares = { ...shares, [process]: share };
      allowed[process] = grant.allowed;
    }
  // In the third process two of the eight are for the first app, as in the others.
  assert.deepEqual(allowed, { a: 2, b: 2, c: 8 });
});
