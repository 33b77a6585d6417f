import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HostGate } from '../../src/crawls/host-gate.ts';

const never = new AbortController().signal;

test('a host gets no more requests at a time than allowed, and hosts do not wait for each other', async () => {
  const gate = new HostGate({ concurrencyMax: 2, delayMs: 0 });
  const open = new Map<string, number>();
  let most = 0;
  const finish: (() => void)[] = [];
  const request = (host: string) => () =>
    new Promise<void>((resolve) => {
      const count = (open.get(host) ?? 0) + 1;
      open.set(host, count);
      most = Math.max(most, count);
      finish.push(() => {
        open.set(host, (open.get(host) ?? 0) - 1);
        resolve();
      });
    });
  const running = Array.from({ length: 6 }, () => gate.run('a.test', undefined, never, request('a.test')));
  running.push(gate.run('b.test', undefined, never, request('b.test')));
  await new Promise(setImmediate);
  assert.equal(open.get('a.test'), 2);
  assert.equal(open.get('b.test'), 1);
  while (finish.length > 0) {
    finish.shift()?.();
    await new Promise(setImmediate);
  }
  await Promise.all(running);
  assert.equal(most, 2);
});

test('whoever gives up waiting takes nobody else’s turn', async () => {
  const gate = new HostGate({ concurrencyMax: 1, delayMs: 0 });
  const first = Promise.withResolvers<void>();
  const leaving = new AbortController();
  const running = gate.run('a.test', undefined, never, () => first.promise);
  const gone = gate.run('a.test', undefined, leaving.signal, async () => assert.fail('it had left'));
  const third = gate.run('a.test', undefined, never, async () => 'third');
  leaving.abort();
  await assert.rejects(gone);
  first.resolve();
  await running;
  assert.equal(await third, 'third');
});

test('a request that fails makes room for the next', async () => {
  const gate = new HostGate({ concurrencyMax: 1, delayMs: 0 });
  await assert.rejects(gate.run('a.test', 1, never, () => Promise.reject(new Error('broken'))));
  assert.equal(await gate.run('a.test', 1, never, async () => 'next'), 'next');
});
