import type { Cache } from './cache.ts';

/** Packed vectors that were read together, one behind the other, each of a source and model and with its ordinal. */
type Slab = { owners: string[]; ordinals: Int32Array; vectors: Uint8Array };
/** Where the vectors of a source are, by ordinal from the first: a slab's number times `slabSize` plus a place in it. */
type Places = { firstOrdinal: number; slots: Uint32Array; asked: number };

/** A buffer for each vector would keep the garbage collector busy: searches of a large source read thousands. */
export type CachedVectors = { slabs: Cache<Slab>; places: Cache<Places> };

export const slabSize = 32;
const slabsMax = 2 ** 32 / slabSize;
/** Numbers begin again after `slabsMax`, so a slab says what it contains. */
let lastSlab = 0;
/** In place of a slot, which is at least `slabSize`: the vector was asked for, but not kept. */
const askedOnce = 1;
/** Once this share of a source was asked for once, that is forgotten: what is asked for that rarely is not kept. */
const askedShareMax = 1 / 16;

export type VectorsOfSource = ReturnType<typeof openVectorsOf>;

/** The cached vectors of a source with ordinals in this range. */
export function openVectorsOf(
  cache: CachedVectors,
  owner: string,
  { firstOrdinal, nextOrdinal }: { firstOrdinal: number; nextOrdinal: number },
) {
  let places = cache.places.get(owner);
  if (places === undefined || places.firstOrdinal + places.slots.length < nextOrdinal) {
    const slots = new Uint32Array(Math.ceil((nextOrdinal - firstOrdinal) * 1.1) + 64);
    if (places && places.firstOrdinal <= firstOrdinal)
      slots.set(places.slots.subarray(firstOrdinal - places.firstOrdinal));
    places = { firstOrdinal, slots, asked: places?.asked ?? 0 };
    cache.places.set(owner, places, slots);
  }
  const known = places;
  const { firstOrdinal: first, slots } = known;

  return {
    owner,

    /** Whether a vector that is not cached was asked for before, and not too long ago. */
    wasAskedFor(ordinal: number): boolean {
      if (slots[ordinal - first] !== 0) return true;
      if (known.asked >= slots.length * askedShareMax) {
        for (let i = 0; i < slots.length; i++) if (slots[i] === askedOnce) slots[i] = 0;
        known.asked = 0;
      }
      slots[ordinal - first] = askedOnce;
      known.asked += 1;
      return false;
    },

    /** The packed vector of a chunk. */
    find(ordinal: number): Uint8Array | undefined {
      const slot = slots[ordinal - first];
      if (slot === undefined || slot < slabSize) return undefined;
      const slab = cache.slabs.get(String(Math.floor(slot / slabSize)));
      const at = slot % slabSize;
      if (slab === undefined || slab.ordinals[at] !== ordinal || slab.owners[at] !== owner) return undefined;
      const size = slab.vectors.length / slab.ordinals.length;
      return slab.vectors.subarray(at * size, (at + 1) * size);
    },

    /** Says where a vector is that `addSlab` has added. */
    place(ordinal: number, slot: number): void {
      slots[ordinal - first] = slot;
    },
  };
}

/** Adds at most `slabSize` vectors, one behind the other. The bytes must not change any more. */
export function addSlab(
  cache: CachedVectors,
  places: readonly { source: VectorsOfSource; ordinal: number }[],
  vectors: Uint8Array,
): void {
  lastSlab = (lastSlab % (slabsMax - 1)) + 1;
  const slab = {
    owners: places.map(({ source }) => source.owner),
    ordinals: Int32Array.from(places, ({ ordinal }) => ordinal),
    vectors,
  };
  cache.slabs.set(String(lastSlab), slab, slab.vectors, slab.ordinals);
  for (const [at, { source, ordinal }] of places.entries()) source.place(ordinal, lastSlab * slabSize + at);
}
