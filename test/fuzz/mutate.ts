/** Damages files deterministically: the same seed gives the same bytes. */
export class Mutator {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0 || 1;
  }

  /** A whole number from 0 up to but not including `below` (xorshift32, Marsaglia 2003). */
  next(below: number): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x >>> 0;
    return this.#state % Math.max(1, below);
  }

  /** Returns the file with one kind of damage. `donor` is another file, whose head may replace this one's. */
  mutate(bytes: Uint8Array, donor: Uint8Array): { kind: string; bytes: Uint8Array } {
    const copy = Buffer.from(bytes);
    switch (this.next(7)) {
      case 0:
        for (let times = 1 + this.next(40); times > 0; times--) {
          const at = this.next(copy.length);
          copy[at] = (copy[at] ?? 0) ^ (1 << this.next(8));
        }
        return { kind: 'bits', bytes: copy };
      case 1:
        return { kind: 'truncated', bytes: copy.subarray(0, this.next(copy.length)) };
      case 2:
        return { kind: 'spliced head', bytes: Buffer.concat([donor.subarray(0, 8 + this.next(64)), copy]) };
      case 3:
        return {
          kind: 'foreign head',
          bytes: Buffer.concat([donor.subarray(0, 8 + this.next(512)), copy.subarray(this.next(64))]),
        };
      case 4: {
        const at = this.next(copy.length);
        const piece = copy.subarray(at, at + 1 + this.next(4096));
        return {
          kind: 'repeated piece',
          bytes: Buffer.concat([
            copy.subarray(0, at),
            ...Array.from({ length: 1 + this.next(50) }, () => piece),
            copy.subarray(at),
          ]),
        };
      }
      case 5: {
        for (let times = 1 + this.next(6); times > 0; times--) {
          const at = this.next(Math.max(1, copy.length - 4));
          if (at + 4 <= copy.length)
            copy.writeUInt32LE([0xffffffff, 0x7fffffff, 0, 0x80000000, 0xfffffffe][this.next(5)] ?? 0, at);
        }
        return { kind: 'wild numbers', bytes: copy };
      }
      default: {
        const at = this.next(copy.length);
        return { kind: 'hole', bytes: Buffer.concat([copy.subarray(0, at), copy.subarray(at + 1 + this.next(1024))]) };
      }
    }
  }
}
