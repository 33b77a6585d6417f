import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FetchError } from '../../src/content/fetch/errors.ts';
import { RequestQueue } from '../../src/content/fetch/request-queue.ts';

const bounds = { requestsMax: 6, ofAppMax: 4, ofHostMax: 4, ofAppAtHostMax: 2 };
const never = new AbortController().signal;

/** Takes a turn and says whether it is there without waiting. */
async function taken(turns: RequestQueue, app: string, host: string, signal = never) {
  let end: (() => void) | undefined;
  const turn = turns.take(app, host, signal).then((ended) => {
    end = ended;
  });
  await new Promise((resolve) => setImmediate(resolve));
  return { turn, isOpen: () => end !== undefined, end: () => end?.() };
}

test('an app, a host and an app at a host have no more requests open than their share', async () => {
  const turns = new RequestQueue(bounds);
  const open = async (app: string, host: string) => (await taken(turns, app, host)).isOpen();
  assert.deepEqual([await open('a', 'x'), await open('a', 'x'), await open('a', 'x')], [true, true, false]);
  assert.deepEqual([await open('a', 'y'), await open('a', 'y'), await open('a', 'z')], [true, true, false]);
  assert.deepEqual([await open('b', 'x'), await open('b', 'y'), await open('b', 'z')], [true, true, false]);
});

test('a turn that ends goes to the app that has the fewest requests open', async () => {
  const turns = new RequestQueue({ ...bounds, requestsMax: 3 });
  const [first] = [await taken(turns, 'a', 'x'), await taken(turns, 'a', 'x'), await taken(turns, 'b', 'x')];
  const more = await taken(turns, 'a', 'y');
  const other = await taken(turns, 'c', 'x');
  assert.deepEqual([more.isOpen(), other.isOpen()], [false, false]);
  first.end();
  first.end();
  await other.turn;
  assert.equal(more.isOpen(), false);
  other.end();
  await more.turn;
});

test('a request that is aborted while it waits uses no turn', async () => {
  const turns = new RequestQueue({ ...bounds, requestsMax: 1 });
  const first = await taken(turns, 'a', 'x');
  const stop = new AbortController();
  const given = turns.take('b', 'x', stop.signal);
  const last = await taken(turns, 'c', 'x');
  stop.abort();
  await assert.rejects(given, (error) => error instanceof FetchError && error.code === 'aborted');
  first.end();
  await last.turn;
});

test('a turn that ends makes room for its app and for its host', async () => {
  const turns = new RequestQueue({ requestsMax: 6, ofAppMax: 2, ofHostMax: 2, ofAppAtHostMax: 2 });
  const first = await taken(turns, 'a', 'x');
  const held = [await taken(turns, 'a', 'y'), await taken(turns, 'b', 'x')];
  assert.deepEqual(
    held.map((turn) => turn.isOpen()),
    [true, true],
  );
  const [sameApp, sameHost] = [await taken(turns, 'a', 'z'), await taken(turns, 'c', 'x')];
  assert.deepEqual([sameApp.isOpen(), sameHost.isOpen()], [false, false]);
  first.end();
  await Promise.all([sameApp.turn, sameHost.turn]);
});
