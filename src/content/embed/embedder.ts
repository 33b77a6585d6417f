import { ModelFailure } from '../models/service.ts';
import type { StemLanguage } from '../terms.ts';

/** Turns texts into vectors. One instance serves the whole process. */
export type Embedder = {
  /** Names the vector space: vectors of different models are never compared. */
  readonly model: string;
  readonly dimensions: number;
  /** Whether embedding takes microseconds and cannot fail, so that a document can be embedded before it is written. */
  readonly local: boolean;
  /** The language of the built-in embedder. A parser process computes its vectors together with the chunks. */
  readonly builtIn?: StemLanguage;
  /**
   * The weight of a rank by these vectors relative to a rank by full text when both are fused: 1 for a model that
   * knows meanings, less for one that sees only spellings.
   */
  readonly fusionWeight: number;
  /** The cosine below which a text counts as unrelated, unless a search sets its own. */
  readonly similarityFloor: number;
  /** The maximum number of texts in one call. */
  readonly batchTexts: number;
  /**
   * Returns unit-length vectors in the order of the texts. Throws EmbeddingError if that fails after its own retries,
   * or the signal's reason if the signal is aborted.
   * `purpose` lets models that are trained for it treat a question and a passage differently.
   */
  embed(texts: string[], purpose: 'passage' | 'query', signal?: AbortSignal): Promise<Float32Array[]>;
};

/** The embedder is down, refuses, or returns something unusable. Work that needs it waits and tries again. */
export class EmbeddingError extends ModelFailure {
  override readonly name = 'EmbeddingError';
}

/** Scales a vector to length 1, in place. A zero vector stays zero. */
export function normalize(vector: Float32Array): Float32Array {
  let sum = 0;
  for (let i = 0; i < vector.length; i++) sum += (vector[i] as number) * (vector[i] as number);
  if (sum === 0) return vector;
  const scale = 1 / Math.sqrt(sum);
  for (let i = 0; i < vector.length; i++) vector[i] = (vector[i] as number) * scale;
  return vector;
}
