import { type PageType, pageTypes } from '../page-types.ts';
import type { HtmlElement, HtmlNode, HtmlText } from '../tree.ts';
import { isChrome, isHidden } from './elements.ts';
import { type Extent, measureText, proseLengths, simplify } from './measure.ts';
import { isLikelyContent, isNamedChrome, isPanel, isUnlikely } from './names.ts';
import type { Segment } from './segments.ts';

type SegmentContext = {
  body: HtmlElement;
  segments: Segment[];
  title: string | undefined;
  /** The probability of each type of page. */
  types: Record<PageType, number>;
  /** The texts that the rules for the page's type keep. */
  kept: Set<HtmlText>;
};

/** Kinds of boxes around a segment. Each feature is the number of levels up to the nearest box. */
const boxKinds: [string, (element: HtmlElement) => boolean][] = [
  ['nav', ({ name, attributes }) => name === 'nav' || attributes.role === 'navigation'],
  ['header', ({ name }) => name === 'header'],
  ['footer', ({ name }) => name === 'footer'],
  ['aside', ({ name }) => name === 'aside'],
  ['form', ({ name }) => name === 'form' || name === 'fieldset'],
  ['list', ({ name }) => name === 'ul' || name === 'ol'],
  ['item', ({ name }) => name === 'li'],
  ['cell', ({ name }) => name === 'tr' || name === 'td'],
  ['main', ({ name, attributes }) => name === 'main' || attributes.role === 'main'],
  ['article', ({ name }) => name === 'article'],
  ['section', ({ name }) => name === 'section'],
  ['link', ({ name }) => name === 'a'],
  ['button', ({ name, attributes }) => name === 'button' || attributes.role === 'button'],
  ['hidden', isHidden],
  ['panel', isPanel],
  ['chrome', isChrome],
  ['named chrome', isNamedChrome],
  ['unlikely', isUnlikely],
  ['likely', isLikelyContent],
  ['property', ({ attributes }) => attributes.itemprop !== undefined],
];
const levelsMax = 50;
const ancestors = 5;

const tags = 'h1 h2 h3 h4 h5 h6 p li tr dt dd pre button label summary figcaption blockquote address div'.split(' ');
const own = 'characters,words,linked,links,digits,capitals,end,commas,price,date,heading,pictures'.split(',');
const ofAncestor = 'characters,linked,share,prose,per part,parts,alike,place,kept'.split(',');

/** The names of the features, in the order of `segmentFeatures`. */
export const featureNames: string[] = [
  ...['', 'previous ', 'next '].flatMap((which) => [...own, 'kept'].map((name) => which + name)),
  'tag',
  ...boxKinds.map(([name]) => `in ${name}`),
  ...Array.from({ length: ancestors }, (_unused, level) => ofAncestor.map((name) => `up ${level} ${name}`)).flat(),
  ...['depth', 'index', 'index share', 'offset', 'offset share', 'left', 'after title', 'characters after title'],
  ...['after prose', 'alike', 'alike characters', 'after heading', 'heading level', 'heading kept'],
  ...['in title', 'of title', 'seen', 'times'],
  ...['page characters', 'page linked', 'page prose', 'page parts', 'page kept'],
  ...pageTypes.map((type) => `type ${type}`),
];

type Box = {
  depth: number;
  levels: number[];
  extent: Extent;
  prose: number;
  parts: number;
  written: number;
  kept: number;
  alike: number;
  place: number;
};

/** The features of each segment: its text, the boxes around it, its neighbours, its position, the page. */
export function segmentFeatures({ body, segments, title, types, kept }: SegmentContext): number[][] {
  const shares = segments.map((segment) => keptShare(segment, kept));
  const boxes = measureBoxes(body, segments, shares);
  const whole = boxes.get(body);
  if (whole === undefined) return [];
  const texts = segments.map(describeText);
  const place = placeFeatures(segments, boxes, shares);
  const named = titleFeatures(segments, title);
  const page = [
    whole.extent.characters,
    ratio(whole.extent.linked, whole.extent.characters),
    ratio(whole.prose, whole.extent.characters),
    segments.length,
    ratio(whole.kept, whole.written),
    ...pageTypes.map((type) => types[type]),
  ];
  const none = own.map(() => -1);
  return segments.map(({ block }, at) => [
    ...[at, at - 1, at + 1].flatMap((other) => [...(texts[other] ?? none), shares[other] ?? -1]),
    tags.indexOf(block.name),
    ...(boxes.get(block)?.levels ?? []),
    ...ancestorFeatures(block, body, boxes),
    ...(place[at] ?? []),
    ...(named[at] ?? []),
    ...page,
  ]);
}

