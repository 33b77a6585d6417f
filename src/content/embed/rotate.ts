import { assemble, get, loadWith, set, simd } from '../wide-scan.ts';

const rounds = 3;
/** Room for the largest vector and its sign flips. */
const pages = 4;
type Rotation = (vector: Float32Array) => Float32Array;

const rotations = new Map<number, Rotation>();

/**
 * The rotation of vectors of one size: rounds of sign flips and a Walsh–Hadamard transform, which is not scaled, since
 * only signs are read. Values stay below size^(3/2), far inside a float's range. Takes four values at a time, in
 * WebAssembly's 128-bit instructions. The result is valid until the next call.
 * @param size a power of two between 32 and 16,384
 */
export function rotationOf(size: number): Rotation {
  const known = rotations.get(size);
  if (known) return known;
  const { buffer, run } = assemble(rotationBody(), pages);
  const values = new Float32Array(buffer, 0, size);
  const flipsAt = values.byteLength;
  const flips = new Uint32Array(buffer, flipsAt, rounds * size);
  fillFlips(flips);
  const rotate: Rotation = (vector) => {
    values.fill(0);
    values.set(vector);
    run(values.byteLength, flipsAt, rounds, 0, 0);
    return values;
  };
  rotations.set(size, rotate);
  return rotate;
}

/**
 * Random sign bits from a xorshift generator with a fixed seed. They must never change, because stored codes depend on
 * them.
 */
function fillFlips(flips: Uint32Array): void {
  let state = 0x9e3779b9;
  for (let i = 0; i < flips.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    flips[i] = state & 0x10000 ? 0 : 0x8000_0000;
  }
}

/** The variables: bytes of the vector (which is at 0), the flips of this round, rounds left, two places, half, a pair. */
const locals = { bytes: 0, flips: 1, left: 2, at: 3, end: 4, half: 5, a: 6, b: 7 };

function rotationBody(): number[] {
  const { bytes, flips, left, at, end, half, a, b } = locals;
  const [i32, v128, none] = [0x7f, 0x7b, 0x40];
  const [add, sub, xor] = [simd(0xe4), simd(0xe5), simd(0x51)];
  const store = [...simd(0x0b), 0, 0];
  const plus = (one: number, other: number) => [...get(one), ...get(other), 0x6a];
  const next = [...get(at), 0x41, 16, 0x6a, ...set(at)];
  /** Repeats while one variable is below another. */
  const whileBelow = (one: number, other: number, body: number[]) => [
    ...[0x03, none, ...body, ...get(one), ...get(other), 0x49, 0x0d, 0, 0x0b],
  ];
  /** Within four values: each plus or minus the value `by` places away. */
  const inside = (by: number) => {
    const lanes = [0, 1, 2, 3].flatMap((lane) => [0, 1, 2, 3].map((byte) => (lane ^ by) * 4 + byte));
    const minus = [0, 1, 2, 3].flatMap((lane) => [0, 0, 0, (lane & by) === 0 ? 0 : 0x80]);
    const shuffled = [...get(a), ...get(a), ...simd(0x0d), ...lanes];
    return [...shuffled, ...get(a), ...simd(0x0c), ...minus, ...xor, ...add, ...set(a)];
  };
  const flip = [
    ...[...get(at), ...loadWith(0), ...plus(flips, at), ...loadWith(0), ...xor, ...set(a)],
    ...[...inside(1), ...inside(2), ...get(at), ...get(a), ...store, ...next],
  ];
  const pair = [
    ...[...get(at), ...loadWith(0), ...set(a), ...plus(at, half), ...loadWith(0), ...set(b)],
    ...[...get(at), ...get(a), ...get(b), ...add, ...store],
    ...[...plus(at, half), ...get(a), ...get(b), ...sub, ...store, ...next],
  ];
  const blocks = [
    ...[...plus(at, half), ...set(end), ...whileBelow(at, end, pair)],
    ...[...plus(at, half), ...set(at)],
  ];
  const step = [
    ...[0x41, 0, ...set(at), ...whileBelow(at, bytes, blocks)],
    ...[...get(half), 0x41, 1, 0x74, ...set(half)],
  ];
  return [
    ...[2, 1, i32, 2, v128],
    ...[0x03, none],
    ...[0x41, 0, ...set(at), ...whileBelow(at, bytes, flip), ...plus(flips, bytes), ...set(flips)],
    ...[0x41, 16, ...set(half), ...whileBelow(half, bytes, step)],
    ...[...get(left), 0x41, 1, 0x6b, ...set(left), ...get(left), 0x0d, 0, 0x0b],
    0x0b,
  ];
}
