import type { PageType } from '../page-types.ts';
import type { HtmlElement, HtmlNode, HtmlText } from '../tree.ts';
import { textsIn } from './measure.ts';
import { segmentFeatures } from './segment-features.ts';
import { chooseSegments, promisedScore, scoreSegments } from './segment-scores.ts';
import { copySegments, findSegments, type Segment } from './segments.ts';

/** Shorter pages differ from those that the trees were fitted on, and the rules have little to remove from them. */
export const segmentsMin = 40;
const segmentsMax = 20_000;

type LearnedInput = {
  body: HtmlElement;
  title: string | undefined;
  types: Record<PageType, number>;
  type: PageType;
  /**
   * What the rules of the page's type keep: the most important input of the trees, and the result where the rules are
   * sure enough.
   */
  ruled: HtmlElement;
};

/**
 * The parts that the rules keep are used if they promise this share of the F1 that the trees' parts promise. Types
 * that are not named use only the rules.
 */
export const enoughByType: Partial<Record<PageType, number>> = { article: 0.9, product: Number.POSITIVE_INFINITY };

/** The parts of a page that the fitted trees classify as content, or what the rules keep if that is about as good. */
export function learnedContent(input: LearnedInput): HtmlElement {
  const { body, ruled, type } = input;
  const all = findSegments(body);
  const segments = all.filter(({ text }) => text !== '');
  if (segments.length < segmentsMin || all.length > segmentsMax) return ruled;
  const kept = textsIn(ruled);
  const scores = scoreSegments(segmentFeatures({ ...input, segments, kept }));
  const words = segments.map(({ text }) => countWords(text));
  const chosen = chooseSegments(scores, words);
  const byRules = segments.map(({ nodes }) => nodes.some((node) => holdsAny(node, kept)));
  const enough = enoughByType[type] ?? 0;
  if (promisedScore(scores, words, byRules) >= enough * promisedScore(scores, words, chosen)) return ruled;
  // What a rule removes from a product by name or heading, such as other products, stays removed.
  const parts = new Set(segments.filter((_segment, at) => chosen[at] && (type !== 'product' || byRules[at])));
  return copySegments(body, new Set(withPictures(all, parts).flatMap(({ nodes }): HtmlNode[] => nodes)));
}

function countWords(text: string): number {
  return text.match(/[\p{L}\p{N}_]+/gu)?.length ?? 0;
}

export function holdsAny(node: HtmlNode, texts: Set<HtmlText>): boolean {
  return node.kind === 'text' ? texts.has(node) : node.children.some((child) => holdsAny(child, texts));
}

/** A picture is content if the texts before and after it are. */
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
