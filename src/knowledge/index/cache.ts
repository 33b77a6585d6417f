/** Values of one kind in a cache. `arrays` are the arrays and buffers in a value, whose memory is its cost. */
export type Cache<V> = {
  /** The most that this and all other kinds may take together. */
  readonly bytesMax: number;
  get(key: string): V | undefined;
  set(key: string, value: V, ...arrays: (ArrayBufferView | ArrayBufferLike)[]): void;
};

/** Memory of an entry in the map, and of a typed array in addition to its bytes (measured on Node 24). */
const [entryBytes, arrayBytes] = [160, 240];

export type OpenCache = <V>(name: string) => Cache<V>;

/** Opens named caches for several kinds of values. They share one limit: each may use what the others leave free. */
export function openCaches(bytesMax: number): OpenCache {
  const all = new ByteCache<unknown>(bytesMax);
  return <V>(name: string) => ({
    bytesMax,
    // Only this cache writes keys that begin with its name.
    get: (key) => all.get(`${name}/${key}`) as V | undefined,
    set: (key, value, ...arrays) => all.set(`${name}/${key}`, value, memoryOf(arrays)),
  });
}

/** The bytes of the buffers: a view keeps the whole buffer that it belongs to. */
function memoryOf(arrays: readonly (ArrayBufferView | ArrayBufferLike)[]): number {
  const buffers = new Set(arrays.map((array) => (ArrayBuffer.isView(array) ? array.buffer : array)));
  return [...buffers].reduce((sum, { byteLength }) => sum + byteLength, arrays.length * arrayBytes);
}

/** Copies bytes into their own buffer. Rows of the database are views of the 64 KiB buffers of its connection. */
export function copyBytes(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}

const turns = new Map<string, Promise<unknown>>();

/** Runs work after earlier work with the same key, so that a value is loaded or extended once. */
export async function inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
  const before = turns.get(key);
  const turn = (before ?? Promise.resolve()).then(work, work);
  turns.set(key, turn);
  try {
    return await turn;
  } finally {
    if (turns.get(key) === turn) turns.delete(key);
  }
}

/** A least-recently-used cache with a limit in bytes. */
class ByteCache<V> {
  readonly #entries = new Map<string, { value: V; bytes: number }>();
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  set(key: string, value: V, valueBytes: number): void {
    this.delete(key);
    const bytes = entryBytes + key.length + valueBytes;
    if (bytes > this.#bytesMax) return;
    this.#entries.set(key, { value, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#bytesMax) return;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    this.#bytes -= entry.bytes;
    this.#entries.delete(key);
  }
}
