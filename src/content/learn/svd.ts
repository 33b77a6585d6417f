import { multiply, multiplyTransposed, type SparseMatrix } from './sparse.ts';

/**
 * Directions computed in addition to `count`, and rounds: after four rounds, the best 64 of a text collection no
 * longer change.
 */
const spareDirections = 10;
const rounds = 4;

/**
 * The strongest right singular vectors of a matrix, at most `count`, strongest first, as the columns of a dense
 * matrix. Uses randomised subspace iteration (Halko, Martinsson and Tropp 2011). The same matrix always gives the
 * same result.
 */
export function rightSingularVectors(matrix: SparseMatrix, count: number): { width: number; vectors: Float32Array } {
  const width = Math.min(count + spareDirections, matrix.rows, matrix.columns);
  let basis = randomMatrix(matrix.columns * width);
  orthonormalise(basis, width);
  for (let round = 0; round < rounds; round++) {
    basis = multiplyTransposed(matrix, multiply(matrix, basis, width), width);
    orthonormalise(basis, width);
  }
  const { values, vectors } = symmetricEigen(gram(multiply(matrix, basis, width), width), width);
  const order = [...values.keys()].sort((a, b) => (values[b] as number) - (values[a] as number));
  const kept = order.slice(0, Math.min(count, width));
  const rotation = new Float64Array(width * kept.length);
  for (let i = 0; i < width; i++)
    for (const [j, column] of kept.entries()) rotation[i * kept.length + j] = vectors[i * width + column] as number;
  return { width: kept.length, vectors: rotate(basis, width, rotation, kept.length) };
}

/** Numbers between −½ and ½ from a fixed seed (xorshift). */
function randomMatrix(size: number): Float32Array {
  let state = 0x2545f491;
  return Float32Array.from({ length: size }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32 - 0.5;
  });
}

/** Makes the columns orthonormal, in place, by Cholesky QR. Runs twice, because once loses half of the digits. */
function orthonormalise(dense: Float32Array, width: number): void {
  for (let pass = 0; pass < 2; pass++) {
    const inverse = invertedCholesky(gram(dense, width), width);
    dense.set(rotate(dense, width, inverse, width));
  }
}

/** The dense matrix times a small matrix of `width` rows and `columns` columns. */
function rotate(dense: Float32Array, width: number, small: Float64Array, columns: number): Float32Array {
  const rows = dense.length / width;
  const product = new Float32Array(rows * columns);
  const sums = new Float64Array(columns);
  for (let row = 0; row < rows; row++) {
    sums.fill(0);
    for (let i = 0; i < width; i++) {
      const value = dense[row * width + i] as number;
      if (value === 0) continue;
      for (let j = 0; j < columns; j++) sums[j] = (sums[j] as number) + value * (small[i * columns + j] as number);
    }
    product.set(sums, row * columns);
  }
  return product;
}

/** The transposed dense matrix times itself. */
function gram(dense: Float32Array, width: number): Float64Array {
  const product = new Float64Array(width * width);
  for (let row = 0; row < dense.length; row += width)
    for (let i = 0; i < width; i++) {
      const value = dense[row + i] as number;
      if (value === 0) continue;
      for (let j = i; j < width; j++)
        product[i * width + j] = (product[i * width + j] as number) + value * (dense[row + j] as number);
    }
  for (let i = 0; i < width; i++) for (let j = 0; j < i; j++) product[i * width + j] = product[j * width + i] as number;
  return product;
}

/**
 * For a Gram matrix G = RᵀR with an upper triangular R, the inverse of R. A direction of (almost) no length becomes
 * zero.
 */
function invertedCholesky(matrix: Float64Array, width: number): Float64Array {
  const at = (values: Float64Array, row: number, column: number) => values[row * width + column] as number;
  const factor = new Float64Array(width * width);
  const usable = new Uint8Array(width);
  for (let i = 0; i < width; i++) {
    let rest = at(matrix, i, i);
    for (let k = 0; k < i; k++) rest -= at(factor, k, i) ** 2;
    if (rest <= 1e-12 * at(matrix, i, i) || rest <= 1e-300) continue;
    usable[i] = 1;
    const root = Math.sqrt(rest);
    factor[i * width + i] = root;
    for (let j = i + 1; j < width; j++) {
      let value = at(matrix, i, j);
      for (let k = 0; k < i; k++) value -= at(factor, k, i) * at(factor, k, j);
      factor[i * width + j] = value / root;
    }
  }
  const inverse = new Float64Array(width * width);
  for (let j = 0; j < width; j++) {
    if (usable[j] === 0) continue;
    inverse[j * width + j] = 1 / at(factor, j, j);
    for (let i = j - 1; i >= 0; i--) {
      if (usable[i] === 0) continue;
      let sum = 0;
      for (let k = i + 1; k <= j; k++) sum += at(factor, i, k) * at(inverse, k, j);
      inverse[i * width + j] = -sum / at(factor, i, i);
    }
  }
  return inverse;
}

const sweepsMax = 30;

/** Eigenvalues and, as columns, eigenvectors of a small symmetric matrix, by Jacobi rotations. */
function symmetricEigen(matrix: Float64Array, width: number): { values: Float64Array; vectors: Float64Array } {
  const vectors = new Float64Array(width * width);
  for (let i = 0; i < width; i++) vectors[i * width + i] = 1;
  const total = matrix.reduce((sum, value) => sum + value * value, 0);
  for (let sweep = 0; sweep < sweepsMax; sweep++) {
    let outside = 0;
    for (let p = 0; p < width; p++)
      for (let q = p + 1; q < width; q++) {
        outside += (matrix[p * width + q] as number) ** 2;
        annihilate(matrix, vectors, width, p, q);
      }
    if (outside <= 1e-24 * total) break;
  }
  return { values: Float64Array.from({ length: width }, (_value, i) => matrix[i * width + i] as number), vectors };
}

/** Applies one rotation, which makes the element (p, q) zero. */
function annihilate(matrix: Float64Array, vectors: Float64Array, width: number, p: number, q: number): void {
  const element = matrix[p * width + q] as number;
  if (element === 0) return;
  const theta = ((matrix[q * width + q] as number) - (matrix[p * width + p] as number)) / (2 * element);
  const tangent = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
  const cosine = 1 / Math.sqrt(tangent * tangent + 1);
  const sine = tangent * cosine;
  const turn = (values: Float64Array, one: number, other: number) => {
    const a = values[one] as number;
    const b = values[other] as number;
    values[one] = cosine * a - sine * b;
    values[other] = sine * a + cosine * b;
  };
  for (let k = 0; k < width; k++) turn(matrix, k * width + p, k * width + q);
  for (let k = 0; k < width; k++) turn(matrix, p * width + k, q * width + k);
  for (let k = 0; k < width; k++) turn(vectors, k * width + p, k * width + q);
}
