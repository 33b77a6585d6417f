import { allowedBit } from './rank.ts';
import type { Scope } from './scope.ts';

/**
 * Adds the learned similarities to the text scores, in place, both as parts of their best: the sum of (1 − weight) and
 * weight. A chunk whose source has no model counts its text twice, so that models favour no source.
 */
export function addLearned(text: Float32Array, learned: Float32Array, weight: number, scope: Scope): void {
  const textScale = 1 / (largest(text) || 1);
  const learnedScale = 1 / (largest(learned) || 1);
  for (const source of scope.sources) {
    const end = source.base + source.nextOrdinal;
    for (let row = source.base + source.firstOrdinal; row < end; row++) {
      if (((scope.rows[row] as number) & allowedBit) === 0) continue;
      const score = (text[row] as number) * textScale;
      const similarity = source.modelVersion > 0 ? (learned[row] as number) * learnedScale : score;
      text[row] = score * (1 - weight) + similarity * weight;
    }
  }
}

function largest(values: Float32Array): number {
  let most = 0;
  for (let i = 0; i < values.length; i++) if ((values[i] as number) > most) most = values[i] as number;
  return most;
}

/** Reciprocal rank fusion (Cormack et al. 2009) with this constant; CISI results are flat between 40 and 60. */
const fusionConstant = 60;

type Fused = { row: number; score: number; textRank?: number; vectorRank?: number };

/** Fuses two rankings. `vectorWeight` is the weight of the embedder's ranks relative to the full text's. */
export function fuseRankings(text: readonly number[], vector: readonly number[], vectorWeight: number): Fused[] {
  const fused = new Map<number, Fused>();
  for (const [i, row] of text.entries()) fused.set(row, { row, score: 1 / (fusionConstant + i + 1), textRank: i + 1 });
  for (const [i, row] of vector.entries()) {
    const share = vectorWeight / (fusionConstant + i + 1);
    const known = fused.get(row);
    if (known) {
      known.score += share;
      known.vectorRank = i + 1;
    } else fused.set(row, { row, score: share, vectorRank: i + 1 });
  }
  return [...fused.values()].sort((a, c) => c.score - a.score || a.row - c.row);
}
