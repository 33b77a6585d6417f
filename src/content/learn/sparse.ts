/** A sparse matrix by rows (compressed sparse rows). Dense matrices are flat arrays, row after row. */
export type SparseMatrix = {
  rows: number;
  columns: number;
  /** Where the entries of each row begin, and where those of the last row end. */
  starts: Int32Array;
  columnOf: Int32Array;
  values: Float32Array;
};

/** The entries of a matrix in any order, packed as they are added. */
export class Entries {
  count = 0;
  #rows = new Int32Array(1024);
  #columns = new Int32Array(1024);
  #values = new Float32Array(1024);

  add(row: number, column: number, value: number): void {
    if (this.count === this.#rows.length) this.#grow();
    this.#rows[this.count] = row;
    this.#columns[this.count] = column;
    this.#values[this.count] = value;
    this.count += 1;
  }

  /** The matrix with the columns that `columnOf` keeps (the others are −1), each value scaled by its column. */
  toMatrix(rows: number, columns: number, columnOf: Int32Array, scales: Float32Array): SparseMatrix {
    const starts = new Int32Array(rows + 1);
    let kept = 0;
    for (let i = 0; i < this.count; i++) {
      if ((columnOf[this.#columns[i] as number] as number) < 0) continue;
      const next = (this.#rows[i] as number) + 1;
      starts[next] = (starts[next] as number) + 1;
      kept += 1;
    }
    for (let row = 0; row < rows; row++) starts[row + 1] = (starts[row + 1] as number) + (starts[row] as number);
    const at = starts.slice();
    const placed = new Int32Array(kept);
    const values = new Float32Array(kept);
    for (let i = 0; i < this.count; i++) {
      const given = this.#columns[i] as number;
      const column = columnOf[given] as number;
      if (column < 0) continue;
      const row = this.#rows[i] as number;
      const place = at[row] as number;
      at[row] = place + 1;
      placed[place] = column;
      values[place] = (this.#values[i] as number) * (scales[given] as number);
    }
    for (let row = 0; row < rows; row++) sortRow(placed, values, starts[row] as number, starts[row + 1] as number);
    return { rows, columns, starts, columnOf: placed, values };
  }

  #grow(): void {
    const larger = <A extends Int32Array | Float32Array>(from: A, to: A): A => {
      to.set(from);
      return to;
    };
    const size = this.count * 2;
    this.#rows = larger(this.#rows, new Int32Array(size));
    this.#columns = larger(this.#columns, new Int32Array(size));
    this.#values = larger(this.#values, new Float32Array(size));
  }
}

/** Sorts a row's entries by column, because sums of floats depend on the order. */
function sortRow(columns: Int32Array, values: Float32Array, from: number, to: number): void {
  const given = new Map<number, number>();
  for (let i = from; i < to; i++) given.set(columns[i] as number, values[i] as number);
  columns.subarray(from, to).sort();
  for (let i = from; i < to; i++) values[i] = given.get(columns[i] as number) as number;
}

/** The product with a dense matrix of `width` columns. */
export function multiply(matrix: SparseMatrix, dense: Float32Array, width: number): Float32Array {
  const product = new Float32Array(matrix.rows * width);
  eachEntry(matrix, (row, column, value) => {
    const to = row * width;
    const from = column * width;
    for (let i = 0; i < width; i++) product[to + i] = (product[to + i] as number) + value * (dense[from + i] as number);
  });
  return product;
}

/** The product of the transposed matrix with a dense matrix of `width` columns. */
export function multiplyTransposed(matrix: SparseMatrix, dense: Float32Array, width: number): Float32Array {
  const product = new Float32Array(matrix.columns * width);
  eachEntry(matrix, (row, column, value) => {
    const to = column * width;
    const from = row * width;
    for (let i = 0; i < width; i++) product[to + i] = (product[to + i] as number) + value * (dense[from + i] as number);
  });
  return product;
}

function eachEntry(
  { rows, starts, columnOf, values }: SparseMatrix,
  visit: (row: number, column: number, value: number) => void,
): void {
  for (let row = 0; row < rows; row++)
    for (let i = starts[row] as number; i < (starts[row + 1] as number); i++)
      visit(row, columnOf[i] as number, values[i] as number);
}
