import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { FetchError } from '../../src/content/fetch/errors.ts';
import { BodyMemory, MemoryCrowded } from '../../src/crawls/body-memory.ts';

const never = new AbortController().signal;

/** A body that counts the bytes that were taken from it. */
function bodyOf(bytes: number, piece = 10) {
  const body = {
    taken: 0,
    async *[Symbol.asyncIterator]() {
      for (; body.taken < bytes; body.taken += piece) yield new Uint8Array(piece);
    },
  };
  return body;
}

test('one app holds half of the memory, its further bodies are not read on, and another app has room', async () => {
  const memory = new BodyMemory(100);
  const first = await memory.read('a', bodyOf(50), never);
  const late = bodyOf(30);
  const other = bodyOf(30);
  const waiting = memory.read('a', late, never);
  const second = memory.read('a', other, never);
  for (let turns = 0; turns < 10; turns++) await turn();
  // One of those that wait may continue; the other pauses its sender.
  assert.deepEqual([late.taken, other.taken], [30, 0]);
  const neighbour = await memory.read('b', bodyOf(10), never);
  assert.equal(memory.used, 90);
  first.free();
  (await waiting).free();
  (await second).free();
  neighbour.free();
  assert.equal(memory.used, 0);
});

test('many large bodies are all read, in no more memory than allowed and one body more', async () => {
  const memory = new BodyMemory(200);
  let most = 0;
  const read = async (app: string) => {
    const held = await memory.read(app, bodyOf(90), never);
    most = Math.max(most, memory.used);
    await turn();
    held.free();
  };
  await Promise.all(Array.from({ length: 60 }, (_unused, at) => read(`app-${at % 5}`)));
  assert.ok(most <= 290, String(most));
  assert.equal(memory.used, 0);
});

test('a body that is aborted, fails or is late while it waits gives its memory back', async () => {
  const memory = new BodyMemory(40);
  const held = await memory.read('a', bodyOf(20), never);
  const favoured = await memory.read('a', bodyOf(20), never);
  const leaving = new AbortController();
  const aborted = memory.read('a', bodyOf(20), leaving.signal);
  const late = memory.read(
    'a',
    (async function* () {
      yield new Uint8Array(10);
      throw new FetchError('timeout', 'The response took too long.');
    })(),
    never,
  );
  await turn();
  leaving.abort(new Error('over'));
  await assert.rejects(aborted, /over/);
  held.free();
  favoured.free();
  await assert.rejects(late, MemoryCrowded);
  assert.equal(memory.used, 0);
});
