import assert from 'node:assert/strict';
import { test } from 'node:test';
import { impossible, isLinearizable, type RecordedOperation } from '../support/linearizability.ts';

/*
 * A checker is worth something only if it refuses wrong histories. The object is one register, empty at first.
 */
type Register = string | null;
type Operation = RecordedOperation<Register>;

const write = (value: string, sentAt: number, answeredAt: number): Operation => ({
  ...{ sentAt, answeredAt },
  apply: () => value,
});
const read = (value: Register, sentAt: number, answeredAt: number): Operation => ({
  ...{ sentAt, answeredAt },
  apply: (state) => (state === value ? state : impossible),
});
/** Succeeds only when the register is empty. */
const create = (value: string, sentAt: number, answeredAt: number): Operation => ({
  ...{ sentAt, answeredAt },
  apply: (state) => (state === null ? value : impossible),
});
const unanswered = Number.POSITIVE_INFINITY;

const right: Record<string, Operation[]> = {
  'one after the other': [read(null, 0, 1), write('a', 2, 3), read('a', 4, 5)],
  'a read beside a write sees the old value': [write('a', 0, 10), read(null, 2, 3), read('a', 11, 12)],
  'a read beside a write sees the new value': [write('a', 0, 10), read('a', 2, 3)],
  'two writes at a time, in the order of the later read': [write('a', 0, 10), write('b', 0, 10), read('a', 11, 12)],
  'a write without an answer that took effect': [write('a', 0, unanswered), read('a', 5, 6)],
  'a write without an answer that did not': [write('a', 0, unanswered), read(null, 5, 6)],
  'a write without an answer that takes effect late': [
    write('a', 0, unanswered),
    write('b', 1, 2),
    read('b', 3, 4),
    read('a', 5, 6),
  ],
};
const wrong: Record<string, Operation[]> = {
  'a stale read': [write('a', 0, 1), read(null, 2, 3)],
  'a value that nobody wrote': [write('a', 0, 1), read('b', 2, 3)],
  'a new value, then the old one': [write('a', 0, 20), read('a', 2, 3), read(null, 4, 5)],
  'a lost write': [write('a', 0, 1), write('b', 2, 3), read('a', 4, 5)],
  'two creations that both succeed': [create('a', 0, 10), create('b', 0, 10)],
  'two readers who see two writes in different orders': [
    write('a', 0, 20),
    write('b', 0, 20),
    ...[read('a', 1, 2), read('b', 3, 4), read('a', 5, 6)],
  ],
};

test('histories that some order explains are accepted', () => {
  for (const [name, history] of Object.entries(right)) assert.ok(isLinearizable(history, null), name);
});

test('histories that no order explains are refused', () => {
  for (const [name, history] of Object.entries(wrong)) assert.ok(!isLinearizable(history, null), name);
});
