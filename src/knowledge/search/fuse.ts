import type { Similarities } from '../computing/similarity.ts';
import { type Ranked, sourceOfRow } from './rank.ts';
import type { Scored } from './score.ts';

/**
 * A hybrid ranking weighs this many of the best chunks by text and as many of the most similar ones. A test checks that
 * this gives .95 of the results that weighing all chunks would give.
 */
export const candidatesPerLeg = 1_000;

/**
 * Ranks the candidates of both by the sum of text score and learned similarity, each relative to its best, with the
 * weights (1 − weight) and weight. For a chunk whose source has no model, the text replaces the similarity, so that
 * models favour no source. A chunk without a word of the query needs a cosine of `cosineMin`.
 */
export function addLearned(
  text: Pick<Scored, 'ranked' | 'scoreOf'>,
  learned: Similarities,
  sources: readonly { base: number; firstOrdinal: number; modelVersion: number }[],
  { weight, cosineMin, count }: { weight: number; cosineMin: number; count: number },
): { ranked: Ranked[]; byModel: Ranked[] } {
  const byModel = learned.best(count);
  const texts = new Map(text.ranked.map(({ row, score }) => [row, score]));
  for (const { row } of byModel) if (!texts.has(row)) texts.set(row, text.scoreOf(row));
  const byRow = new Map(byModel.map(({ row, score }) => [row, score]));
  const textBest = text.ranked[0]?.score || 1;
  const learnedBest = byModel[0]?.score || 1;
  const ranked: Ranked[] = [];
  for (const [row, score] of texts) {
    if (score === 0 && learned.cosineOf(row) < cosineMin) continue;
    const textPart = score / textBest;
    const hasModel = sourceOfRow(sources, row).modelVersion > 0;
    const learnedPart = hasModel ? (byRow.get(row) ?? learned.scoreOf(row)) / learnedBest : textPart;
    ranked.push({ row, score: textPart * (1 - weight) + learnedPart * weight });
  }
  return { ranked: ranked.sort((a, c) => c.score - a.score || a.row - c.row), byModel };
}

/** Reciprocal rank fusion (Cormack et al. 2009) with this constant; CISI results are flat between 40 and 60. */
const fusionConstant = 60;

type Fused = { row: number; score: number; textRank?: number; vectorRank?: number };

/** A ranking, best first, and the weight of its ranks relative to those of the full text. */
export type WeightedRanking = { rows: readonly number[]; weight: number };

/** Fuses the ranking by text with those by vectors, one of each embedder. No row is in two of the latter. */
export function fuseRankings(text: readonly number[], vectors: readonly WeightedRanking[]): Fused[] {
  const fused = new Map<number, Fused>();
  for (const [i, row] of text.entries()) fused.set(row, { row, score: 1 / (fusionConstant + i + 1), textRank: i + 1 });
  for (const { rows, weight } of vectors)
    for (const [i, row] of rows.entries()) {
      const share = weight / (fusionConstant + i + 1);
      const known = fused.get(row);
      if (known) {
        known.score += share;
        known.vectorRank = i + 1;
      } else fused.set(row, { row, score: share, vectorRank: i + 1 });
    }
  return [...fused.values()].sort((a, c) => c.score - a.score || a.row - c.row);
}
