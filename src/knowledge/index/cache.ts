/** Values of one kind in a cache. */
export type Cache<V> = {
  get(key: string): V | undefined;
  set(key: string, value: V, bytes: number): void;
};

/** Caches for values of several kinds, by their names, that share one bound: any of them may use what the others leave. */
export function openCaches(bytesMax: number): <V>(name: string) => Cache<V> {
  const all = new ByteCache<unknown>(bytesMax);
  return <V>(name: string) => ({
    // Only this cache writes keys that begin with its name.
    get: (key) => all.get(`${name}/${key}`) as V | undefined,
    set: (key, value, bytes) => all.set(`${name}/${key}`, value, bytes),
  });
}

/** A least-recently-used cache, bounded in bytes. */
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

  set(key: string, value: V, bytes: number): void {
    this.delete(key);
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
