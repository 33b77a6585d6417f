import type { PageType } from '../page-types.ts';
import type { HtmlElement, HtmlNode, HtmlText } from '../tree.ts';
import { segmentFeatures } from './segment-features.ts';
import { chooseSegments, scoreSegments } from './segment-scores.ts';
import { copySegments, findSegments, type Segment } from './segments.ts';

/** Short pages are unlike those that the trees were fitted on, and their rules have little to remove. */
const segmentsMin = 40;
const segmentsMax = 20_000;

export type LearnedInput = {
  body: HtmlElement;
  title: string | undefined;
  types: Record<PageType, number>;
  /** What the rules of the page's type keep: the most important hint, and the result for pages that are too large. */
  ruled: HtmlElement;
};

/** The parts of a page that both the rules of its type and the fitted trees take for content. */
export function learnedContent({ body, title, types, ruled }: LearnedInput): HtmlElement {
  const all = findSegments(body);
  const segments = all.filter(({ text }) => text !== '');
  if (segments.length < segmentsMin || all.length > segmentsMax) return ruled;
  const texts = textsIn(ruled);
  const scores = scoreSegments(segmentFeatures({ body, segments, title, types, kept: texts }));
  const chosen = chooseSegments(
    scores,
    segments.map(({ text }) => countWords(text)),
  );
  // What a rule leaves out by name or heading, such as other products, stays out.
  const kept = new Set(segments.filter(({ nodes }, at) => chosen[at] && nodes.some((node) => holdsAny(node, texts))));
  return copySegments(body, new Set(withPictures(all, kept).flatMap(({ nodes }): HtmlNode[] => nodes)));
}

function countWords(text: string): number {
  return text.match(/[\p{L}\p{N}_]+/gu)?.length ?? 0;
}

export function textsIn(element: HtmlElement): Set<HtmlText> {
  const found = new Set<HtmlText>();
  const visit = (node: HtmlNode): void => {
    if (node.kind === 'text') found.add(node);
    else for (const child of node.children) visit(child);
  };
  visit(element);
  return found;
}

function holdsAny(node: HtmlNode, texts: Set<HtmlText>): boolean {
  return node.kind === 'text' ? texts.has(node) : node.children.some((child) => holdsAny(child, texts));
}

/** A picture is content where the texts before and after it are. */
function withPictures(all: Segment[], kept: Set<Segment>): Segment[] {
  const chosen: Segment[] = [];
  let pictures: Segment[] = [];
  let before = true;
  for (const segment of all) {
    if (segment.text === '') {
      pictures.push(segment);
      continue;
    }
    const isKept = kept.has(segment);
    if (before && isKept) chosen.push(...pictures);
    if (isKept) chosen.push(segment);
    pictures = [];
    before = isKept;
  }
  return before ? [...chosen, ...pictures] : chosen;
}
