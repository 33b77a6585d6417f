import type { Structured } from '../structured.ts';
import {
  collect,
  detach,
  type HtmlElement,
  type HtmlNode,
  HtmlText,
  hasAncestor,
  textLength,
  textOf,
} from '../tree.ts';
import { measureText, simplify } from './measure.ts';
import { hasName, isNamed } from './names.ts';
import { findSegments } from './segments.ts';
import { wholePage } from './whole-page.ts';

const unwanted =
  /^(?:related|relateds|recommendations?|recommended|recommend|recommender|upsells?|crosssells?|sells|similar|also|recently|viewed|recent|complementary|reviews?|swatch|swatches|wishlist|compare|comparison|thumbnails?|sidebar|promo|promos|financing|affirm|klarna|qna|quickview|trending|bestsellers?|quantity|qty)$/;

const slider = /^(?:carousel|slider|gallery)$/;
const opinions = /(?:^|-)(?:reviews?|testimonials?)(?:-|$)/;

const unwantedPhrase =
  /(?:^|-)(?:related|recommended|recommendations?|similar|upsells?|cross-?sells?|recently-viewed|also-(?:like|bought|viewed|love)|you-may)(?:-|$)/;

const otherProducts =
  /^\W*(?:you (?:may|might) (?:also )?(?:like|love|enjoy|need)|you(?:'|’)ll (?:also )?love|(?:customers?|people|shoppers|others) (?:who|also|viewed|bought)\b.*|related (?:products?|items?)|similar (?:products?|items?)\b.*|recommended\b.*|recommendations?|(?:frequently )?bought together|frequently bought.*|recently viewed\b.*|more (?:from|like|to love|items)\b.*|pairs? well with|complete the (?:look|set)|best ?sellers?|trending.*|new arrivals|(?:customer |product |verified )?reviews?(?: \(\d+\))?|customer (?:ratings|reviews)\b.*|ratings? (?:&|and) reviews?|explore (?:more|related)\b.*|sponsored\b.*|shop (?:similar|more|the look)\b.*|questions? (?:&|and) answers?|other .{0,20}(?:buy|bought|view)\b.*|compare (?:with )?similar\b.*|from the same.*|accessories you.*|sign up\b.*|people also\b.*|what customers say|write a review|.*\balso (?:like|viewed|bought|love)\b.*)\W*$/i;

/** The content of a product page: title, price, description and specifications, without other products and reviews. */
export function productContent(body: HtmlElement, stated: Structured): HtmlElement {
  const content = wholePage(body, {
    isUnwanted: (element, holdsText) =>
      isNamed(element, unwanted, unwantedPhrase) ||
      (isNamed(element, slider) && (hasName(element, opinions) || !holdsText())),
  });
  dropSections(content, otherProducts);
  dropLinks(content);
  addStated(content, stated);
  return content;
}

/** Removes lines and cards that are links: they are about other pages. */
function dropLinks(content: HtmlElement): void {
  const dropped = new Set<HtmlNode>();
  const isLink = (element: HtmlElement): boolean => element.name === 'a';
  for (const { block, nodes, text } of findSegments(content)) {
    if (text === '' || block.name === 'h1') continue;
    if (isLink(block) || hasAncestor(block, isLink) || nodes.every(isLinkOrBlank))
      for (const node of nodes) dropped.add(node);
  }
  const visit = (element: HtmlElement): void => {
    element.children = element.children.filter((child) => !dropped.has(child));
    for (const child of element.children) if (child.kind === 'element') visit(child);
  };
  visit(content);
}

function isLinkOrBlank(node: HtmlNode): boolean {
  return node.kind === 'text' ? node.trimmed === 0 : node.name === 'a';
}

/** Adds facts that the page states only in its metadata: name, price and description. */
export function addStated(content: HtmlElement, { name, price, currency, description }: Structured): void {
  const shown = simplify(textOf(content));
  const lines: [string, string][] = [];
  const add = (tag: string, text: string | undefined, told: string | undefined): void => {
    const start = simplify(told ?? '').slice(0, 60);
    if (text !== undefined && start !== '' && !shown.includes(start)) lines.push([tag, text]);
  };
  add('h1', name, name);
  if (price !== undefined) add('p', [price, currency].filter((one) => one !== undefined).join(' '), wholePart(price));
  if (sharedWords(description ?? '', shown) < shownShareMin) add('p', description, description);
  for (const [tag, text] of lines.reverse()) {
    const element: HtmlElement = { kind: 'element', name: tag, attributes: {}, children: [], parent: content };
    element.children.push(new HtmlText(text));
    content.children.unshift(element);
  }
}

/** A page that has this share of the description's words shows it, perhaps in another order or with other parts. */
const shownShareMin = 0.6;

function sharedWords(text: string, shown: string): number {
  const words = new Set(simplify(text).split(' '));
  const known = new Set(shown.split(' '));
  return [...words].filter((word) => known.has(word)).length / words.size;
}

/** A price of 49.50 may be shown as 49,50 or as 49. */
function wholePart(price: string): string {
  return price.replace(/[.,]\d{1,2}$/, '');
}

/** Removes each section that such a heading starts: the box that contains the heading and little else of the page. */
function dropSections(content: HtmlElement, heading: RegExp): void {
  const extents = measureText(content);
  const whole = extents.get(content)?.characters ?? 0;
  for (const title of collect(content, ({ name }) => /^(?:h[1-6]|p|div|span|strong|legend|summary|dt)$/.test(name))) {
    if ((extents.get(title)?.characters ?? 0) > 60) continue;
    const text = textOf(title);
    if (text.length < 4 || !heading.test(text)) continue;
    let box = title;
    while (
      box.parent !== undefined &&
      box.parent !== content &&
      (extents.get(box.parent)?.characters ?? 0) < whole * 0.5 &&
      startsWith(box.parent, box)
    )
      box = box.parent;
    const following = box.parent?.children.slice(box.parent.children.indexOf(box) + 1) ?? [];
    const alone = (extents.get(box)?.characters ?? 0) <= textLength(title) + 20;
    detach(box);
    if (!alone || !/^h\d$/.test(box.name)) continue;
    for (const node of following) {
      if (node.kind !== 'element') continue;
      if (/^h\d$/.test(node.name) && node.name <= box.name) break;
      if ((extents.get(node)?.characters ?? 0) > whole * 0.4) break;
      detach(node);
    }
  }
}

function startsWith(parent: HtmlElement, child: HtmlElement): boolean {
  for (const sibling of parent.children) {
    if (sibling === child) return true;
    if (textLength(sibling) > 3) return false;
  }
  return true;
}
