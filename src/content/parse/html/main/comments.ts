import { type HtmlElement, type HtmlText, hasAncestor, textOf } from '../tree.ts';
import { measureText } from './measure.ts';
import { commentsHeading, countedComments } from './phrases.ts';

/** A shorter text before the line may be what the comments are about, and elsewhere. */
const textBeforeMin = 250;
const lineCharactersMax = 160;
const lineNames = /^(?:h[2-6]|p|div|strong|b|legend|center|font)$/;
const headingNames = /^(?:h[2-6]|legend)$/;

/**
 * Removes the comments of readers that no name marks as such: everything from the line that announces them, if enough
 * of the given texts, or of any, stand before it. Returns whether there is such a line.
 */
export function dropComments(content: HtmlElement, texts?: Set<HtmlText>): boolean {
  const extents = measureText(content);
  let before = 0;
  const cutAfter = (element: HtmlElement): boolean => {
    for (const [at, child] of element.children.entries()) {
      if (child.kind === 'text') before += texts === undefined || texts.has(child) ? child.trimmed : 0;
      else {
        const { characters = 0, linked = 0 } = extents.get(child) ?? {};
        const isLine = characters > linked * 2 && characters <= lineCharactersMax * 2;
        const announces = before >= textBeforeMin && isLine && announcesComments(child);
        if (!announces && !cutAfter(child)) continue;
        element.children.splice(announces ? at : at + 1);
        return true;
      }
    }
    return false;
  };
  return cutAfter(content);
}

/** A link leads to the comments, and an entry of a list is one of several: "3 comments" below each post. */
function announcesComments(element: HtmlElement): boolean {
  if (!lineNames.test(element.name)) return false;
  const text = textOf(element);
  if (text.length > lineCharactersMax) return false;
  const announces = countedComments.test(text) || (headingNames.test(element.name) && commentsHeading.test(text));
  return announces && !hasAncestor(element, ({ name }) => name === 'a' || name === 'li');
}
