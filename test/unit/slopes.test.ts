import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judge } from '../prove/slopes.ts';

const warmUpShare = 1 / 3;
const minutes = 60;

/** Whether an hour of values, one a minute, is flat. */
function isFlat(valueAt: (minute: number) => number, count = minutes): boolean {
  const points = Array.from({ length: count }, (_, minute): [number, number] => [minute * 60, valueAt(minute)]);
  return judge({ name: 'memory', unit: 'MB', floor: 24, isJudged: true, points }, warmUpShare).isFlat;
}

test('a soak is flat when nothing grows but noise, or what grows has stopped growing during the warm-up', () => {
  assert.ok(isFlat(() => 300));
  assert.ok(isFlat((minute) => 300 + 20 * (minute % 2)));
  assert.ok(isFlat((minute) => Math.min(300, 100 + 10 * minute)));
});

test('a soak is not flat when memory leaks, rises in one step or falls, or when there is nothing to judge', () => {
  assert.ok(!isFlat((minute) => 300 + minute));
  assert.ok(!isFlat((minute) => 300 + minute + 20 * (minute % 2)));
  assert.ok(!isFlat((minute) => (minute < 50 ? 300 : 360)));
  assert.ok(!isFlat((minute) => 300 - minute));
  assert.ok(!isFlat(() => 300, 3));
});
