import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Shares } from '../../src/fairness/shares.ts';

/** Adds for the app while it fits. */
function fill(shares: Shares, app: string): number {
  while (shares.fits(app)) shares.add(app);
  return shares.of(app);
}

test('a single app holds half, two hold a third each, and the next app always finds room', () => {
  const shares = new Shares(60);
  assert.equal(fill(shares, 'a'), 30);
  assert.equal(fill(shares, 'b'), 15);
  shares.add('a', -10);
  assert.deepEqual([fill(shares, 'b'), shares.of('a')], [20, 20]);
  assert.equal(fill(shares, 'c'), 10);
  assert.ok(shares.fits('d'));
});

test('what an app gives back is free for all, and an app that holds nothing is forgotten', () => {
  const shares = new Shares(8);
  shares.add('a', 4);
  assert.deepEqual([shares.fits('a'), shares.fits('b', 4), shares.fits('b', 5)], [false, true, false]);
  shares.add('a', -4);
  assert.deepEqual([shares.of('a'), shares.held, shares.free], [0, 0, 8]);
});
