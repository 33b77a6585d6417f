import {
  blockNames,
  collect,
  detach,
  findAll,
  type HtmlElement,
  type HtmlNode,
  type HtmlText,
  hasAncestor,
  textLength,
  textOf,
  textStart,
  widthOf,
} from '../tree.ts';
import { dropComments } from './comments.ts';
import { hiddenShareMax, isChrome, isHidden } from './elements.ts';
import {
  boxNames,
  clone,
  detachAll,
  dropRepeats,
  type Extent,
  isTextBlock,
  linkDensity,
  measureText,
  proseLengths,
  removeNamed,
  removeWhere,
  simplify,
  textsIn,
} from './measure.ts';
import { hasName, isCaption, isComments, isLede, isLikelyContent, isNote, isUnlikely, questions } from './names.ts';
import { panelIds, partsBelowToggles } from './panels.ts';
import { callToAction, pointerStart, relatedHeading } from './phrases.ts';
import { wholeText } from './text-box.ts';
import { dropTitle, titledArticle } from './titled.ts';

/**
 * Extracts the main content of a page. Text scores the elements that contain it, by length, commas, links and the
 * names of the elements around it (after Arc90's Readability). The element with the highest score and its likely
 * siblings are kept, and what is not content in them (sharing, related links, author boxes, forms …) is removed. If
 * little is left, it tries again with fewer removals.
 */
export function articleContent(
  body: HtmlElement,
  title: string | undefined,
  description: string | undefined,
  { isManual = false } = {},
): HtmlElement {
  const panels = panelIds(body);
  const cuts: Cut[] = [
    { unlikely: true, comments: true, panels, isManual },
    { unlikely: false, comments: true, panels, isManual },
    { unlikely: false, comments: false, panels, isManual },
  ];
  const attempts = cuts.map((cut) => () => {
    const copy = clone(body, undefined);
    const lede = findLede(copy, description);
    removeNoise(copy, cut);
    const content = gather(titledArticle(copy, title));
    // Comments follow a text that is whole, however short it is.
    const isWhole = cut.comments && !isManual && dropComments(content);
    removeNonText(content, title, cut);
    if (lede !== undefined) addLede(content, lede);
    return { content, isWhole };
  });
  const prose = proseLengths(body).get(body) ?? 0;
  let best: { content: HtmlElement; length: number } | undefined;
  for (const [at, attempt] of attempts.entries()) {
    // Comments may be longer than a short article. A page without other text consists of them, such as a thread.
    if (at === attempts.length - 1 && best !== undefined && best.length >= someCharacters) break;
    const { content, isWhole } = attempt();
    const length = textLength(content);
    if (best === undefined || length > best.length * 2) best = { content, length };
    if (isWhole && length >= someCharacters) break;
    // A short text may be the whole page, or what is left of a page whose names mislead.
    if (best.length >= enoughCharacters && (best.length >= surelyEnoughCharacters || best.length > prose * 0.15)) break;
  }
  if (best !== undefined && best.length >= 1) return best.content;
  return body;
}

/**
 * The summary between title and text that many pages have in a separate box: found by its name, or because it starts
 * like the page's description.
 */
function findLede(body: HtmlElement, description: string | undefined): HtmlElement | undefined {
  const start = simplify(description ?? '').slice(0, 50);
  const heading = findAll(body, 'h1').at(-1);
  let afterHeading = heading === undefined;
  for (const element of collect(body, () => true)) {
    if (element === heading) afterHeading = true;
    if (!ledeNames.has(element.name)) continue;
    const described = start.length >= 30 && startsAs(textStart(element, 160), start);
    if (!described && !(afterHeading && isLede(element))) continue;
    const text = textOf(element);
    if (text.length < 50 || text.length > 1_200 || linkDensity(element) > 0.4 || isHidden(element)) continue;
    if (
      hasAncestor(
        element,
        (at) =>
          isChrome(at) ||
          isHidden(at) ||
          at.name === 'aside' ||
          at.name === 'footer' ||
          at.name === 'li' ||
          at.name === 'a',
      )
    )
      continue;
    return clone(element, undefined);
  }
  return undefined;
}

/**
 * Whether a text starts with these simplified words. Most texts differ in the first letter, which is cheap to
 * compare.
 */
function startsAs(text: string, start: string): boolean {
  const first = /[\p{L}\p{N}]/u.exec(text)?.[0] ?? '';
  return start.startsWith(first.toLowerCase()) && simplify(text).startsWith(start);
}

const ledeNames = new Set(['p', 'div', 'h2', 'h3', 'strong', 'section']);

