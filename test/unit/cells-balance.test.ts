import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CellUse, planMoves } from '../../src/cells/balance.ts';

const cell = (name: string, sizes: number[], state: CellUse['state'] = 'open'): CellUse => ({
  ...{ name, state },
  apps: sizes.map((bytes, index) => ({ appId: `${name}-${index}`, bytes })),
});

function sizesAfter(cells: CellUse[]): Record<string, number> {
  const sizes = new Map(cells.map(({ name, apps }) => [name, apps.reduce((sum, { bytes }) => sum + bytes, 0)]));
  for (const { from, to, bytes } of planMoves(cells)) {
    sizes.set(from, (sizes.get(from) ?? 0) - bytes);
    sizes.set(to, (sizes.get(to) ?? 0) + bytes);
  }
  return Object.fromEntries(sizes);
}

test('apps move from the fullest to the emptiest cell until all are even', () => {
  assert.deepEqual(sizesAfter([cell('a', [40, 30, 20, 10]), cell('b', [])]), { a: 50, b: 50 });
  const sizes = Object.values(sizesAfter([cell('a', Array(60).fill(3)), cell('b', [30]), cell('c', [])]));
  assert.ok(Math.max(...sizes) - Math.min(...sizes) <= 10, sizes.join(' '));
});

test('even cells, and one app that is larger than the gap, stay as they are', () => {
  assert.deepEqual(planMoves([cell('a', [50, 50]), cell('b', [98])]), []);
  assert.deepEqual(planMoves([cell('a', [100]), cell('b', [])]), []);
  assert.deepEqual(planMoves([cell('a', [])]), []);
});

test('a draining cell is emptied, and nothing moves to a cell that takes no apps', () => {
  const cells = [cell('a', [30, 20], 'draining'), cell('b', [10], 'closed'), cell('c', [40])];
  assert.deepEqual(
    planMoves(cells).map(({ from, to }) => [from, to]),
    [
      ['a', 'c'],
      ['a', 'c'],
    ],
  );
  assert.deepEqual(planMoves([cell('a', [30], 'draining'), cell('b', [], 'closed')]), []);
});

test('no app moves twice', () => {
  const moves = planMoves([cell('a', [9, 8, 7, 1]), cell('b', [2, 2]), cell('c', [], 'open'), cell('d', [60])]);
  assert.equal(new Set(moves.map(({ appId }) => appId)).size, moves.length);
});
