import { collect, type HtmlElement, type HtmlText, textLength, textOf } from '../tree.ts';
import { articleContent } from './article.ts';
import { isLeafBlock, linkDensity, removeNamed, simplify, textsIn } from './measure.ts';
import { isComments } from './names.ts';
import { wholePage } from './whole-page.ts';

/** How much more text than its article a page must have for the article to be only a part of its text. */
const missedShareMin = 1.1;

/**
 * The content of a page of a manual. Its article is found as on other pages. What the page has between two parts of it
 * also belongs to it, even if it is not running text: a synopsis, captions, examples, tables of changes.
 */
export function manualContent(
  body: HtmlElement,
  title: string | undefined,
  description: string | undefined,
): HtmlElement {
  const article = articleContent(body, title, description, { isManual: true });
  const whole = wholePage(body, { keepLinkLists: true, isManual: true });
  removeNamed(whole, isComments);
  if (textLength(whole) > textLength(article) * missedShareMin) return whole;
  const kept = textsIn(article);
  const wanted = kept.union(textsAround(whole, kept, simplify(title ?? '')));
  return wanted.size === kept.size ? article : copyTexts(body, wanted, elementsIn(whole).union(elementsIn(article)));
}

/** The texts of the whole page from the first to the last one that is kept, and those that lead to the first. */
function textsAround(whole: HtmlElement, kept: Set<HtmlText>, title: string): Set<HtmlText> {
  const texts = [...textsIn(whole)].filter(({ trimmed }) => trimmed > 0);
  const last = texts.findLastIndex((text) => kept.has(text));
  if (last === -1) return new Set();
  const lead = leadTexts(whole, kept, title);
  const first = texts.findIndex((text) => kept.has(text) || lead.has(text));
  return new Set(texts.slice(first, last + 1));
}

const leadCharactersMin = 40;
const proseMin = 80;
const linkedShareOfLeadMax = 0.3;

/** What stands between the title and the first part that is kept, such as a name and a synopsis, if it is text. */
function leadTexts(whole: HtmlElement, kept: Set<HtmlText>, title: string): Set<HtmlText> {
  const blocks = collect(whole, isLeafBlock).filter((block) => textLength(block) > 0);
  const first = blocks.findIndex((block) => [...textsIn(block)].some((text) => kept.has(text)));
  const above = blocks.slice(0, Math.max(0, first));
  const titled = above.findLastIndex((block) => isTitle(block, title));
  const lead = above.slice(titled + 1);
  const start = titled >= 0 && isLead(lead) ? 0 : lead.findLastIndex((block) => !isParagraph(block)) + 1;
  return new Set(lead.slice(start).flatMap((block) => [...textsIn(block)]));
}

function isTitle(block: HtmlElement, title: string): boolean {
  const heading = headingOf(block);
  return heading !== undefined && (heading.name === 'h1' || simplify(textOf(heading)) === title);
}

function headingOf(block: HtmlElement): HtmlElement | undefined {
  return [block, block.parent].find((at) => at !== undefined && /^h[1-6]$/.test(at.name));
}

function isLead(blocks: HtmlElement[]): boolean {
  let [all, linked] = [0, 0];
  for (const block of blocks) {
    const length = textLength(block);
    all += length;
    linked += length * linkDensity(block);
  }
  return (
    linked < all * linkedShareOfLeadMax && blocks.some((block) => block.name === 'pre' || textLength(block) >= proseMin)
  );
}

function isParagraph(block: HtmlElement): boolean {
  if (headingOf(block) !== undefined) return true;
  if (/^(?:li|td|th)$/.test(block.name) || linkDensity(block) > linkedShareOfLeadMax) return false;
  return block.name === 'pre' || textLength(block) >= leadCharactersMin;
}

/** Copies of an element share its attributes, so that they show which elements of a page are in a copy. */
function elementsIn(root: HtmlElement): Set<HtmlElement['attributes']> {
  return new Set(collect(root, () => true).map(({ attributes }) => attributes));
}

/** A copy of the page with these texts, and with the shown pictures and rules between them. */
function copyTexts(body: HtmlElement, wanted: Set<HtmlText>, shown: Set<HtmlElement['attributes']>): HtmlElement {
  let seen = 0;
  const copy = (element: HtmlElement, parent: HtmlElement | undefined): HtmlElement => {
    const name = element.name === 'button' ? 'div' : element.name;
    const part: HtmlElement = { ...element, name, children: [], parent };
    for (const child of element.children) {
      if (child.kind === 'text') {
        if (wanted.has(child)) seen += child.trimmed > 0 ? 1 : 0;
        else if (child.trimmed > 0) continue;
        part.children.push(child);
        continue;
      }
      const before = seen;
      const inner = copy(child, part);
      if (seen > before || (shown.has(child.attributes) && seen > 0 && seen < texts)) part.children.push(inner);
    }
    return part;
  };
  const texts = [...wanted].filter(({ trimmed }) => trimmed > 0).length;
  return copy(body, undefined);
}
