import type { HtmlElement } from '../tree.ts';
import { linkDensity, measureText, proseLengths } from './measure.ts';

/** The box that holds the whole text of which the best element is a part. */
export function wholeText(best: HtmlElement, body: HtmlElement, scores: Map<HtmlElement, number>): HtmlElement {
  const top = widen(climb(best, body, scores), body);
  const prose = proseLengths(body);
  const named = namedBox(top, body);
  if (named === undefined) return joinParts(top, body, prose);
  return (prose.get(named) ?? 0) >= (prose.get(top) ?? 0) * proseOfNamedMin ? named : top;
}

/** Names of the box that holds the text of an article, such as `entry-content`, `wp-block-post-content`, `postBody`. */
const textName =
  /(?:^|[\s_-])(?:article|story|post|entry|blog|news)[_-]*(?:[a-z]+[_-]+)?(?:body|text|content)(?:$|[\s_-])/i;

/** The outermost box around an element that the page names as the text of the article. */
function namedBox(top: HtmlElement, body: HtmlElement): HtmlElement | undefined {
  let found: HtmlElement | undefined;
  for (let at: HtmlElement | undefined = top; at !== undefined && at !== body; at = at.parent)
    if (
      at.attributes.itemprop === 'articleBody' ||
      textName.test(`${at.attributes.class ?? ''} ${at.attributes.id ?? ''}`)
    )
      found = at;
  return found;
}

/** A named box with less text adds captions, labels and lines about the author. */
const proseOfNamedMin = 1.15;

/** A box with at least this many times the text of its best part is a text in several parts … */
const proseOfPartsMin = 1.5;
/** … if no more than this share of the box is links, and of what it adds. */
const linkedShareMax = 0.3;
const linkedShareOfAddedMax = 0.2;

/** Moves up to the box whose parts are one text, such as the rows of a page builder. Teasers of other pages are links. */
function joinParts(top: HtmlElement, body: HtmlElement, prose: Map<HtmlElement, number>): HtmlElement {
  const extents = measureText(body);
  const linkedOfAdded = (outer: HtmlElement, inner: HtmlElement): number => {
    const [whole, part] = [extents.get(outer), extents.get(inner)];
    if (whole === undefined || part === undefined) return 1;
    return (whole.linked - part.linked) / Math.max(1, whole.characters - part.characters);
  };
  let joined = top;
  for (let at = top.parent; at !== undefined && at !== body && at.name !== 'body'; at = at.parent)
    if (
      (prose.get(at) ?? 0) >= (prose.get(joined) ?? 0) * proseOfPartsMin &&
      linkDensity(at) < linkedShareMax &&
      linkedOfAdded(at, joined) < linkedShareOfAddedMax
    )
      joined = at;
  return joined;
}

/** Moves up while the parent contains nearly the same text, or clearly more good text than the top alone. */
function climb(top: HtmlElement, body: HtmlElement, scores: Map<HtmlElement, number>): HtmlElement {
  let at = top;
  const topScore = scores.get(top) ?? 0;
  for (
    let parent = at.parent;
    parent !== undefined && parent !== body.parent && parent.name !== 'html';
    parent = parent.parent
  ) {
    const score = scores.get(parent) ?? 0;
    const only = parent.children.filter((child) => child.kind === 'element').length === 1 && parent !== body;
    if (!only && score < topScore * 0.95) break;
    at = parent;
  }
  return at;
}

/**
 * Moves up from the best element until it contains a good share of all running text, as needed on a page of many
 * equal parts.
 */
function widen(top: HtmlElement, body: HtmlElement): HtmlElement {
  const prose = proseLengths(body);
  const whole = prose.get(body) ?? 0;
  let at = top;
  // Short pages have little to remove.
  const wanted = whole * (whole < shortPageCharacters ? coverageOfShortMin : coverageMin);
  while (at !== body && at.parent !== undefined && (prose.get(at) ?? 0) < wanted) at = at.parent;
  return at;
}

const coverageMin = 0.35;
const coverageOfShortMin = 0.8;
const shortPageCharacters = 500;