function addLede(content: HtmlElement, lede: HtmlElement): void {
  if (holdsMostOf(content, lede) || simplify(textOf(content)).includes(simplify(textOf(lede)).slice(0, 80))) return;
  const paragraph: HtmlElement = { ...lede, name: lede.name === 'div' || lede.name === 'section' ? 'div' : 'p' };
  content.children.unshift(paragraph);
  paragraph.parent = content;
}

/** A part of the content may lack what was removed from it, such as a caption, and is there nevertheless. */
function holdsMostOf(content: HtmlElement, part: HtmlElement): boolean {
  const texts = [...textsIn(part)];
  const kept = textsIn(content);
  const sum = (some: HtmlText[]): number => some.reduce((total, { trimmed }) => total + trimmed, 0);
  return sum(texts.filter((text) => kept.has(text))) > sum(texts) / 2;
}

type Cut = {
  /** Whether to remove elements whose names suggest that they are not content. */
  unlikely: boolean;
  /** Whether to remove comments. */
  comments: boolean;
  /** The ids of closed parts that are content. */
  panels: Set<string>;
  /** Whether the page is a manual, which points to its other pages as part of its text. */
  isManual: boolean;
};

const someCharacters = 150;
const enoughCharacters = 400;
const surelyEnoughCharacters = 1_500;

/** Removes elements that are never content and, unless lenient, those whose names say so. */
function removeNoise(body: HtmlElement, cut: Cut): void {
  const prose = proseLengths(body);
  const whole = Math.max(1, prose.get(body) ?? 0);
  const extents = measureText(body);
  const belowToggles = partsBelowToggles(body, extents);
  const concealedMax = (extents.get(body)?.characters ?? 0) * hiddenShareMax;
  removeWhere(body, (element) => {
    if (isChrome(element)) return true;
    const isPanel =
      element.attributes.role === 'tabpanel' ||
      cut.panels.has(element.attributes.id ?? '') ||
      belowToggles.has(element);
    return isHidden(element) && !isPanel && (extents.get(element)?.characters ?? 0) <= concealedMax;
  });
  if (cut.comments) removeNamed(body, isComments);
  if (!cut.unlikely) return;
  // Names can be wrong: an element with half of the page's text is not a sidebar.
  removeNamed(
    body,
    (element) =>
      isUnlikely(element) &&
      !isQuestions(element) &&
      (prose.get(element) ?? 0) < whole * 0.4 &&
      !(cut.isManual && isChapter(element)),
  );
}

/** Answers are hidden until a script opens them, and have names such as `accordion-content hidden`. */
function isQuestions(element: HtmlElement): boolean {
  return hasName(element, questions);
}

/** Whether the element is a chapter of a manual. Its id has the words of its heading: "cookies" is its subject. */
function isChapter({ name, attributes, children }: HtmlElement): boolean {
  if ((name !== 'section' && name !== 'div') || attributes.id === undefined || attributes.class !== undefined)
    return false;
  const heading = children.find((child) => child.kind === 'element' && /^h[1-6]$/.test(child.name));
  return heading !== undefined && simplify(textOf(heading)) === simplify(attributes.id);
}

/** Scores all text. Returns the element with the highest score, together with the siblings that belong to it. */
function gather(body: HtmlElement): HtmlElement {
  const scores = new Map<HtmlElement, number>();
  for (const block of collect(body, isTextBlock)) {
    const text = textOf(block);
    const width = widthOf(text);
    if (width < 25) continue;
    const commas = text.match(/[,、，،]/g)?.length ?? 0;
    const score = 1 + commas + Math.min(width / 100, 3);
    let level = 0;
    // A box that contains text itself is a paragraph and its own container.
    for (
      let at = boxNames.has(block.name) ? block : block.parent;
      at !== undefined && level < 5;
      at = at.parent, level++
    ) {
      const share = level === 0 ? 1 : level === 1 ? 2 : level * 3;
      scores.set(at, (scores.get(at) ?? startingScore(at)) + score / share);
    }
  }
  for (const [element, score] of scores) scores.set(element, score * (1 - linkDensity(element)));
  let top = body;
  let topScore = 0;
  for (const [element, score] of scores)
    if (score > topScore) {
      top = element;
      topScore = score;
    }
  if (topScore === 0) return body;
  return withSiblings(wholeText(top, body, scores), scores);
}

