/**
 * The postings of several terms in one message: for each term, the sizes of term and postings (32 bits each), then
 * both.
 */
export type TermBytes = { term: string; postings: Uint8Array };

export function packBatch(terms: readonly TermBytes[]): Buffer {
  return Buffer.concat(
    terms.flatMap(({ term, postings }) => {
      const name = Buffer.from(term);
      const sizes = Buffer.alloc(8);
      sizes.writeUInt32LE(name.length, 0);
      sizes.writeUInt32LE(postings.length, 4);
      return [sizes, name, postings];
    }),
  );
}

export function* readBatch(bytes: Uint8Array): Generator<TermBytes> {
  const batch = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < batch.length; ) {
    const name = at + 8;
    const postings = name + batch.readUInt32LE(at);
    const end = postings + batch.readUInt32LE(at + 4);
    yield { term: batch.toString('utf8', name, postings), postings: batch.subarray(postings, end) };
    at = end;
  }
}
