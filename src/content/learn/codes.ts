/**
 * A learned vector as it is stored: a 32-bit float and one signed byte per dimension. A word's float is the scale of its
 * bytes. A chunk's bytes are its direction; its float is its strength.
 */
export const codeHeaderBytes = 4;

/** Writes the vector's bytes behind `number`; `number` times the bytes is about the vector when it is the returned scale. */
function writeBytes(vector: ArrayLike<number>, from: number, dimensions: number, target: Buffer, at: number): number {
  let largest = 0;
  for (let i = 0; i < dimensions; i++) largest = Math.max(largest, Math.abs(vector[from + i] as number));
  const scale = largest / 127;
  for (let i = 0; i < dimensions; i++)
    target.writeInt8(scale === 0 ? 0 : Math.round((vector[from + i] as number) / scale), at + codeHeaderBytes + i);
  return scale;
}

/** Packs a word's vector into `target`. */
export function packWord(vector: ArrayLike<number>, from: number, dimensions: number, target: Buffer, at = 0): void {
  target.writeFloatLE(writeBytes(vector, from, dimensions, target, at), at);
}

/** A word's vector, in `vector` if that is given. */
export function unpackWord(packed: Buffer, vector = new Float32Array(packed.length - codeHeaderBytes)): Float32Array {
  const scale = packed.readFloatLE(0);
  for (let i = 0; i < vector.length; i++) vector[i] = packed.readInt8(codeHeaderBytes + i) * scale;
  return vector;
}

/**
 * How a chunk's cosine grows with how much of it the model knows: its length among the dimensions to this power. Zero is
 * the plain cosine, under which a title alone comes before the text about it.
 */
const strengthPower = 0.25;

/** Packs a chunk's vector into `target`. */
export function packChunk(vector: ArrayLike<number>, from: number, dimensions: number, target: Buffer, at = 0): void {
  writeBytes(vector, from, dimensions, target, at);
  let length = 0;
  for (let i = 0; i < dimensions; i++) length += (vector[from + i] as number) ** 2;
  target.writeFloatLE(Math.sqrt(length) ** strengthPower, at);
}

/** What one occurrence count adds to a chunk's vector, in units of the word's vector. */
export function frequencyWeight(frequency: number): number {
  return 1 + Math.log(frequency);
}
