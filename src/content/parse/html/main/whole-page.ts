import {
  blockNames,
  collect,
  findAll,
  findFirst,
  type HtmlElement,
  type HtmlNode,
  hasAncestor,
  textLength,
  textOf,
} from '../tree.ts';
import { hiddenShareMax, isChrome, isHidden, isOverlay } from './elements.ts';
import {
  clone,
  detachAll,
  dropRepeats,
  type Extent,
  isLeafBlock,
  measureText,
  removeNamed,
  removeWhere,
} from './measure.ts';
import { hasName, isNamed, isNamedChrome, isPanel, isSlide, questions } from './names.ts';
import { panelIds, partsBelowToggles } from './panels.ts';

type WholePageOptions = {
  /**
   * Boxes that are not content on this type of page. `holdsText` tells whether a box holds running text and not links
   * to other pages.
   */
  isUnwanted?: (element: HtmlElement, holdsText: () => boolean) => boolean;
  /** Notices are content, and so is what a manual says twice: notes, examples of code, names of types in short links. */
  isManual?: boolean;
  /** Lists of links are content, as in an index. */
  keepLinkLists?: boolean;
};

/** Small print, notices and forms that pages of offers have beside their text. */
const note = /^(?:disclaimers?|feedback|feedbacks|infotips?|tooltips|alerts?|errors?|legal|tags|dropdowns?|promobar)$/;

/** A copy of the page with all its sections and cards, without the parts that every page of the site repeats. */
export function wholePage(body: HtmlElement, options: WholePageOptions = {}): HtmlElement {
  const copy = clone(body, undefined);
  let extents = measureText(copy);
  const belowToggles = partsBelowToggles(copy, extents);
  keepButtonText(copy);
  let whole = extents.get(copy) ?? nothing;
  const panels = panelIds(body);
  const isConcealed = (element: HtmlElement): boolean =>
    (isHidden(element) || isOverlay(element)) &&
    !isPanel(element) &&
    !isSlide(element) &&
    !panels.has(element.attributes.id ?? '') &&
    !belowToggles.has(element) &&
    (extents.get(element)?.characters ?? 0) <= whole.characters * hiddenShareMax;
  removeWhere(copy, (element) => isConcealed(element) || isChrome(element));
  extents = measureText(copy);
  whole = extents.get(copy) ?? nothing;
  removeNamed(copy, (element) => isSurrounding(element, extents, whole));
  const titleBoxes = new Set<HtmlElement>();
  for (let at = findFirst(copy, 'h1')?.parent; at !== undefined; at = at.parent) titleBoxes.add(at);
  const dropBoxes = (isUnwanted: (element: HtmlElement) => boolean): void => {
    const cards = options.keepLinkLists ? classesOfCards(copy, isUnwanted) : new Set<string>();
    removeNamed(
      copy,
      (element) =>
        isUnwanted(element) &&
        (extents.get(element)?.characters ?? 0) < whole.characters * unwantedShareMax &&
        !cards.has(element.attributes.class ?? '') &&
        !titleBoxes.has(element) &&
        !holdsMain(element),
    );
  };
  if (!options.isManual) dropBoxes((element) => isNamed(element, note) && !hasName(element, questions));
  const { isUnwanted } = options;
  if (isUnwanted !== undefined) dropBoxes((element) => isUnwanted(element, () => isText(element, extents)));
  const region = mainRegion(copy);
  extents = measureText(region);
  dropHead(region, extents);
  dropFoot(region, extents);
  if (!options.keepLinkLists) removeWhere(region, (element) => isLinkBlock(element, extents));
  if (options.isManual) return region;
  dropRepeats(region);
  dropCalls(region, options.keepLinkLists === true);
  return region;
}

/**
 * Removes calls to action: links of a few words on their own line, such as "Get started" and "Learn more". In a list, many
 * different ones in boxes of one kind are its entries: names of classes, people, products.
 */
function dropCalls(region: HtmlElement, keepEntries: boolean): void {
  const dropped: HtmlElement[] = [];
  for (const block of collect(region, isLeafBlock)) {
    if (/^(?:h[1-6]|li|td|th|dt|dd)$/.test(block.name)) continue;
    const links = findAll(block, 'a');
    if (links.length === 0 || links.length > 2 || !links.every(isCall)) continue;
    if (links.reduce((sum, link) => sum + textLength(link), 0) >= textLength(block) - 2) dropped.push(block);
  }
  detachAll(region, keepEntries ? withoutEntries(dropped) : dropped);
  for (const parent of new Set(findAll(region, 'a').map((link) => link.parent)))
    if (parent !== undefined && !/^(?:li|td|th)$/.test(parent.name)) dropLoneCalls(parent);
}

