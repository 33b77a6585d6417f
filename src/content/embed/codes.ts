/**
 * Vectors as they are stored: 16-bit floats for the exact cosine, and one sign bit per dimension of the rotated vector
 * for finding candidates by Hamming distance. The rotation (three rounds of fixed sign flips and a Walsh–Hadamard
 * transform, as in fast Johnson–Lindenstrauss projections) spreads sparse vectors over all dimensions; without it signs
 * of sparse vectors say almost nothing.
 */

/** Bits of a code: the next power of two. */
export function codeBits(dimensions: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(32, dimensions)));
}

/** The sign code of a vector: codeBits / 32 words. */
export function signCode(vector: Float32Array): Uint32Array {
  const size = codeBits(vector.length);
  const rotated = new Float32Array(size);
  rotated.set(vector);
  for (const flips of signFlips(size)) {
    for (let i = 0; i < size; i++) rotated[i] = (rotated[i] ?? 0) * (flips[i] ?? 1);
    walshHadamard(rotated);
  }
  const code = new Uint32Array(size / 32);
  for (let i = 0; i < size; i++) if ((rotated[i] ?? 0) > 0) code[i >>> 5] = (code[i >>> 5] ?? 0) | (1 << (i & 31));
  return code;
}

const rounds = 3;
const flipsBySize = new Map<number, Int8Array[]>();

/** The same flips for ever (stored codes depend on them): a xorshift generator from a fixed seed. */
function signFlips(size: number): Int8Array[] {
  const known = flipsBySize.get(size);
  if (known) return known;
  let state = 0x9e3779b9;
  const all = Array.from({ length: rounds }, () => {
    const flips = new Int8Array(size);
    for (let i = 0; i < size; i++) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      flips[i] = state & 0x10000 ? 1 : -1;
    }
    return flips;
  });
  flipsBySize.set(size, all);
  return all;
}

/** In place; not scaled, since only signs are read. Values stay below size^(3/2), far inside a float's range. */
function walshHadamard(values: Float32Array): void {
  for (let half = 1; half < values.length; half *= 2)
    for (let start = 0; start < values.length; start += half * 2)
      for (let i = start; i < start + half; i++) {
        const a = values[i] ?? 0;
        const b = values[i + half] ?? 0;
        values[i] = a + b;
        values[i + half] = a - b;
      }
}

/** 16-bit floats (IEEE 754 binary16), little-endian. */
export function packVector(vector: Float32Array): Buffer {
  const packed = Buffer.allocUnsafe(vector.length * 2);
  for (let i = 0; i < vector.length; i++) packed.writeUInt16LE(toHalf(vector[i] ?? 0), i * 2);
  return packed;
}

export function unpackVector(packed: Uint8Array): Float32Array {
  const vector = new Float32Array(packed.byteLength / 2);
  for (let i = 0; i < vector.length; i++)
    vector[i] = halfValues()[(packed[i * 2] ?? 0) | ((packed[i * 2 + 1] ?? 0) << 8)] ?? 0;
  return vector;
}

/** Cosine of a unit-length query and a packed unit-length vector. */
export function packedCosine(query: Float32Array, packed: Uint8Array): number {
  const values = halfValues();
  let sum = 0;
  for (let i = 0; i < query.length; i++)
    sum += (query[i] as number) * (values[(packed[i * 2] as number) | ((packed[i * 2 + 1] as number) << 8)] as number);
  return sum;
}

const floatView = new Float32Array(1);
const bitsView = new Uint32Array(floatView.buffer);

/** Rounds to nearest; components of unit vectors never overflow. */
function toHalf(value: number): number {
  floatView[0] = value;
  const bits = bitsView[0] ?? 0;
  const sign = (bits >>> 16) & 0x8000;
  const exponent = ((bits >>> 23) & 0xff) - 112;
  const mantissa = bits & 0x7fffff;
  if (exponent >= 31) return sign | 0x7bff;
  if (exponent <= 0) {
    if (exponent < -10) return sign;
    return sign | (((mantissa | 0x800000) + (1 << (13 - exponent))) >>> (14 - exponent));
  }
  return sign | (((exponent << 10) | (mantissa >>> 13)) + ((mantissa >>> 12) & 1));
}

let values: Float32Array | undefined;

/** Every 16-bit float's value, 256 KiB. */
function halfValues(): Float32Array {
  if (values) return values;
  values = new Float32Array(65_536);
  for (let bits = 0; bits < 65_536; bits++) {
    const exponent = (bits >>> 10) & 31;
    const fraction = (bits & 1023) / 1024;
    const size = exponent === 0 ? fraction * 2 ** -14 : (1 + fraction) * 2 ** (exponent - 15);
    values[bits] = exponent === 31 ? 0 : bits & 0x8000 ? -size : size;
  }
  return values;
}