function ratio(part: number, whole: number): number {
  return part / Math.max(1, whole);
}

function keptShare({ nodes }: Segment, kept: Set<HtmlText>): number {
  let characters = 0;
  let found = 0;
  const visit = (node: HtmlNode): void => {
    if (node.kind === 'element') for (const child of node.children) visit(child);
    else {
      characters += node.characters;
      if (kept.has(node)) found += node.characters;
    }
  };
  for (const node of nodes) visit(node);
  return ratio(found, characters);
}

function measureBoxes(body: HtmlElement, segments: Segment[], shares: number[]): Map<HtmlElement, Box> {
  const extents = measureText(body);
  const prose = proseLengths(body);
  const boxes = new Map<HtmlElement, Box>();
  const alike = new Map<HtmlElement, { alike: number; place: number }>();
  const boxOf = (element: HtmlElement): Box => {
    const known = boxes.get(element);
    if (known !== undefined) return known;
    const parent = element === body || element.parent === undefined ? undefined : boxOf(element.parent);
    if (element.parent !== undefined && !alike.has(element)) countAlike(element.parent, alike);
    const box = {
      depth: (parent?.depth ?? -1) + 1,
      levels: boxKinds.map(([, is], at) =>
        is(element) ? 0 : Math.min(levelsMax, (parent?.levels[at] ?? levelsMax) + 1),
      ),
      extent: extents.get(element) ?? { characters: 0, linked: 0, links: 0 },
      prose: prose.get(element) ?? 0,
      parts: 0,
      written: 0,
      kept: 0,
      ...(alike.get(element) ?? { alike: 0, place: 0 }),
    };
    boxes.set(element, box);
    return box;
  };
  segments.forEach(({ block, text }, index) => {
    for (const at of upwards(block, body)) {
      const box = boxOf(at);
      box.parts += 1;
      box.written += text.length;
      box.kept += (shares[index] ?? 0) * text.length;
    }
  });
  return boxes;
}

function* upwards(element: HtmlElement, body: HtmlElement): Generator<HtmlElement> {
  for (let at: HtmlElement | undefined = element; at !== undefined; at = at.parent) {
    yield at;
    if (at === body) return;
  }
}

/** For each child of an element, the number of children with the same tag and first class, and its place among them. */
function countAlike(parent: HtmlElement, found: Map<HtmlElement, { alike: number; place: number }>): void {
  const groups = new Map<string, { alike: number; place: number }[]>();
  for (const child of parent.children) {
    if (child.kind !== 'element') continue;
    const kind = `${child.name} ${/\S+/.exec(child.attributes.class ?? '')?.[0] ?? ''}`;
    const group = groups.get(kind) ?? [];
    if (group.length === 0) groups.set(kind, group);
    const entry = { alike: 0, place: group.length };
    group.push(entry);
    found.set(child, entry);
  }
  for (const group of groups.values()) for (const entry of group) entry.alike = group.length;
}

function ancestorFeatures(block: HtmlElement, body: HtmlElement, boxes: Map<HtmlElement, Box>): number[] {
  const features: number[] = [];
  const whole = boxes.get(body)?.extent.characters ?? 0;
  for (const at of upwards(block, body)) {
    const box = boxes.get(at);
    if (box === undefined || features.length === ancestors * ofAncestor.length) break;
    const { characters, linked } = box.extent;
    features.push(
      characters,
      ratio(linked, characters),
      ratio(characters, whole),
      ratio(box.prose, characters),
      ratio(characters, box.parts),
      box.parts,
      box.alike,
      box.place,
      ratio(box.kept, box.written),
    );
  }
  while (features.length < ancestors * ofAncestor.length) features.push(-1);
  return features;
}

const price = /(?:[$€£¥₹]|\b(?:USD|EUR|GBP|Rs\.?)\b)\s?\d|\d\s?(?:[€£¥₹]|\b(?:USD|EUR|GBP|kr)\b|zł)/;
const date =
  /\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.? \d|\b\d{1,2} (?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)|\b(?:19|20)\d\d[-/]\d|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|\b(?:ago|yesterday|today)\b/i;

