import { type PageFacts, pageSignals } from './page-signals.ts';
import { typeWeights } from './page-type-weights.ts';
import { type PageType, pageTypes } from './page-types.ts';

/** Fewer signals are not enough, unless one is a statement of the page itself. */
const signsMin = 10;
const statement = /^(?:schema:|items:|generator:|og:products?$)/;

/**
 * The probability of each type for a page, from the points of its signals. A page with too few signals is an article.
 */
export function typeShares(facts: PageFacts): Record<PageType, number> {
  const signs = pageSignals(facts);
  const bare = signs.size < signsMin && ![...signs].some((sign) => statement.test(sign));
  const certain = bare ? 'article' : statedType(signs);
  return certain === undefined ? weighSigns(signs) : sharesOf(pageTypes.map((type) => (type === certain ? 10 : 0)));
}

/** The type that the software behind a page makes certain. Its signs are too rare for weights. */
function statedType(signs: Set<string>): PageType | undefined {
  if (signs.has('generator:thread')) return 'forum';
  if (signs.has('generator:manual')) return 'documentation';
  const isManual = signs.has('generator:docs') && !signs.has('path:root') && !signs.has('path:article');
  return isManual ? 'documentation' : undefined;
}

export function weighSigns(
  signs: Set<string>,
  weights: Record<string, readonly number[]> = typeWeights,
): Record<PageType, number> {
  const points = pageTypes.map(() => 0);
  for (const sign of ['base', ...signs])
    weights[sign]?.forEach((weight, at) => {
      points[at] = (points[at] ?? 0) + weight;
    });
  return sharesOf(points);
}

function sharesOf(points: number[]): Record<PageType, number> {
  const highest = Math.max(...points);
  const odds = points.map((one) => Math.exp(one - highest));
  const total = odds.reduce((sum, one) => sum + one, 0);
  return Object.fromEntries(pageTypes.map((type, at) => [type, (odds[at] ?? 0) / total])) as Record<PageType, number>;
}

export function likeliestType(shares: Record<PageType, number>): PageType {
  return pageTypes.reduce((best, type) => (shares[type] > shares[best] ? type : best));
}
