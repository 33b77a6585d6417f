import type { HtmlElement } from '../tree.ts';
import { wholePage } from './whole-page.ts';

const unwanted =
  /^(?:filter|filters|filtering|facet|facets|refinement|refinements|refine|sort|sorting|sortby|orderby|sorter|compare|comparison|wishlist|quickview|quickadd|quickbuy|swatch|swatches|sidebar|sidebars|aside|leftnav|tools?|promo|promos|promotion|related|recommendations?|recommended|recently|trending|popular|partners?|testimonials?|shipping)$/;

/** Every card of a listing or a collection, with the headings and texts between them. */
export function cardsContent(body: HtmlElement): HtmlElement {
  return wholePage(body, { unwanted, keepLinkLists: true });
}
