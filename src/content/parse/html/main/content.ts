import type { PageFacts } from '../page-signals.ts';
import { likeliestType } from '../page-type.ts';
import type { PageType } from '../page-types.ts';
import type { Structured } from '../structured.ts';
import { findFirst, type HtmlElement, type HtmlNode, type HtmlTree, textLength } from '../tree.ts';
import { articleContent } from './article.ts';
import { cardsContent } from './cards.ts';
import { dropComments } from './comments.ts';
import { embeddedContent } from './embedded.ts';
import { enoughByType, learnedContent } from './learned.ts';
import { manualContent } from './manual.ts';
import { clone, linkDensity, removeNamed, textsIn } from './measure.ts';
import { hasName, isComments } from './names.ts';
import { addStated, productContent } from './product.ts';
import { withoutShortcodes } from './shortcodes.ts';
import { streamedBody } from './streamed.ts';
import { findPosts, preloadedPosts, threadContent } from './thread.ts';
import { hasTextBelowTitle, titledArticle } from './titled.ts';
import { wholePage } from './whole-page.ts';

/** The main content of a page: what the rules for its type keep, or the parts that the fitted trees choose. */
export function mainContent(
  facts: PageFacts,
  types: Record<PageType, number>,
  description: string | undefined,
  stated: Structured,
): HtmlElement {
  const { tree, title, things } = facts;
  const body = pageBody(tree);
  const read = (type: PageType): HtmlElement => {
    const ruled = ruledContent(type, body, facts, description, stated);
    // Most articles are sure with their comments, and then surely without them: the copy is not needed.
    if (type === 'article' && !isSmallPart(ruled, body)) return ruled;
    const text = type === 'article' ? withoutComments(body, ruled) : body;
    if (!isUnsure(type, text, ruled, title)) return ruled;
    const learned = learnedContent({ body: text, title, types, type, ruled });
    const content = textLength(learned) >= enoughCharacters ? learned : ruled;
    if (type === 'product') addStated(content, stated);
    return content;
  };
  const type = likeliestType(types);
  const content = (mayBeArticle(type, types, body, title) ? ifArticle(read('article')) : undefined) ?? read(type);
  if (textLength(content) >= enoughCharacters) return content;
  // A page rendered by a script may contain its text as data.
  return embeddedContent(tree.embedded, things) ?? content;
}

/** An article beside many links looks like a list, above all without an address and metadata. */
const articleOddsMin = 0.22;
/** The same if a paragraph follows the title. */
const titledOddsMin = 0.02;

function mayBeArticle(
  type: PageType,
  types: Record<PageType, number>,
  body: HtmlElement,
  title: string | undefined,
): boolean {
  if (type !== 'listing' && type !== 'collection') return false;
  const odds = types.article / types[type];
  return odds > articleOddsMin || (odds > titledOddsMin && hasTextBelowTitle(body, title));
}

/** What the rules of articles keep of a list is mostly links. */
const linkedShareOfArticleMax = 0.15;

function ifArticle(content: HtmlElement): HtmlElement | undefined {
  return textLength(content) >= enoughCharacters && linkDensity(content) < linkedShareOfArticleMax
    ? content
    : undefined;
}

/** An article element with this share of a page's text is certainly the content. */
const articleShareMax = 0.4;

/**
 * Whether the trees are worth their time. They are not if the page itself marks an article element that contains its
 * title.
 */
export function isUnsure(type: PageType, body: HtmlElement, ruled: HtmlElement, title: string | undefined): boolean {
  if (enoughByType[type] === undefined) return false;
  if (type !== 'article') return true;
  return isSmallPart(ruled, body) && titledArticle(body, title) === body;
}

function isSmallPart(content: HtmlElement, body: HtmlElement): boolean {
  return textLength(content) < textLength(body) * articleShareMax;
}

/** The page without comments, unless the rules have found little else. Comments are often longer than the article. */
function withoutComments(body: HtmlElement, ruled: HtmlElement): HtmlElement {
  if (textLength(ruled) < enoughCharacters) return body;
  const copy = clone(body, undefined);
  removeNamed(copy, isComments);
  dropComments(copy, textsIn(ruled));
  return copy;
}

/** Boxes on service pages that show the site's newest posts. */
const otherPosts = /(?:^|-)(?:latest|recent)(?:-|\d|$)/;

/** What the rules for a type keep. */
export function ruledContent(
  type: PageType,
  body: HtmlElement,
  { title }: PageFacts,
  description: string | undefined,
  stated: Structured,
): HtmlElement {
  const article = () => articleContent(body, title, description);
  switch (type) {
    case 'article':
      return article();
    case 'documentation':
      return manualContent(body, title, description);
    case 'forum':
      return thread(body) ?? article();
    case 'service':
      return unlessEmpty(wholePage(body, { isUnwanted: (element) => hasName(element, otherPosts) }), article);
    case 'collection':
    case 'listing':
      return unlessEmpty(cardsContent(body), article);
    case 'product':
      return unlessEmpty(productContent(body, stated), article);
  }
}

const enoughCharacters = 100;

/** On a misclassified page, the rules for a type find nothing. The general rules then apply. */
function unlessEmpty(content: HtmlElement, otherwise: () => HtmlElement): HtmlElement {
  return textLength(content) >= enoughCharacters ? content : otherwise();
}

function thread(body: HtmlElement): HtmlElement | undefined {
  const found = findPosts(body);
  const posts = found.length > 0 ? found : preloadedPosts(body);
  return posts.length > 0 ? threadContent(posts) : undefined;
}

/** A page with less text may consist of what surrounds its content: then a streamed page with twice as much is read. */
const poorCharactersMax = 2_000;

/** The page's content, or its content for browsers without scripts, or as streamed to scripts, if that is longer. */
export function pageBody(tree: HtmlTree): HtmlElement {
  return withoutShortcodes(fullestBody(tree));
}

function fullestBody({ root, noscript, embedded }: HtmlTree): HtmlElement {
  const body = completeBody(root);
  let best = body;
  let length = textLength(body);
  for (const element of noscript) {
    const own = textLength(element);
    if (own > length && own >= enoughCharacters) [best, length] = [element, own];
  }
  if (length >= poorCharactersMax) return best;
  const streamed = streamedBody(embedded);
  const own = streamed === undefined ? 0 : textLength(streamed);
  return streamed !== undefined && own > length * 2 && own >= enoughCharacters ? streamed : best;
}

/** The body, including what follows its end: a stray `</body>` ends it early, and browsers ignore that. */
function completeBody(root: HtmlElement): HtmlElement {
  const body = findFirst(root, 'body');
  if (body === undefined) return root;
  const after: HtmlNode[] = [];
  for (let at = body; at.parent !== undefined; at = at.parent)
    after.push(...at.parent.children.slice(at.parent.children.indexOf(at) + 1));
  if (after.reduce((sum, node) => sum + textLength(node), 0) < enoughCharacters) return body;
  return clone({ ...body, children: [...body.children, ...after] }, undefined);
}
