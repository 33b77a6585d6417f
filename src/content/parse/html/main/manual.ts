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
  if (textLength(whole) > textLength(article) * missedShareMin) return whole;
  removeNamed(whole, isComments);
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
const linkedShareOfLeadMax = 0.3;

/** The name and the synopsis above the first part that is kept, up to the title or to what is no text. */
function leadTexts(whole: HtmlElement, kept: Set<HtmlText>, title: string): Set<HtmlText> {
  const blocks = collect(whole, isLeafBlock).filter((block) => textLength(block) > 0);
  const lead = new Set<HtmlText>();
  for (let at = blocks.findIndex((block) => [...textsIn(block)].some((text) => kept.has(text))) - 1; at >= 0; at--) {
    const block = blocks[at];
    if (block === undefined || !isLead(block, title)) break;
    for (const text of textsIn(block)) if (text.trimmed > 0) lead.add(text);
  }
  return lead;
}

function isLead(block: HtmlElement, title: string): boolean {
  if (/^h[1-6]$/.test(block.name)) return block.name !== 'h1' && simplify(textOf(block)) !== title;
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
