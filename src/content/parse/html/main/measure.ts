import { blockNames, collect, type HtmlElement, type HtmlNode, type HtmlText, textLength, textOf } from '../tree.ts';
import { isUnlikely } from './names.ts';

const inlineNames = new Set(
  'span b strong i em u font small sub sup mark code abbr cite q time s ins big label'.split(' '),
);

/** The number of characters of running text in each element: text outside of links, in runs of some length. */
export function proseLengths(body: HtmlElement): Map<HtmlElement, number> {
  const lengths = new Map<HtmlElement, number>();
  const visit = (element: HtmlElement): number => {
    let sum = 0;
    let own = 0;
    for (const child of element.children) {
      if (child.kind === 'text') own += child.trimmed;
      else if (child.name !== 'a') {
        const inner = visit(child);
        if (inlineNames.has(child.name)) own += inner;
        else sum += inner;
      }
    }
    // In an inline element, any text counts. The block around it decides.
    const length = inlineNames.has(element.name) ? own + sum : sum + (own >= 25 ? own : 0);
    lengths.set(element, length);
    return length;
  };
  visit(body);
  return lengths;
}

/** The share of an element's text that is in links to other pages. Links within the page count less. */
export function linkDensity(element: HtmlElement): number {
  let length = 0;
  let linked = 0;
  const visit = (at: HtmlElement, weight: number): void => {
    for (const child of at.children) {
      if (child.kind === 'text') {
        length += child.characters;
        linked += child.characters * weight;
      } else if (child.name === 'a') visit(child, child.attributes.href?.startsWith('#') ? 0.3 : 1);
      else visit(child, weight);
    }
  };
  visit(element, 0);
  return length === 0 ? 0 : linked / length;
}

export type Extent = { characters: number; linked: number; links: number };

/** Text and linked text of each element, measured in one walk. */
export function measureText(root: HtmlElement): Map<HtmlElement, Extent> {
  const extents = new Map<HtmlElement, Extent>();
  const visit = (element: HtmlElement): Extent => {
    const sum = { characters: 0, linked: 0, links: 0 };
    for (const child of element.children) {
      if (child.kind === 'text') {
        sum.characters += child.characters;
        continue;
      }
      const inner = visit(child);
      sum.characters += inner.characters;
      sum.linked += inner.linked;
      sum.links += inner.links;
    }
    if (element.name === 'a') {
      sum.linked = sum.characters;
      sum.links = 1;
    }
    extents.set(element, sum);
    return sum;
  };
  visit(root);
  return extents;
}

/** The texts of an element. Copies of a tree share them, so that they show what of a page is in a copy. */
export function textsIn(element: HtmlElement): Set<HtmlText> {
  const found = new Set<HtmlText>();
  const visit = (node: HtmlNode): void => {
    if (node.kind === 'text') found.add(node);
    else for (const child of node.children) visit(child);
  };
  visit(element);
  return found;
}

/** Reduces text for comparisons to letters and digits in lower case. */
export function simplify(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}

export function clone(element: HtmlElement, parent: HtmlElement | undefined): HtmlElement {
  const copy: HtmlElement = {
    kind: 'element',
    name: element.name,
    attributes: element.attributes,
    children: [],
    parent,
  };
  for (const child of element.children) copy.children.push(child.kind === 'text' ? child : clone(child, copy));
  return copy;
}

/** Removes the elements that `drop` selects, outermost first. */
export function removeWhere(root: HtmlElement, drop: (element: HtmlElement) => boolean): void {
  root.children = root.children.filter((child) => {
    if (child.kind === 'text') return true;
    if (drop(child)) return false;
    removeWhere(child, drop);
    return true;
  });
}

/**
 * The same for parts that are chosen by their names. Names say nothing about code, whose highlighter names the parts of
 * a language, nor about a heading, whose id consists of its words: only small parts of a heading are removed.
 */
export function removeNamed(root: HtmlElement, drop: (element: HtmlElement) => boolean): void {
  root.children = root.children.filter((child) => {
    if (child.kind === 'text' || isCode(child)) return true;
    if (isHeading(child)) {
      const most = textLength(child) / 2;
      removeWhere(child, (part) => (isUnlikely(part) || drop(part)) && textLength(part) < most);
      return true;
    }
    if (drop(child)) return false;
    removeNamed(child, drop);
    return true;
  });
}

