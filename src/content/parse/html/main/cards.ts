import { collect, findAll, findFirst, type HtmlElement, textLength, textOf } from '../tree.ts';
import { detachAll, isLeafBlock } from './measure.ts';
import { isComments, isNamed } from './names.ts';
import { wholePage } from './whole-page.ts';

const unwanted =
  /^(?:wishlist|quickview|quickadd|quickbuy|swatch|swatches|sidebar|sidebars|aside|leftnav|tools?|promo|promos|promotion|related|recommendations?|recommended|recently|trending|popular|partners?|testimonials?|shipping)$/;

/** Questions below the cards often share the design of the filters, and their names. */
const filter =
  /^(?:filter|filters|filtering|facet|facets|refinement|refinements|refine|sort|sorting|sortby|orderby|sorter|compare|comparison)$/;

/** Every card of a listing or a collection, with the headings and texts between them. */
export function cardsContent(body: HtmlElement): HtmlElement {
  const content = wholePage(body, {
    isUnwanted: (element, holdsText) =>
      isNamed(element, unwanted) || (isComments(element) && holdsText()) || (isNamed(element, filter) && !holdsText()),
    keepLinkLists: true,
  });
  detachAll(
    content,
    collect(content, isLeafBlock).filter((block) => label.test(textOf(block)) || isChoice(block)),
  );
  return content;
}

const choiceCharactersMax = 80;

/** Whether a line is the label of a box to tick: a filter, or a switch to compare products. */
function isChoice(block: HtmlElement): boolean {
  const length = textLength(block);
  if (length > choiceCharactersMax || findFirst(block, 'a') !== undefined) return false;
  const labels = block.name === 'label' ? [block] : findAll(block, 'label');
  return labels.reduce((sum, one) => sum + textLength(one), 0) > length / 2;
}

/** Buttons of a card, and labels whose value was removed. */
const label =
  /^(?:(?:add|added) to (?:cart|bag|basket|compare|wish ?list)|compare|comparer|vergleichen|quick (?:view|shop|add|buy|look)|aperçu rapide|(?:choose|select|view) options|(?:regular|sale|unit) price|unit price ?\/ ?per|coming soon)[.:]?$/i;
