import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PushTurn } from '../../src/knowledge/ingestion/push-turn.ts';
import type { ItemRow } from '../../src/knowledge/ingestion/store.ts';
import type { SourceRow } from '../../src/knowledge/sources/store.ts';

const source = { id: 'source', payload: { language: 'en' } } as unknown as SourceRow;
const items = ['a', 'b', 'c'].map((ingestionId) => ({ ingestionId }) as ItemRow);

/** A turn, and what it reads. */
function startTurn(stopping?: AbortSignal) {
  const turn = new PushTurn<string>(stopping);
  const reads: { of: string; signal: AbortSignal }[] = [];
  const read = (given: SourceRow, some: readonly ItemRow[]) =>
    turn.read(given, some, async ({ ingestionId }, signal) => {
      reads.push({ of: ingestionId, signal });
      return ingestionId;
    });
  return { turn, read, reads, names: () => reads.map(({ of }) => of).join('') };
}

test('what was read ahead is not read again, until it was written', async () => {
  const { turn, read, names } = startTurn();
  read(source, items.slice(0, 2));
  const works = read(source, items).map(({ work }) => work);
  assert.deepEqual(await Promise.all(works), ['a', 'b', 'c']);
  assert.equal(names(), 'abc');
  turn.drop(items.slice(0, 1));
  read({ ...source }, items);
  assert.equal(names(), 'abca');
});

test('a changed source is read for again', () => {
  const { read, names } = startTurn();
  read(source, items);
  read({ ...source, payload: { language: 'de' } }, items);
  assert.equal(names(), 'abcabc');
});

test('a turn takes its next ingestion once, does not continue when its job has to stop, and aborts what it reads at its end', () => {
  const stopping = new AbortController();
  const { turn, read, reads } = startTurn(stopping.signal);
  turn.continueWith('next');
  assert.deepEqual([turn.takeNext(), turn.takeNext(), turn.mayContinue], ['next', undefined, true]);
  read(source, items);
  stopping.abort();
  assert.equal(turn.mayContinue, false);
  const other = startTurn();
  other.read(source, items);
  assert.equal(other.reads[0]?.signal.aborted, false);
  other.turn.end();
  assert.deepEqual([reads[0]?.signal.aborted, other.reads[0]?.signal.aborted], [true, true]);
});
