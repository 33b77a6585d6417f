import type { Compiled } from './sql.ts';
import { serialize } from './values.ts';

/** The columns of a row as PostgreSQL sends them, in its binary format. They are valid until the next row. */
export type CopiedRow = readonly Buffer[];

/** A signature of eleven bytes, flags, and the length of an extension that follows. */
const headerBytes = 19;

/** The statement as a COPY that sends its rows. A COPY has no parameters, so the values are part of its text. */
export function copyOutOf({ text, values, strings }: Compiled): Compiled {
  const literalOf = (value: unknown) => {
    const serialized = serialize(value);
    if (Buffer.isBuffer(serialized)) throw new Error('A COPY takes no bytes.');
    return serialized === null ? 'null' : quoteLiteral(serialized);
  };
  const inlined = text.replace(/\$(\d+)/g, (_parameter, number) => literalOf(values[Number(number) - 1]));
  return { text: `copy (${inlined}) to stdout (format binary)`, values: [], types: [], strings, once: true };
}

/** The driver's own function goes character by character, which takes 0.8 MB of memory for the places of 600 vectors. */
function quoteLiteral(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes('\\') ? ` E${quoted.replaceAll('\\', '\\\\')}` : quoted;
}

/**
 * Reads the rows from what a COPY sends. PostgreSQL sends one message for each row, but the protocol lets messages begin
 * and end anywhere, and servers that speak it may divide them.
 */
export function createRowReader(take: (row: CopiedRow) => void): (message: Buffer) => void {
  let isFirst = true;
  let rest: Buffer | undefined;
  return (message) => {
    const bytes = rest === undefined ? message : Buffer.concat([rest, message]);
    let at = 0;
    if (isFirst) {
      at = bytes.length < headerBytes ? Number.POSITIVE_INFINITY : headerBytes + bytes.readInt32BE(headerBytes - 4);
      isFirst = at > bytes.length;
    }
    while (at < bytes.length) {
      const end = endOfRow(bytes, at);
      if (end === undefined) break;
      // The end of all rows.
      if (bytes.readInt16BE(at) >= 0) take(columnsOf(bytes, at));
      at = end;
    }
    // A copy: the driver reuses the buffer of a message.
    rest = isFirst ? Buffer.from(bytes) : at < bytes.length ? Buffer.from(bytes.subarray(at)) : undefined;
  };
}

/** Where the row ends that begins here; undefined if the next message has more of it. */
function endOfRow(bytes: Buffer, from: number): number | undefined {
  if (from + 2 > bytes.length) return undefined;
  const count = bytes.readInt16BE(from);
  let at = from + 2;
  for (let i = 0; i < count; i++) {
    if (at + 4 > bytes.length) return undefined;
    at += 4 + Math.max(0, bytes.readInt32BE(at));
  }
  return at > bytes.length ? undefined : at;
}

function columnsOf(bytes: Buffer, from: number): CopiedRow {
  const row: Buffer[] = [];
  let at = from + 2;
  for (let left = bytes.readInt16BE(from); left > 0; left--) {
    const length = Math.max(0, bytes.readInt32BE(at));
    row.push(bytes.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return row;
}
