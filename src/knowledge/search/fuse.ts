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
  const learnedScores = new Map<number, number>();
  for (const { row, score } of byModel) learnedScores.set(row, score);
  const byText = new Set<number>();
  for (const { row } of text.ranked) byText.add(row);
  const textBest = text.ranked[0]?.score || 1;
  const learnedBest = byModel[0]?.score || 1;
  const ranked: Ranked[] = [];
  const add = (row: number, score: number) => {
    if (score === 0 && learned.cosineOf(row) < cosineMin) return;
    const textPart = score / textBest;
    const hasModel = sourceOfRow(sources, row).modelVersion > 0;
    const learnedPart = hasModel ? (learnedScores.get(row) ?? learned.scoreOf(row)) / learnedBest : textPart;
    ranked.push({ row, score: textPart * (1 - weight) + learnedPart * weight });
  };
  for (const { row, score } of text.ranked) add(row, score);
  for (const { row } of byModel) if (!byText.has(row)) add(row, text.scoreOf(row));
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
