import { type PageFacts, pageSignals } from './page-signals.ts';
import { typeWeights } from './page-type-weights.ts';

export const pageTypes = ['article', 'documentation', 'service', 'forum', 'collection', 'listing', 'product'] as const;
export type PageType = (typeof pageTypes)[number];

/** What kind of page this is: the type to which the signs of the page give the most points. */
export function pageTypeOf(facts: PageFacts): PageType {
  const points = pageTypes.map(() => 0);
  for (const sign of ['base', ...pageSignals(facts)])
    typeWeights[sign]?.forEach((weight, at) => {
      points[at] = (points[at] ?? 0) + weight;
    });
  const best = points.indexOf(Math.max(...points));
  return pageTypes[best] ?? 'article';
}