function startingScore(element: HtmlElement): number {
  const byName: Record<string, number> = {
    div: 5,
    article: 10,
    main: 8,
    section: 5,
    pre: 3,
    td: 3,
    blockquote: 3,
    ol: -3,
    ul: -3,
    dl: -3,
    dd: -3,
    dt: -3,
    li: -3,
    form: -3,
    th: -5,
    body: 0,
  };
  return (byName[element.name] ?? 0) + (isLikelyContent(element) ? 25 : 0) - (isUnlikely(element) ? 25 : 0);
}

function withSiblings(top: HtmlElement, scores: Map<HtmlElement, number>): HtmlElement {
  const parent = top.parent;
  if (parent === undefined) return top;
  const threshold = Math.max(10, (scores.get(top) ?? 0) * 0.2);
  const joined: HtmlElement = { kind: 'element', name: 'div', attributes: {}, children: [], parent: undefined };
  for (const sibling of parent.children) {
    if (sibling !== top && !(sibling.kind === 'element' && belongs(sibling, top, threshold, scores))) continue;
    joined.children.push(sibling);
    sibling.parent = joined;
  }
  return joined;
}

function belongs(sibling: HtmlElement, top: HtmlElement, threshold: number, scores: Map<HtmlElement, number>): boolean {
  const sameClass = sibling.attributes.class !== undefined && sibling.attributes.class === top.attributes.class;
  const bonus = sameClass ? (scores.get(top) ?? 0) * 0.2 : 0;
  if ((scores.get(sibling) ?? 0) + bonus >= threshold) return true;
  if (sibling.name !== 'p') return false;
  const text = textOf(sibling);
  const density = linkDensity(sibling);
  const width = widthOf(text);
  return width > 80 ? density < 0.25 : density === 0 && /[.!?。]$/.test(text) && width > 20;
}

/** Single paragraphs and short lines may be repeated on purpose: rows of a plan, refrains. */
const copies = { charactersMin: 120, runMin: 2 };

/** Removes what is not text from the chosen element. */
function removeNonText(content: HtmlElement, title: string | undefined, cut: Cut): void {
  const whole = textLength(content);
  for (const name of ['form', 'fieldset', 'footer', 'aside', 'input', 'button', 'select', 'textarea'])
    detachAll(
      content,
      findAll(content, name).filter((element) => !isSubstantial(element, whole) && !isNote(element)),
    );
  dropTitle(content, title);
  captionsToImages(content);
  if (!cut.isManual) dropRepeats(content, copies);
  if (cut.unlikely && !cut.isManual) {
    dropPointers(content);
    dropRelated(content);
    dropLists(content);
  }
  dropEmptyHeadings(content);
}

function isSubstantial(element: HtmlElement, whole: number): boolean {
  const length = textLength(element);
  return length > whole * 0.4 && linkDensity(element) < 0.3;
}

/** A caption is not running text. If its image has no description, the caption becomes the description. */
function captionsToImages(content: HtmlElement): void {
  const whole = textLength(content);
  for (const caption of collect(content, isCaption)) {
    if (caption.parent === undefined || isSubstantial(caption, whole)) continue;
    const image = findAll(caption, 'img')[0] ?? findAll(caption.parent, 'img')[0];
    const text = textOf(caption);
    if (image !== undefined && !image.attributes.alt?.trim() && text !== '')
      image.attributes = { ...image.attributes, alt: text.slice(0, 500) };
    const pictures = findAll(caption, 'img');
    const parent = caption.parent;
    const at = parent.children.indexOf(caption);
    detach(caption);
    parent.children.splice(at, 0, ...pictures.map((picture) => Object.assign(picture, { parent })));
  }
}

/** Removes lines that only point elsewhere: "Read more: …", "Related: …", "Follow us on …". */
function dropPointers(content: HtmlElement): void {
  const extents = measureText(content);
  const pointers: HtmlElement[] = [];
  for (const line of collect(content, ({ name }) =>
    ['p', 'div', 'li', 'h2', 'h3', 'h4', 'h5', 'h6', 'strong', 'span', 'center'].includes(name),
  )) {
    if (isLong(line, extents, 300)) continue;
    const text = textOf(line);
    if (text.length > 300 || text.length < 3) continue;
    const linked = linkDensity(line);
    if (pointerStart.test(text) && (linked > 0.3 || (linked > 0 && text.length < 120))) pointers.push(line);
    else if (line.name !== 'span' && line.name !== 'strong' && text.length < 220 && callToAction.test(text))
      pointers.push(line);
  }
  detachAll(content, pointers);
}

