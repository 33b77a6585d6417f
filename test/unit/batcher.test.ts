import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Batcher } from '../../src/db/batcher.ts';

/** A batcher whose batches end when the test says so. */
function heldBatcher(
  options: { itemsMax?: number; bytesMax?: number; batchesMax?: number; failsForOne?: boolean } = {},
) {
  const batches: { items: string[]; end: () => void; fail: (error: Error) => void }[] = [];
  const batcher = new Batcher<string, string>({
    itemsMax: options.itemsMax ?? 100,
    bytesMax: options.bytesMax ?? 1_000,
    batchesMax: options.batchesMax ?? 1,
    sizeOf: (item) => item.length,
    namesOf: (item) => [item],
    failsForOne: () => options.failsForOne ?? false,
    run: (items) =>
      new Promise((resolve, reject) => {
        batches.push({ items, end: () => resolve(items.map((item) => `${item}!`)), fail: reject });
      }),
  });
  return { batcher, batches, turn: () => new Promise((resolve) => setImmediate(() => setImmediate(resolve))) };
}

test('what comes in one turn shares a batch, and each gets its own result', async () => {
  const { batcher, batches, turn } = heldBatcher();
  const results = ['a', 'b', 'c'].map((item) => batcher.add('g', item));
  await turn();
  assert.deepEqual(
    batches.map(({ items }) => items),
    [['a', 'b', 'c']],
  );
  batches[0]?.end();
  assert.deepEqual(await Promise.all(results), ['a!', 'b!', 'c!']);
});

test('groups never share a batch, nor wait for each other', async () => {
  const { batcher, batches, turn } = heldBatcher();
  void batcher.add('g', 'a');
  void batcher.add('h', 'b');
  await turn();
  assert.deepEqual(
    batches.map(({ items }) => items),
    [['a'], ['b']],
  );
});

test('while the batches of a group run, further items wait for the next', async () => {
  const { batcher, batches, turn } = heldBatcher({ batchesMax: 1 });
  const first = batcher.add('g', 'a');
  await turn();
  const others = [batcher.add('g', 'b'), batcher.add('g', 'c')];
  await turn();
  assert.equal(batches.length, 1);
  batches[0]?.end();
  await first;
  await turn();
  assert.deepEqual(batches[1]?.items, ['b', 'c']);
  batches[1]?.end();
  assert.deepEqual(await Promise.all(others), ['b!', 'c!']);
});

test('a batch holds no more items and bytes than it may, but always one', async () => {
  const { batcher, batches, turn } = heldBatcher({ itemsMax: 2, bytesMax: 4, batchesMax: 10 });
  for (const item of ['aaaaaaa', 'b', 'c', 'd', 'eee', 'ff']) void batcher.add('g', item);
  await turn();
  assert.deepEqual(
    batches.map(({ items }) => items),
    [['aaaaaaa'], ['b', 'c'], ['d', 'eee'], ['ff']],
  );
});

test('items of one name come one batch after the other, in their order', async () => {
  const { batcher, batches, turn } = heldBatcher({ batchesMax: 1 });
  const results = ['a', 'b', 'a'].map((item) => batcher.add('g', item));
  await turn();
  assert.deepEqual(batches[0]?.items, ['a', 'b']);
  batches[0]?.end();
  await Promise.all(results.slice(0, 2));
  await turn();
  assert.deepEqual(batches[1]?.items, ['a']);
});

test('items of one name never run at the same time, and no other item waits for them', async () => {
  const { batcher, batches, turn } = heldBatcher({ batchesMax: 3 });
  const running = () => batches.map(({ items }) => items.join(''));
  const results = [batcher.add('g', 'a')];
  await turn();
  results.push(batcher.add('g', 'a'), batcher.add('g', 'b'));
  await turn();
  results.push(batcher.add('g', 'a'), batcher.add('g', 'c'));
  await turn();
  assert.deepEqual(running(), ['a', 'b', 'c']);
  batches[0]?.end();
  await turn();
  assert.deepEqual(running(), ['a', 'b', 'c', 'a']);
  for (let ended = 1; ended < 5; ended++) {
    batches[ended]?.end();
    await turn();
  }
  assert.deepEqual(await Promise.all(results), ['a!', 'a!', 'b!', 'a!', 'c!']);
  assert.deepEqual(running(), ['a', 'b', 'c', 'a', 'a']);
});

test('a failure is that of the whole batch, unless one item may have caused it: then each is done alone', async () => {
  const shared = heldBatcher();
  const failed = ['a', 'b'].map((item) => shared.batcher.add('g', item));
  await shared.turn();
  shared.batches[0]?.fail(new Error('away'));
  for (const result of failed) await assert.rejects(result, /away/);

  const single = heldBatcher({ failsForOne: true });
  const [good, bad] = [single.batcher.add('g', 'a'), single.batcher.add('g', 'b')];
  await single.turn();
  single.batches[0]?.fail(new Error('one of them'));
  await single.turn();
  assert.deepEqual(
    single.batches.slice(1).map(({ items }) => items),
    [['a'], ['b']],
  );
  single.batches[1]?.end();
  single.batches[2]?.fail(new Error('this one'));
  assert.equal(await good, 'a!');
  await assert.rejects(bad as Promise<string>, /this one/);
});

test('an item that is done alone after a failure keeps its name: a later one waits for its end, others do not', async () => {
  const { batcher, batches, turn } = heldBatcher({ failsForOne: true });
  const running = () => batches.map(({ items }) => items.join(''));
  const results = [batcher.add('g', 'a'), batcher.add('g', 'b')];
  await turn();
  results.push(batcher.add('g', 'a'), batcher.add('g', 'c'));
  batches[0]?.fail(new Error('one of them'));
  await turn();
  assert.deepEqual(running(), ['ab', 'a', 'b', 'c']);
  // All others end, so the group has nothing but the first item and the one that waits for it.
  batches[2]?.end();
  batches[3]?.end();
  await turn();
  assert.deepEqual(running(), ['ab', 'a', 'b', 'c']);
  batches[1]?.end();
  await turn();
  assert.deepEqual(running(), ['ab', 'a', 'b', 'c', 'a']);
  batches[4]?.end();
  assert.deepEqual(await Promise.all(results), ['a!', 'b!', 'a!', 'c!']);
});

test('after a failure, an item that comes while all others have ended still waits for the one of its name', async () => {
  const { batcher, batches, turn } = heldBatcher({ failsForOne: true });
  const first = batcher.add('g', 'a');
  const second = batcher.add('g', 'b');
  await turn();
  batches[0]?.fail(new Error('one of them'));
  await turn();
  batches[2]?.end();
  assert.equal(await second, 'b!');
  const later = batcher.add('g', 'a');
  await turn();
  assert.equal(batches.length, 3);
  batches[1]?.end();
  assert.equal(await first, 'a!');
  await turn();
  batches[3]?.end();
  assert.equal(await later, 'a!');
});
