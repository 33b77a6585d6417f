import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRowReader } from '../../src/db/copy-out.ts';

const column = (text: string | null) => {
  const length = Buffer.alloc(4);
  length.writeInt32BE(text === null ? -1 : text.length);
  return Buffer.concat([length, Buffer.from(text ?? '')]);
};
const row = (...columns: (string | null)[]) => {
  const count = Buffer.alloc(2);
  count.writeInt16BE(columns.length);
  return Buffer.concat([count, ...columns.map(column)]);
};

/** What PostgreSQL sends: a header with flags and an extension, rows, and the end of all rows. */
const sent = Buffer.concat([
  Buffer.from('PGCOPY\n\u00ff\r\n\0', 'latin1'),
  Buffer.from([0, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3]),
  row('first', null, ''),
  row(),
  // Bytes that look like the end of all rows, or like another row.
  row('\u007f\u0001', '\0\u0001\0\0\0\u0001x'),
  Buffer.from([0xff, 0xff]),
]);
const expected = [['first', '', ''], [], ['\u007f\u0001', '\0\u0001\0\0\0\u0001x']];

function read(messages: Buffer[]): string[][] {
  const rows: string[][] = [];
  const reader = createRowReader((columns) => rows.push(columns.map(String)));
  for (const message of messages) {
    // The driver uses the memory of a message again.
    const used = Buffer.from(message);
    reader(used);
    used.fill(7);
  }
  return rows;
}

test('the rows of a copy are the same wherever its messages begin and end', () => {
  assert.deepEqual(read([sent]), expected);
  assert.deepEqual(read([...sent].map((byte) => Buffer.from([byte]))), expected);
  for (let at = 1; at < sent.length; at++)
    assert.deepEqual(read([sent.subarray(0, at), sent.subarray(at)]), expected, `divided at ${at}`);
});
