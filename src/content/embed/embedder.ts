import type { StemLanguage } from '../terms.ts';

/** What turns texts into vectors. One instance serves the whole process. */
export type Embedder = {
  /** Names the vector space: vectors of two models are never compared. */
  readonly model: string;
  readonly dimensions: number;
  /** Costs microseconds and cannot fail: a document can be embedded before it is written. */
  readonly local: boolean;
  /** The language of the built-in embedder, which a parser process computes beside the chunks. */
  readonly builtIn?: StemLanguage;
  /**
   * How much a rank by these vectors counts beside a rank by full text when both are fused: 1 for a model that knows
   * meanings, less for one that only sees spellings.
   */
  readonly fusionWeight: number;
  /** Cosine under which a text is taken for unrelated, where a search does not say its own. */
  readonly similarityFloor: number;
  /** How many texts one call may carry. */
  readonly batchTexts: number;
  /**
   * Unit-length vectors in the order of the texts. Throws EmbeddingError when it cannot, after its own retries, and the
   * signal's reason when that is aborted.
   * `purpose` lets models that are trained so treat a question and a passage differently.
   */
  embed(texts: string[], purpose: 'passage' | 'query', signal?: AbortSignal): Promise<Float32Array[]>;
};

/** The embedder is down, refuses, or returns what cannot be used. Work that needs it waits and tries again. */
export class EmbeddingError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'EmbeddingError';
  }
}

/** Scales in place to length 1; a zero vector stays zero. */
export function normalize(vector: Float32Array): Float32Array {
  let sum = 0;
  for (const value of vector) sum += value * value;
  if (sum === 0) return vector;
  const scale = 1 / Math.sqrt(sum);
  for (let i = 0; i < vector.length; i++) vector[i] = (vector[i] ?? 0) * scale;
  return vector;
}