const entriesMin = 5;
const differentShareMin = 0.5;

function withoutEntries(blocks: HtmlElement[]): HtmlElement[] {
  const kinds = Map.groupBy(blocks, kindOf);
  return [...kinds.values()].flatMap((kind) => {
    const different = new Set(kind.map(textOf)).size;
    return different >= entriesMin && different >= kind.length * differentShareMin ? [] : kind;
  });
}

const classCharactersMax = 200;

/** What boxes of one kind have in common: the names of their tags and classes, two levels up. */
function kindOf(block: HtmlElement): string {
  return [block, block.parent, block.parent?.parent]
    .map((box) => `${box?.name} ${box?.attributes.class?.slice(0, classCharactersMax)}`)
    .join('|');
}

const wordsOfCallMax = 3;

function isCall(link: HtmlElement): boolean {
  const text = textOf(link);
  return text.split(' ').length <= wordsOfCallMax && !/\d/.test(text) && findFirst(link, 'img') === undefined;
}

/**
 * Removes calls to action between blocks, on their own line. Uses one pass, because a page may have very many links.
 */
function dropLoneCalls(parent: HtmlElement): void {
  const siblings = parent.children.filter((node) => node.kind === 'element' || node.trimmed > 0);
  const dropped = new Set<HtmlNode>();
  let before: HtmlNode | undefined;
  for (const [at, node] of siblings.entries()) {
    const isAlone =
      siblings.length - dropped.size >= 2 &&
      [before, siblings[at + 1]].every(
        (near) => near?.kind !== 'text' && (near === undefined || blockNames.has(near.name)),
      );
    if (isAlone && node.kind === 'element' && node.name === 'a' && isCall(node)) dropped.add(node);
    else before = node;
  }
  if (dropped.size > 0) parent.children = parent.children.filter((node) => !dropped.has(node));
}

const questionCharactersMax = 200;

/** Keeps the text of buttons that act as headings: questions of an accordion and labels of tabs. */
function keepButtonText(root: HtmlElement): void {
  for (const button of collect(
    root,
    ({ name, attributes }) => name === 'button' || (attributes.role === 'button' && name !== 'a'),
  )) {
    const text = textOf(button);
    // Without its script, a button may contain the dialog that it opens.
    if (text.length > questionCharactersMax) continue;
    if (textLength(button) >= 25 || /^h[1-6]$/.test(button.parent?.name ?? '')) button.name = 'div';
  }
}

const nothing: Extent = { characters: 0, linked: 0, links: 0 };
/**
 * Names can be wrong: an element with this share of the page, or of its text outside of links, is not a bar or menu.
 */
const namedShareMax = 0.35;
const namedTextShareMax = 0.25;

const cardsMin = 8;

