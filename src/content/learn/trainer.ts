import { unpackPostings } from '../postings.ts';
import { isStopTerm, type StemLanguage } from '../terms.ts';
import { codeHeaderBytes, frequencyWeight, packChunk, packWord } from './codes.ts';
import { Entries } from './sparse.ts';
import { rightSingularVectors } from './svd.ts';

/** What the model is trained on: chunks of the source, by their ordinals. */
type Sample = {
  languages: StemLanguage[];
  dimensions: number;
  firstOrdinal: number;
  /** One byte per ordinal from the first: 1 for a chunk of the sample. */
  taken: Uint8Array;
};

/** Words in fewer chunks than this carry no information about other words. */
const chunksPerWordMin = 2;
/** Only the most frequent words are kept. */
const wordsMax = 120_000;
const entriesMax = 32_000_000;

/**
 * Learns from a source's own chunks which words belong together, by latent semantic analysis (Deerwester et al.
 * 1990): the singular vectors of the matrix of chunks and words, weighted by (1 + ln frequency) · ln(N / df). The
 * vector of a chunk or a query is the sum of its words' vectors, so texts that were not part of the training can be
 * folded in.
 */
export class Trainer {
  readonly #sample: Sample;
  readonly #rowOf: Int32Array;
  readonly #rows: number;
  #entries = new Entries();
  /** The number of each word, in how many chunks of the sample it occurs, and how often. */
  readonly #words = new Map<string, number>();
  #chunkCounts: number[] = [];
  #occurrences: number[] = [];
  /** After training: the position of each kept word among the vectors. */
  #places = new Map<string, number>();
  #vectors = new Float32Array(0);
  #width = 0;

  constructor(sample: Sample) {
    this.#sample = sample;
    this.#rowOf = new Int32Array(sample.taken.length).fill(-1);
    let rows = 0;
    for (let i = 0; i < sample.taken.length; i++) if (sample.taken[i] === 1) this.#rowOf[i] = rows++;
    this.#rows = rows;
  }

  /** Adds some or all of a word's postings. */
  addPostings(term: string, postings: Uint8Array): void {
    if (this.#sample.languages.some((language) => isStopTerm(term, language))) return;
    const { ordinals, tallies } = unpackPostings(postings);
    let word = this.#words.get(term);
    for (let i = 0; i < ordinals.length; i++) {
      const row = this.#rowOf[(ordinals[i] as number) - this.#sample.firstOrdinal] ?? -1;
      if (row < 0 || this.#entries.count >= entriesMax) continue;
      if (word === undefined) {
        word = this.#words.size;
        this.#words.set(term, word);
        this.#chunkCounts.push(0);
        this.#occurrences.push(0);
      }
      const frequency = (tallies[i] as number) >>> 1;
      this.#entries.add(row, word, frequencyWeight(frequency));
      this.#chunkCounts[word] = (this.#chunkCounts[word] as number) + 1;
      this.#occurrences[word] = (this.#occurrences[word] as number) + frequency;
    }
  }

  /** Computes the vectors of words. Returns the number of words that have one. */
  train(): number {
    // Sorted, because postings arrive in any order and the same source must always give the same model.
    const kept = [...this.#words]
      .filter(([, word]) => (this.#chunkCounts[word] as number) >= chunksPerWordMin)
      .sort(([a, i], [b, j]) => (this.#chunkCounts[j] as number) - (this.#chunkCounts[i] as number) || (a < b ? -1 : 1))
      .slice(0, wordsMax)
      .map(([, word]) => word);
    const columnOf = new Int32Array(this.#words.size).fill(-1);
    const scales = new Float32Array(this.#words.size);
    for (const [column, word] of kept.entries()) {
      columnOf[word] = column;
      scales[word] = Math.log(this.#rows / (this.#chunkCounts[word] as number));
    }
    const matrix = this.#entries.toMatrix(this.#rows, kept.length, columnOf, scales);
    this.#entries = new Entries();
    const { width, vectors } = rightSingularVectors(matrix, this.#sample.dimensions);
    // Dimensions that the sample does not fill stay zero, so that every vector has the same size.
    const { dimensions } = this.#sample;
    this.#vectors = new Float32Array(kept.length * dimensions);
    for (const [column, word] of kept.entries())
      for (let i = 0; i < width; i++)
        this.#vectors[column * dimensions + i] = (vectors[column * width + i] as number) * (scales[word] as number);
    this.#width = dimensions;
    this.#quantise();
    for (const [term, word] of this.#words) {
      const column = columnOf[word] as number;
      if (column >= 0) this.#places.set(term, column);
    }
    return kept.length;
  }

  /** Chunks are folded in with the stored form of the vectors, here and elsewhere. */
  #quantise(): void {
    const packed = Buffer.alloc(codeHeaderBytes + this.#width);
    for (let from = 0; from < this.#vectors.length; from += this.#width) {
      packWord(this.#vectors, from, this.#width, packed);
      const scale = packed.readFloatLE(0);
      for (let i = 0; i < this.#width; i++) this.#vectors[from + i] = packed.readInt8(codeHeaderBytes + i) * scale;
    }
  }

  /** The vectors of some words from a position on, and the average frequency of each word in a chunk. */
  readWords(from: number, count: number): { terms: string[]; frequencies: number[]; vectors: Buffer } {
    const terms = [...this.#places.keys()].slice(from, from + count);
    const size = codeHeaderBytes + this.#width;
    const vectors = Buffer.alloc(terms.length * size);
    const frequencies = terms.map((term, i) => {
      packWord(this.#vectors, (this.#places.get(term) as number) * this.#width, this.#width, vectors, i * size);
      return (this.#occurrences[this.#words.get(term) as number] as number) / Math.max(1, this.#rows);
    });
    return { terms, frequencies, vectors };
  }

  /** Starts to fold in the chunks of a range of ordinals. */
  startFolding(from: number, to: number): Folding {
    return new Folding(this.#places, this.#vectors, this.#width, from, to);
  }
}

/** Sums the words' vectors of each chunk in a range of ordinals. */
class Folding {
  readonly #places: Map<string, number>;
  readonly #vectors: Float32Array;
  readonly #width: number;
  readonly #from: number;
  /** In double precision, so that the order of the postings does not change the stored result. */
  readonly #sums: Float64Array;

  constructor(places: Map<string, number>, vectors: Float32Array, width: number, from: number, to: number) {
    this.#places = places;
    this.#vectors = vectors;
    this.#width = width;
    this.#from = from;
    this.#sums = new Float64Array((to - from) * width);
  }

  addPostings(term: string, postings: Uint8Array): void {
    const place = this.#places.get(term);
    if (place === undefined) return;
    const { ordinals, tallies } = unpackPostings(postings);
    const width = this.#width;
    const vector = this.#vectors.subarray(place * width, (place + 1) * width);
    for (let i = 0; i < ordinals.length; i++) {
      const at = ((ordinals[i] as number) - this.#from) * width;
      if (at < 0 || at >= this.#sums.length) continue;
      const weight = frequencyWeight((tallies[i] as number) >>> 1);
      for (let j = 0; j < width; j++)
        this.#sums[at + j] = (this.#sums[at + j] as number) + weight * (vector[j] as number);
    }
  }

  /** The codes of all chunks in the range, one after another. */
  finish(): Buffer {
    const size = codeHeaderBytes + this.#width;
    const count = this.#sums.length / Math.max(1, this.#width);
    const codes = Buffer.alloc(count * size);
    for (let i = 0; i < count; i++) packChunk(this.#sums, i * this.#width, this.#width, codes, i * size);
    return codes;
  }
}
