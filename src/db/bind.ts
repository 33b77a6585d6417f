/** Values of this size are sent as they are. The driver would copy them into a message that the collector has to find. */
const sentAsTheyAreMin = 16 * 1024;

/**
 * The message that binds values to a prepared statement (Bind in PostgreSQL's protocol), in parts, of which large values
 * are some. Undefined if no value is large.
 */
export function bindInParts(statement: string, values: readonly (string | Buffer | null)[]): Buffer[] | undefined {
  if (!values.some((value) => Buffer.isBuffer(value) && value.length >= sentAsTheyAreMin)) return undefined;
  const formats = values.map((value) => int16(Buffer.isBuffer(value) ? binary : text));
  const body = [Buffer.from(`\0${statement}\0`), int16(values.length), ...formats, int16(values.length)];
  for (const value of values) {
    const bytes = typeof value === 'string' ? Buffer.from(value) : value;
    body.push(int32(bytes?.length ?? -1));
    if (bytes !== null) body.push(bytes);
  }
  // One format for all results.
  body.push(int16(1), int16(text));
  const length = body.reduce((sum, piece) => sum + piece.length, 0);
  return joinSmall([Buffer.from('B'), int32(4 + length), ...body]);
}

const text = 0;
const binary = 1;

/** Joins neighbours that are small. */
function joinSmall(pieces: readonly Buffer[]): Buffer[] {
  const parts: Buffer[] = [];
  let small: Buffer[] = [];
  const flush = () => {
    if (small.length > 0) parts.push(Buffer.concat(small));
    small = [];
  };
  for (const piece of pieces) {
    if (piece.length < sentAsTheyAreMin) {
      small.push(piece);
      continue;
    }
    flush();
    parts.push(piece);
  }
  flush();
  return parts;
}

function int16(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeInt32BE(value);
  return bytes;
}
