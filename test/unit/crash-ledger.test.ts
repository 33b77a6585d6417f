import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ledger } from '../support/crash-ledger.ts';

const valuesOf = ({ entries }: Ledger, name: string) => [...(entries.get(name) ?? [])];

test('after a write with a response, only its value may be read', () => {
  const ledger = new Ledger();
  ledger.expect(ledger.entries, 'key', 'first').acknowledge();
  const second = ledger.expect(ledger.entries, 'key', 'second');
  assert.deepEqual(valuesOf(ledger, 'key'), ['first', 'second']);
  second.acknowledge();
  assert.deepEqual(valuesOf(ledger, 'key'), ['second']);
});

test('a write without a response may take effect after a later one with a response, which is the last one of its key', () => {
  const ledger = new Ledger();
  ledger.expect(ledger.entries, 'key', 'first').acknowledge();
  ledger.expect(ledger.entries, 'key', 'lost');
  const { name, acknowledge } = ledger.expect(ledger.entries, 'key', 'second');
  assert.equal(name, 'key');
  acknowledge();
  assert.deepEqual(valuesOf(ledger, 'key'), ['first', 'lost', 'second']);

  const next = ledger.expect(ledger.entries, 'key', 'third');
  assert.notEqual(next.name, 'key');
  next.acknowledge();
  assert.deepEqual(valuesOf(ledger, next.name), ['third']);
  assert.equal(ledger.expect(ledger.entries, 'key', 'fourth').name, next.name);
});
