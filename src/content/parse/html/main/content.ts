import type { PageType } from '../page-type.ts';
import { findFirst, type HtmlElement, type HtmlTree, textOf } from '../tree.ts';
import { articleContent } from './article.ts';
import { cardsContent } from './cards.ts';
import { productContent } from './product.ts';
import { findPosts, preloadedPosts, threadContent } from './thread.ts';
import { wholePage } from './whole-page.ts';

/** The part of a page that a reader came for, by the type of the page. */
export function mainContent(
  tree: HtmlTree,
  type: PageType,
  title: string | undefined,
  description: string | undefined,
): HtmlElement {
  const body = pageBody(tree);
  const article = (): HtmlElement => articleContent(body, title, description);
  switch (type) {
    case 'article':
    case 'documentation':
      return article();
    case 'forum':
      return thread(body) ?? article();
    case 'service':
      return orElse(wholePage(body), article);
    case 'collection':
    case 'listing':
      return orElse(cardsContent(body), article);
    case 'product':
      return orElse(productContent(body), article);
  }
}

const enoughCharacters = 200;

/** The rules of a type give nothing on a page that was taken for another: the general ones then do. */
function orElse(content: HtmlElement, otherwise: () => HtmlElement): HtmlElement {
  return textOf(content).length >= enoughCharacters ? content : otherwise();
}

function thread(body: HtmlElement): HtmlElement | undefined {
  const found = findPosts(body);
  const posts = found.length > 0 ? found : preloadedPosts(body);
  return posts.length > 0 ? threadContent(posts) : undefined;
}

/** What the page shows; or what it shows without scripts, where that says more. */
export function pageBody({ root, noscript }: HtmlTree): HtmlElement {
  const body = findFirst(root, 'body') ?? root;
  let best = body;
  let length = textOf(body).length;
  for (const element of noscript) {
    const own = textOf(element).length;
    if (own > length) [best, length] = [element, own];
  }
  return best;
}
