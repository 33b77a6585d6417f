import { type PageFacts, pageSignals } from './page-signals.ts';
import { typeWeights } from './page-type-weights.ts';
import { type PageType, pageTypes } from './page-types.ts';

/** Fewer signals are not enough, unless one is a statement of the page itself. */
const signsMin = 10;
const statement = /^(?:schema:|items:|generator:|og:products?$)/;

/** Classifies a page: the type to which its signals give the most points. A bare page is an article. */
export function pageTypeOf(facts: PageFacts): PageType {
  const signs = pageSignals(facts);
  if (signs.size < signsMin && ![...signs].some((sign) => statement.test(sign))) return 'article';
  const points = pageTypes.map(() => 0);
  for (const sign of ['base', ...signs])
    typeWeights[sign]?.forEach((weight, at) => {
      points[at] = (points[at] ?? 0) + weight;
    });
  const best = points.indexOf(Math.max(...points));
  return pageTypes[best] ?? 'article';
}
