import pg from 'pg';
import type { Compiled } from './sql.ts';
import { serialize } from './values.ts';

/** The columns of a row as PostgreSQL sends them, in its binary format. They are valid until the next row. */
export type CopiedRow = readonly Buffer[];

/** A signature of eleven bytes, flags and the length of an extension, which is empty. */
const headerBytes = 19;

/** The statement as a COPY that sends its rows. A COPY has no parameters, so the values are part of its text. */
export function copyOutOf({ text, values, strings }: Compiled): Compiled {
  const literalOf = (value: unknown) => {
    const serialized = serialize(value);
    if (Buffer.isBuffer(serialized)) throw new Error('A COPY takes no bytes.');
    return serialized === null ? 'null' : pg.escapeLiteral(serialized);
  };
  const inlined = text.replace(/\$(\d+)/g, (_parameter, number) => literalOf(values[Number(number) - 1]));
  return { text: `copy (${inlined}) to stdout (format binary)`, values: [], types: [], strings, once: true };
}

/** Reads the rows from what a COPY sends: one message for each row, the first of which may follow a header. */
export function createRowReader(take: (row: CopiedRow) => void): (message: Buffer) => void {
  let isFirst = true;
  return (message) => {
    let at = isFirst ? headerBytes : 0;
    isFirst = false;
    while (at < message.length) {
      const count = message.readInt16BE(at);
      at += 2;
      // The end of all rows.
      if (count < 0) return;
      const row: Buffer[] = [];
      for (let i = 0; i < count; i++) {
        const length = message.readInt32BE(at);
        at += 4;
        row.push(message.subarray(at, at + Math.max(0, length)));
        at += Math.max(0, length);
      }
      take(row);
    }
  };
}