/** In the order of `own`. */
function describeText({ block, nodes, text }: Segment): number[] {
  let [characters, linked, links, pictures] = [0, 0, 0, 0];
  const visit = (node: HtmlNode, inLink: boolean): void => {
    if (node.kind === 'text') {
      characters += node.characters;
      if (inLink) linked += node.characters;
      return;
    }
    const isLink = node.name === 'a';
    if (isLink) links += 1;
    if (node.name === 'img') pictures += 1;
    for (const child of node.children) visit(child, inLink || isLink);
  };
  let outer = false;
  for (let at: HtmlElement | undefined = block, level = 0; at !== undefined && level < 6; at = at.parent, level++)
    if (at.name === 'a') outer = true;
  for (const node of nodes) visit(node, outer);
  const words = text.split(' ');
  const end = /[.!?。:]["'”’)]?$/.test(text);
  return [
    text.length,
    words.length,
    ratio(linked, characters),
    links + (outer ? 1 : 0),
    ratio(text.match(/\d/g)?.length ?? 0, text.length),
    ratio(words.filter((word) => /^\p{Lu}/u.test(word)).length, words.length),
    end ? (text.endsWith(':') ? 2 : 1) : 0,
    text.match(/[,;]/g)?.length ?? 0,
    text.length < 400 && price.test(text) ? 1 : 0,
    text.length < 200 && date.test(text) ? 1 : 0,
    headingLevel(block),
    pictures,
  ];
}

function headingLevel({ name }: HtmlElement): number {
  return /^h[1-6]$/.test(name) ? Number(name[1]) : 0;
}

const proseCharactersMin = 150;

/** Where the segment is: in the page, after its title, after the last long text, below which heading. */
function placeFeatures(segments: Segment[], boxes: Map<HtmlElement, Box>, shares: number[]): number[][] {
  const offsets: number[] = [];
  let total = 0;
  for (const { text } of segments) {
    offsets.push(total);
    total += text.length;
  }
  const title = segments.findIndex(({ block, text }) => block.name === 'h1' && text !== '');
  const lastProse = segments.findLastIndex(({ block, text }) => {
    const { characters = 0, linked = 0 } = boxes.get(block)?.extent ?? {};
    return text.length > proseCharactersMin && linked < characters * 0.3;
  });
  let heading = -1;
  return segments.map(({ block }, at) => {
    const offset = offsets[at] ?? 0;
    let alike = 0;
    let alikeCharacters = 0;
    for (let up: HtmlElement | undefined = block; up !== undefined; up = up.parent) {
      const box = boxes.get(up);
      if (box === undefined) break;
      if (box.alike >= 3 && box.alike > alike) [alike, alikeCharacters] = [box.alike, box.extent.characters];
    }
    const features = [
      boxes.get(block)?.depth ?? 0,
      at,
      at / segments.length,
      offset,
      ratio(offset, total),
      total - offset,
      title < 0 ? -9_999 : at - title,
      title < 0 ? -99_999 : offset - (offsets[title] ?? 0),
      at - lastProse,
      alike,
      alikeCharacters,
      heading < 0 ? -1 : at - heading,
      heading < 0 ? -1 : headingLevel(segments[heading]?.block ?? block),
      shares[heading] ?? -1,
    ];
    if (headingLevel(block) > 0) heading = at;
    return features;
  });
}

/** How much of the segment is in the page's title and vice versa, and how often its text occurs. */
function titleFeatures(segments: Segment[], title: string | undefined): number[][] {
  const inTitle = new Set(simplify(title ?? '').split(' '));
  const times = new Map<string, number>();
  const texts = segments.map(({ text }) => simplify(text));
  for (const text of texts) times.set(text, (times.get(text) ?? 0) + 1);
  const seen = new Map<string, number>();
  return texts.map((text) => {
    const words = text.split(' ');
    const found = words.filter((word) => inTitle.has(word));
    const before = seen.get(text) ?? 0;
    seen.set(text, before + 1);
    return [found.length / words.length, new Set(found).size / inTitle.size, before, times.get(text) ?? 0];
  });
}