function isHeading({ name }: HtmlElement): boolean {
  return name.length === 2 && /^h[1-6]$/.test(name);
}

function isCode({ name }: HtmlElement): boolean {
  return name === 'pre' || name === 'code';
}

/** Detaches many elements in one walk: detaching one at a time would search among its siblings each time. */
export function detachAll(root: HtmlElement, elements: HtmlElement[]): void {
  if (elements.length === 0) return;
  const detached = new Set(elements);
  removeWhere(root, (element) => detached.has(element));
  for (const element of elements) element.parent = undefined;
}

/** Whether an element contains text and no block: a paragraph, a cell, a heading, a button. */
export function isLeafBlock(element: HtmlElement): boolean {
  return blockNames.has(element.name) && !holdsBlock(element);
}

function holdsBlock(element: HtmlElement): boolean {
  return element.children.some(
    (child) => child.kind === 'element' && (blockNames.has(child.name) || holdsBlock(child)),
  );
}

/**
 * Drops repeated text: sliders contain copies of their slides, and pages the same text for narrow and wide screens.
 * Removes texts of at least `charactersMin` characters that occurred before, if at least `runMin` of them follow each
 * other. What an item of a list has in common with a few others stays in each, unless the item is a copy.
 */
export function dropRepeats(root: HtmlElement, { charactersMin = 40, runMin = 1 } = {}): void {
  const items = new Map<string, HtmlElement | undefined>();
  const times = new Map<string, number>();
  const shared = new Map<HtmlElement, number>();
  const repeated: { block: HtmlElement; text: string; item: HtmlElement | undefined }[] = [];
  let run: typeof repeated = [];
  const endRun = (): void => {
    if (run.length >= runMin) for (const one of run) repeated.push(one);
    run = [];
  };
  for (const block of collect(root, isLeafBlock)) {
    const text = textOf(block);
    const length = textLength(block);
    if (length < charactersMin) continue;
    const item = itemOf(block);
    times.set(text, (times.get(text) ?? 0) + 1);
    if (!items.has(text)) {
      endRun();
      items.set(text, item);
    } else if (item === undefined || item === items.get(text)) run.push({ block, text, item: undefined });
    else {
      run.push({ block, text, item });
      shared.set(item, (shared.get(item) ?? 0) + length);
    }
  }
  endRun();
  const extents = shared.size === 0 ? undefined : measureText(root);
  const isCopy = (item: HtmlElement): boolean =>
    (shared.get(item) ?? 0) >= (extents?.get(item)?.characters ?? 0) * copiedShareMin;
  const copies = new Set([...shared.keys()].filter(isCopy));
  const stays = ({ text, item }: (typeof repeated)[number]): boolean =>
    item !== undefined && !copies.has(item) && (times.get(text) ?? 0) <= sharedTimesMax;
  detachAll(
    root,
    repeated.filter((one) => !stays(one)).map(({ block }) => block),
  );
}

/** What more items than this say is a notice of a control in each of them. */
const sharedTimesMax = 20;
/** An item with this share of repeated text is a copy of another. */
const copiedShareMin = 0.8;
const itemNames = new Set(['li', 'tr', 'dd', 'article']);

/** The item of a list or row of a table that an element is in. */
function itemOf(element: HtmlElement): HtmlElement | undefined {
  let at: HtmlElement | undefined = element;
  while (at !== undefined && !itemNames.has(at.name)) at = at.parent;
  return at;
}

/** Boxes that may contain text themselves. */
export const boxNames = new Set(['div', 'section', 'article', 'main', 'td', 'body', 'center']);

/** Elements that directly contain running text: paragraphs, and boxes used as paragraphs. */
export function isTextBlock(element: HtmlElement): boolean {
  if (element.name === 'p' || element.name === 'pre' || element.name === 'blockquote') return true;
  if (element.name === 'li' || element.name === 'dd')
    return element.children.some((child) => child.kind === 'text' && child.trimmed > 25);
  if (!boxNames.has(element.name)) return false;
  const own = element.children.reduce(
    (sum, child) => sum + (child.kind === 'text' ? child.trimmed : inlineNames.has(child.name) ? textLength(child) : 0),
    0,
  );
  return own > 80;
}
