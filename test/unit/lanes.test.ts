import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Lanes } from '../../src/fairness/lanes.ts';

function lanesOf(slots: number, waitingMax = 1_000): Lanes<string> & { fill(name: string, count: number): void } {
  const lanes = new Lanes<string>({ slots, waitingMax });
  return Object.assign(lanes, {
    fill: (name: string, count: number) => {
      for (let n = 0; n < count; n++) assert.ok(lanes.add(name, `${name}${n}`));
    },
  });
}

/** Takes until nobody may take any more. */
function takeAll(lanes: Lanes<string>): string[] {
  const taken: string[] = [];
  for (let next = lanes.take(); next; next = lanes.take()) taken.push(next.lane);
  return taken;
}

test('a lane alone gets half of the slots, and the next lane has a slot without waiting', () => {
  const lanes = lanesOf(8);
  lanes.fill('busy', 100);
  assert.deepEqual(takeAll(lanes), ['busy', 'busy', 'busy', 'busy']);
  lanes.fill('other', 1);
  assert.deepEqual(takeAll(lanes), ['other']);
  lanes.fill('third', 100);
  assert.deepEqual(takeAll(lanes), ['third', 'third']);
  lanes.fill('fourth', 1);
  assert.deepEqual(takeAll(lanes), ['fourth']);
});

test('lanes that wait for one slot take turns by what they have used', () => {
  const lanes = lanesOf(2);
  lanes.fill('slow', 10);
  lanes.fill('quick', 10);
  const order: string[] = [];
  for (let next = lanes.take(); next; next = lanes.take()) {
    order.push(next.lane);
    lanes.release(next.lane, next.lane === 'slow' ? 4 : 1);
  }
  assert.deepEqual(order.slice(0, 10), [
    ...['slow', 'quick', 'quick', 'quick', 'quick'],
    ...['slow', 'quick', 'quick', 'quick', 'quick'],
  ]);
  assert.equal(order.length, 20);
});

test('a returning lane has no credit for the time that it was idle', () => {
  const lanes = lanesOf(2);
  lanes.fill('busy', 10);
  for (let n = 0; n < 5; n++) {
    lanes.take();
    lanes.release('busy', 10);
  }
  lanes.fill('late', 5);
  const order: string[] = [];
  for (let next = lanes.take(); next; next = lanes.take()) {
    order.push(next.lane);
    lanes.release(next.lane, 10);
  }
  assert.deepEqual(order.slice(0, 4).sort(), ['busy', 'busy', 'late', 'late']);
});

test('a lane fills half of the queue at most, and an entry can leave it before its turn', () => {
  const lanes = lanesOf(2, 8);
  for (let n = 0; n < 20; n++) lanes.add('busy', `b${n}`);
  assert.equal(lanes.waiting, 4);
  assert.equal(lanes.add('other', 'o'), true);
  assert.equal(lanes.remove('other', 'o'), true);
  assert.equal(lanes.remove('other', 'o'), false);
  assert.deepEqual(lanes.drain(), ['b0', 'b1', 'b2', 'b3']);
  assert.equal(lanes.waiting, 0);
  assert.equal(lanes.take(), undefined);
});

test('lanes that were active recently share half of the slots, and a lane that returns finds its share free', () => {
  const lanes = new Lanes<string>({ slots: 8, waitingMax: 1_000, recentMs: 60_000 });
  lanes.add('other', 'first');
  assert.equal(lanes.take()?.lane, 'other');
  lanes.release('other', 1);
  for (let n = 0; n < 10; n++) lanes.add('busy', `busy${n}`);
  assert.deepEqual(takeAll(lanes), ['busy', 'busy']);
  lanes.add('other', 'second');
  assert.deepEqual(takeAll(lanes), ['other']);
});
