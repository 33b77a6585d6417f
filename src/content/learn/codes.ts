/**
 * How a learned vector is stored: a 32-bit float and one signed byte per dimension. For a word, the float is the
 * scale of its bytes. For a chunk, the bytes are its direction and the float is its strength.
 */
export const codeHeaderBytes = 4;

/** Writes `number` and then the vector's bytes. Returns the scale: the bytes times the scale are about the vector. */
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

/** A word's vector, written to `vector` if that is given. */
export function unpackWord(packed: Buffer, vector = new Float32Array(packed.length - codeHeaderBytes)): Float32Array {
  const scale = packed.readFloatLE(0);
  for (let i = 0; i < vector.length; i++) vector[i] = packed.readInt8(codeHeaderBytes + i) * scale;
  return vector;
}

/**
 * How a chunk's cosine grows with how much of the chunk the model knows: the chunk's length among the dimensions, to
 * this power. Zero gives the plain cosine, which ranks a title alone before the text about it.
 */
const strengthPower = 0.25;

/** Packs a chunk's vector into `target`. */
export function packChunk(vector: ArrayLike<number>, from: number, dimensions: number, target: Buffer, at = 0): void {
  writeBytes(vector, from, dimensions, target, at);
  let length = 0;
  for (let i = 0; i < dimensions; i++) length += (vector[from + i] as number) ** 2;
  target.writeFloatLE(Math.sqrt(length) ** strengthPower, at);
}

/** What a term's frequency adds to a chunk's vector, in units of the word's vector. */
export function frequencyWeight(frequency: number): number {
  return 1 + Math.log(frequency);
}
