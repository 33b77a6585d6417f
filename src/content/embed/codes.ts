import { rotationOf } from './rotate.ts';

/**
 * How vectors are stored: 16-bit floats for the exact cosine, and one sign bit per dimension of the rotated vector
 * for finding candidates by Hamming distance. The rotation (three rounds of fixed sign flips and a Walsh–Hadamard
 * transform, as in fast Johnson–Lindenstrauss projections) spreads sparse vectors over all dimensions. Without it,
 * the signs of a sparse vector say almost nothing.
 */

/** The number of bits in a code: the next power of two. */
export function codeBits(dimensions: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(32, dimensions)));
}

/** A chunk's vector as it is stored, with its sign code. */
export type PackedVector = { vector: Buffer; code: Uint8Array };

export function packWithCode(vector: Float32Array): PackedVector {
  return { vector: packVector(vector), code: packedCode(vector) };
}

/** The bytes of a vector's sign code. */
export function packedCode(vector: Float32Array): Uint8Array {
  return new Uint8Array(signCode(vector).buffer);
}

/** The sign code of a vector: codeBits / 32 words. */
export function signCode(vector: Float32Array): Uint32Array {
  const rotated = rotate(vector);
  const code = new Uint32Array(rotated.length / 32);
  for (let word = 0; word < code.length; word++) {
    let bits = 0;
    for (let i = 0; i < 32; i++) if ((rotated[word * 32 + i] as number) > 0) bits |= 1 << i;
    code[word] = bits;
  }
  return code;
}

/** The rotated vector whose signs make up the code, not scaled, until the next one is rotated. */
function rotate(vector: Float32Array): Float32Array {
  return rotationOf(codeBits(vector.length))(vector);
}

/**
 * Estimates the cosine of a vector from its code and the whole query, up to a factor and a constant that are the same
 * for all codes: the sum of the rotated query's values with the code's signs. This distinguishes codes at equal
 * Hamming distance. A table holds the sum of every possible byte.
 */
export function cosineEstimator(query: Float32Array): (codes: Uint32Array, place: number) => number {
  const rotated = rotate(query);
  const bytesPerCode = rotated.length / 8;
  const sums = new Float32Array(bytesPerCode * 256);
  for (let byte = 0; byte < bytesPerCode; byte++)
    for (let value = 1; value < 256; value++) {
      // The sum without the lowest bit, plus that bit. Unset bits add nothing, which makes the constant.
      const lowest = 31 - Math.clz32(value & -value);
      sums[byte * 256 + value] =
        (sums[byte * 256 + (value & (value - 1))] as number) + (rotated[byte * 8 + lowest] as number);
    }
  const words = bytesPerCode / 4;
  return (codes, place) => {
    let sum = 0;
    for (let i = 0; i < words; i++) {
      const word = codes[place * words + i] as number;
      const at = i * 1_024;
      sum +=
        (sums[at + (word & 255)] as number) +
        (sums[at + 256 + ((word >>> 8) & 255)] as number) +
        (sums[at + 512 + ((word >>> 16) & 255)] as number) +
        (sums[at + 768 + (word >>> 24)] as number);
    }
    return sum;
  };
}

/**
 * Packs 16-bit floats (IEEE 754 binary16) in the byte order of the machine, which is little-endian on every supported
 * platform.
 */
export function packVector(vector: Float32Array): Buffer {
  return Buffer.from(new Float16Array(vector).buffer);
}

/** The bytes of a packed vector. */
export function packedBytes(dimensions: number): number {
  return dimensions * Float16Array.BYTES_PER_ELEMENT;
}

export function unpackVector(packed: Uint8Array): Float32Array {
  return new Float32Array(halfFloats(packed));
}

/** Cosine of a unit-length query and a packed unit-length vector. */
export function packedCosine(query: Float32Array, packed: Uint8Array): number {
  const values = halfFloats(packed);
  let sum = 0;
  for (let i = 0; i < query.length; i++) sum += (query[i] as number) * (values[i] as number);
  return sum;
}

/** The same bytes as floats. They are copied if they begin at an odd address, as database rows may. */
function halfFloats(packed: Uint8Array): Float16Array {
  const aligned = packed.byteOffset % 2 === 0 ? packed : new Uint8Array(packed);
  return new Float16Array(aligned.buffer, aligned.byteOffset, packed.byteLength / 2);
}
