import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommitQueue } from '../../src/crawls/commit-queue.ts';

const aMinuteMs = 60_000;

/** A queue whose commits end when the test says so. It gathers until `whole` items wait. */
function heldQueue({ whole, waitMsMax = aMinuteMs, itemsMax = 100 }: Record<'whole', number> & Partial<Limits>) {
  const commits: { items: string[]; end: () => void; fail: (error: Error) => void }[] = [];
  const queue = new CommitQueue<string>({
    waitMsMax,
    itemsMax,
    isWhole: (waiting) => waiting >= whole,
    commit: (items) => new Promise((resolve, reject) => commits.push({ items, end: resolve, fail: reject })),
  });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return { queue, commits, turn, committed: () => commits.map(({ items }) => items.join('')) };
}
type Limits = { waitMsMax: number; itemsMax: number };

test('an item waits for those that share its commit, and not longer', async () => {
  const { queue, commits, turn, committed } = heldQueue({ whole: 3 });
  const added = ['a', 'b'].map((item) => queue.add(item));
  await turn();
  assert.deepEqual(committed(), []);
  added.push(queue.add('c'));
  await turn();
  assert.deepEqual(committed(), ['abc']);
  commits[0]?.end();
  await Promise.all(added);
  assert.deepEqual(queue.drain(), []);
});

test('an item is committed alone when its time is over, although no other has come', async () => {
  const { queue, commits, turn, committed } = heldQueue({ whole: 2, waitMsMax: 1 });
  const added = queue.add('a');
  while (commits.length === 0) await turn();
  assert.deepEqual(committed(), ['a']);
  commits[0]?.end();
  await added;
});

test('what is added during a commit is in the next one, in order, and no commit is larger than its limit', async () => {
  const { queue, commits, turn, committed } = heldQueue({ whole: 1, itemsMax: 2 });
  const added = ['a', 'b', 'c', 'd'].map((item) => queue.add(item));
  for (let ended = 0; ended < added.length; ended++) {
    await turn();
    assert.ok(commits.length <= ended + 1, 'one commit at a time');
    commits[ended]?.end();
  }
  await Promise.all(added);
  assert.deepEqual(committed(), ['a', 'bc', 'd']);
});

test('if a commit fails, everything that waits fails, and is still there to be discarded', async () => {
  const { queue, commits, turn } = heldQueue({ whole: 1, itemsMax: 1 });
  const added = ['a', 'b'].map((item) => queue.add(item));
  await turn();
  commits[0]?.fail(new Error('lost'));
  assert.deepEqual(
    (await Promise.allSettled(added)).map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  assert.deepEqual(queue.drain(), ['a', 'b']);
});