/** Removes what follows a heading such as "You may also like": it is about other pages. */
function dropRelated(content: HtmlElement): void {
  const total = textLength(content);
  const extents = measureText(content);
  for (const heading of collect(content, ({ name }) => /^(?:h[2-6]|strong|b|label|p|div|span|dt)$/.test(name))) {
    if (isLong(heading, extents, 50) || !isAttached(heading, content)) continue;
    const text = textOf(heading);
    if (text.length > 50 || !relatedHeading.test(text) || !startsLine(heading)) continue;
    // The box that starts with the heading, unless it is most of the page.
    let box = heading;
    while (box.parent !== undefined && box.parent !== content && isFirst(box) && textLength(box.parent) < total * 0.4)
      box = box.parent;
    const siblings = box.parent?.children ?? [];
    const after = siblings.slice(siblings.indexOf(box) + 1);
    // The announced links are in the heading's box, or directly after it up to the first text that announces nothing.
    if (textLength(box) <= textLength(heading) + 20)
      for (const node of after) {
        if (node.kind !== 'element') continue;
        if (!announcesPages(node)) break;
        detach(node);
      }
    detach(box);
  }
}

/** Whether a line begins with an element: within a sentence, "recommended" announces nothing. */
function startsLine(element: HtmlElement): boolean {
  for (let at = element; at.parent !== undefined && !blockNames.has(at.name); at = at.parent) {
    const siblings = at.parent.children;
    const before = siblings
      .slice(0, siblings.indexOf(at))
      .findLast((node) => textLength(node) > 0 || (node.kind === 'element' && node.name === 'br'));
    if (before !== undefined) return before.kind === 'element' && (before.name === 'br' || blockNames.has(before.name));
  }
  return true;
}

const textOfAnnouncementMax = 250;

/** Whether an element consists of links to pages, each with a few words. */
function announcesPages(element: HtmlElement): boolean {
  if (/^h\d$/.test(element.name)) return false;
  const text = textOf(element);
  if (text === '') return true;
  const links = findAll(element, 'a').length;
  return (
    linkDensity(element) > 0.3 ||
    (links > 0 && element.name !== 'p' && textLength(element) / links < textOfAnnouncementMax)
  );
}

/** A cheap check before the text is assembled. It has a margin, because dropping lines removes some text. */
function isLong(element: HtmlElement, extents: Map<HtmlElement, Extent>, characters: number): boolean {
  return (extents.get(element)?.characters ?? 0) > characters * 2;
}

function isAttached(element: HtmlElement, content: HtmlElement): boolean {
  for (let at: HtmlElement | undefined = element; at !== undefined; at = at.parent) if (at === content) return true;
  return false;
}

function isFirst(element: HtmlElement): boolean {
  for (const sibling of element.parent?.children ?? []) {
    if (sibling === element) return true;
    if (textLength(sibling) > 0) return false;
  }
  return true;
}

/** Removes boxes that are mostly links: tables of contents, related articles, tags. */
function dropLists(content: HtmlElement): void {
  const extents = measureText(content);
  const boxes = collect(content, ({ name }) =>
    ['ul', 'ol', 'div', 'section', 'table', 'dl', 'p'].includes(name),
  ).reverse();
  for (const box of boxes) {
    if (box.parent === undefined || isLong(box, extents, 3_000)) continue;
    const text = textOf(box);
    if (text === '' || text.length > 3_000) continue;
    const anchors = findAll(box, 'a').length;
    const density = linkDensity(box);
    if (box.name === 'p') {
      if (density > 0.9 && anchors > 0 && text.length < 200) detach(box);
      continue;
    }
    if (anchors > 1 && density > 0.6) detach(box);
  }
}

/** Removes headings without content: they announced something that was removed. */
function dropEmptyHeadings(content: HtmlElement): void {
  const flat: HtmlElement[] = [];
  const visit = (element: HtmlElement): void => {
    for (const child of element.children) {
      if (child.kind === 'element') {
        if (/^h[1-6]$/.test(child.name)) flat.push(child);
        else if (hasOwnContent(child)) flat.push(child);
        visit(child);
      }
    }
  };
  visit(content);
  const empty: HtmlElement[] = [];
  let next: HtmlElement | undefined;
  for (const element of flat.reverse()) {
    const isDeeper = next !== undefined && (!/^h[1-6]$/.test(next.name) || next.name > element.name);
    if (/^h[1-6]$/.test(element.name) && !isDeeper) empty.push(element);
    else next = element;
  }
  detachAll(content, empty);
}

function hasOwnContent(element: HtmlElement): boolean {
  return (
    element.name === 'img' || element.children.some((child: HtmlNode) => child.kind === 'text' && child.trimmed > 0)
  );
}