/** The classes that many boxes with a heading share: the cards of a list may be named like those beside a text. */
function classesOfCards(root: HtmlElement, isWanted: (element: HtmlElement) => boolean): Set<string> {
  const boxes = new Set<HtmlElement>();
  const counts = new Map<string, number>();
  for (const heading of collect(root, ({ name }) => /^h[2-6]$/.test(name)))
    for (let at = heading.parent; at !== undefined && !boxes.has(at); at = at.parent) {
      boxes.add(at);
      const { class: kind } = at.attributes;
      if (kind !== undefined && isWanted(at)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
  return new Set([...counts].filter(([, count]) => count >= cardsMin).map(([kind]) => kind));
}

function holdsMain(element: HtmlElement): boolean {
  return collect(element, isMarkedMain).length > 0;
}

/** Names and tags of small boxes are more reliable than those of large ones. */
function isSurrounding(element: HtmlElement, extents: Map<HtmlElement, Extent>, whole: Extent): boolean {
  const { name } = element;
  if (name === 'body' || name === 'main') return false;
  const { characters = 0, linked = 0 } = extents.get(element) ?? {};
  const share = characters / Math.max(1, whole.characters);
  const unlinkedShare = (characters - linked) / Math.max(1, whole.characters - whole.linked);
  if (name === 'footer') return isFooter(element, whole.characters - characters, share);
  if (name === 'header' && hasAncestor(element, ({ name: at }) => partNames.has(at))) return false;
  if (name === 'header')
    return (share < 0.5 && (linked > characters * 0.5 || findFirst(element, 'nav') !== undefined)) || characters < 3;
  if (name === 'aside') return share < 0.3;
  if (name === 'form') return characters < 600 && findAll(element, 'input').length > 0;
  if (!isNamedChrome(element) || holdsMain(element)) return false;
  // The choices of a closed menu may be longer than the page.
  if (name === 'details' && element.attributes.open === undefined && linked > characters * 0.5) return true;
  return share < namedShareMax && unlinkedShare < namedTextShareMax;
}

const charactersBesideFooterMin = 500;

/** On a page with few words, the footer may be most of the text. The footer of a quotation names its source. */
function isFooter(element: HtmlElement, charactersBeside: number, share: number): boolean {
  if (hasAncestor(element, ({ name }) => name === 'blockquote')) return false;
  if (share < 0.5) return true;
  return charactersBeside >= charactersBesideFooterMin && findFirst(element, 'h1') === undefined && !holdsMain(element);
}

/** Elements whose header is not that of the page. */
const partNames = new Set(['article', 'section', 'li', 'td', 'blockquote']);

/** The part that the page itself marks as its main part. */
function mainRegion(body: HtmlElement): HtmlElement {
  const extents = measureText(body);
  const unlinked = (element: HtmlElement): number => {
    const { characters = 0, linked = 0 } = extents.get(element) ?? {};
    return characters - linked;
  };
  const marked = collect(body, isMarkedMain);
  const largest = marked.sort((a, b) => unlinked(b) - unlinked(a))[0];
  return largest === undefined || unlinked(largest) < unlinked(body) * mainShareMin ? body : largest;
}

const mainShareMin = 0.5;
const unwantedShareMax = 0.35;

function isMarkedMain({ name, attributes }: HtmlElement): boolean {
  return name === 'main' || attributes.role === 'main';
}

const navigationLinksMin = 6;

/** Whether a block is a menu, whatever its name: many short links and nothing else. */
function isLinkBlock(element: HtmlElement, extents: Map<HtmlElement, Extent>): boolean {
  const { characters, linked, links } = extents.get(element) ?? { characters: 0, linked: 0, links: 0 };
  if (links < navigationLinksMin || linked < characters * 0.9) return false;
  return characters / links < 22 && findFirst(element, 'img') === undefined;
}

/** Removes what is above the first heading, unless it is text: a bar of links, phone numbers and switches. */
function dropHead(region: HtmlElement, extents: Map<HtmlElement, Extent>): void {
  const heading = findFirst(region, 'h1') ?? findFirst(region, 'h2');
  if (heading === undefined) return;
  const whole = extents.get(region)?.characters ?? 0;
  const above: HtmlElement[] = [];
  let characters = 0;
  for (let at = heading; at !== region && at.parent !== undefined; at = at.parent) {
    for (const sibling of at.parent.children) {
      if (sibling === at) break;
      if (sibling.kind !== 'element') continue;
      characters += extents.get(sibling)?.characters ?? 0;
      if (!holdsProse(sibling)) above.push(sibling);
    }
  }
  if (characters < whole * 0.25) detachAll(region, above);
}

const proseMin = 80;

function holdsProse(element: HtmlElement): boolean {
  return (isLeafBlock(element) ? [element] : collect(element, isLeafBlock)).some(
    (block) => textLength(block) >= proseMin,
  );
}

const linkedShareOfTextMax = 0.3;

/** Whether an element is running text with few links, in contrast to cards that lead to other pages. */
function isText(element: HtmlElement, extents: Map<HtmlElement, Extent>): boolean {
  const { characters = 0, linked = 0 } = extents.get(element) ?? {};
  return linked < characters * linkedShareOfTextMax && holdsProse(element);
}

const copyrightLine = /©|\(c\) ?(?:19|20)\d\d|all rights reserved|\bcopyright\b/i;

/** A copyright line near the end belongs to a footer, even without a footer element. It ends the page. */
function dropFoot(region: HtmlElement, extents: Map<HtmlElement, Extent>): void {
  const whole = extents.get(region)?.characters ?? 0;
  const line = collect(region, isLeafBlock).findLast(
    (block) => textLength(block) < 400 && copyrightLine.test(textOf(block)),
  );
  if (line === undefined) return;
  let foot = line;
  while (
    foot.parent !== undefined &&
    foot.parent !== region &&
    (extents.get(foot.parent)?.characters ?? 0) < whole * 0.12
  )
    foot = foot.parent;
  let after = 0;
  const rest: HtmlElement[] = [foot];
  for (let at = foot; at !== region && at.parent !== undefined; at = at.parent)
    for (const sibling of at.parent.children.slice(at.parent.children.indexOf(at) + 1)) {
      if (sibling.kind !== 'element') continue;
      after += extents.get(sibling)?.characters ?? 0;
      rest.push(sibling);
    }
  if (after < whole * 0.15) detachAll(region, rest);
}
