import { collect, detach, type HtmlElement, textLength, textOf, widthOf } from '../tree.ts';
import { isTextBlock, linkDensity, proseLengths, simplify } from './measure.ts';

/** What the title of a page says about the place of its text. */

const titleLengthMin = 8;

/** The article element that contains the page's title, if the page marks it as one. */
export function titledArticle(body: HtmlElement, title: string | undefined): HtmlElement {
  const wanted = simplify(title ?? '');
  if (wanted === '') return body;
  const prose = proseLengths(body);
  for (const heading of collect(body, ({ name }) => name === 'h1' || name === 'h2')) {
    const text = simplify(textOf(heading));
    if (text.length < titleLengthMin || !isTitleOfText(heading, text, wanted)) continue;
    for (let at = heading.parent; at !== undefined && at !== body; at = at.parent)
      if ((at.name === 'article' || at.attributes.itemprop === 'articleBody') && (prose.get(at) ?? 0) >= 200) return at;
  }
  return body;
}

const headingNames = /^h[1-4]$/;
const headingCharactersMax = 300;
/** The text starts within this number of paragraphs and headings below the title: after a date, an author, tools. */
const blocksBeforeTextMax = 5;
const paragraphWidthMin = 80;

/** Whether a paragraph stands below a heading that is the title of the page. */
export function hasTextBelowTitle(body: HtmlElement, title: string | undefined): boolean {
  const wanted = simplify(title ?? '');
  if (wanted.length < titleLengthMin) return false;
  const blocks = collect(body, (element) => headingNames.test(element.name) || isTextBlock(element));
  return blocks.some((block, at) => {
    if (!headingNames.test(block.name) || textLength(block) > headingCharactersMax) return false;
    return isTitle(simplify(textOf(block)), wanted) && startsText(blocks.slice(at + 1, at + 2 + blocksBeforeTextMax));
  });
}

/** Whether a heading is the title, or one of them is the other with the name of a site or a section. */
function isTitle(text: string, wanted: string): boolean {
  if (text === wanted) return true;
  const [short, long] = text.length < wanted.length ? [text, wanted] : [wanted, text];
  if (short.length < 12 || short.length < long.length * 0.4) return false;
  return long.startsWith(`${short} `) || long.endsWith(` ${short}`);
}

/** Whether a paragraph that is not a link comes before another text begins. */
function startsText(blocks: HtmlElement[]): boolean {
  for (const block of blocks) {
    if (block.name === 'h1' || block.name === 'h2') return false;
    if (headingNames.test(block.name)) continue;
    if (widthOf(textOf(block)) >= paragraphWidthMin && linkDensity(block) < 0.5) return true;
  }
  return false;
}

/** Removes the page's own title, which is returned separately. */
export function dropTitle(content: HtmlElement, title: string | undefined): void {
  const wanted = simplify(title ?? '');
  for (const heading of collect(content, ({ name }) => name === 'h1' || name === 'h2').slice(0, 3)) {
    const text = simplify(textOf(heading));
    if (text !== '' && isTitleOfText(heading, text, wanted)) detach(heading);
  }
}

function isTitleOfText(heading: HtmlElement, text: string, wanted: string): boolean {
  return text === wanted || (heading.name === 'h1' && (wanted.includes(text) || text.includes(wanted)));
}
