import type { Thing } from '../linked-data.ts';
import { type EmbeddedData, parseJson, streamType } from '../script-state.ts';
import { type HtmlElement, parseHtml, textLength } from '../tree.ts';
import { streamRows } from './streamed.ts';

/** A text that the page contains only as data for its script. */
const bodyCharactersMin = 300;
const valuesMax = 200_000;

/**
 * The text of a page that a script renders, from the page's data: the article body in JSON-LD, otherwise the longest
 * text in its embedded state. Undefined if there is none.
 */
export function embeddedContent(embedded: EmbeddedData[], things: Thing[]): HtmlElement | undefined {
  const stated = things
    .flatMap(({ properties }) => [properties.articleBody, properties.text, properties.recipeInstructions])
    .find((value): value is string => typeof value === 'string' && value.length >= bodyCharactersMin);
  const text = stated ?? longestText(embedded);
  if (text === undefined) return undefined;
  const html = /<(?:p|br|div|h\d|li)\b/i.test(text) ? text : text.replace(/\n+/g, '<br><br>');
  const { root } = parseHtml(html);
  return textLength(root) >= bodyCharactersMin ? { ...root, name: 'div' } : undefined;
}

function longestText(embedded: EmbeddedData[]): string | undefined {
  let longest: string | undefined;
  let values = 0;
  const visit = (value: unknown, depth: number): void => {
    values += 1;
    if (depth > 30 || values > valuesMax) return;
    if (typeof value === 'string') {
      if (value.length > (longest?.length ?? bodyCharactersMin) && isProse(value)) longest = value;
    } else if (typeof value === 'object' && value !== null)
      for (const member of Object.values(value)) visit(member, depth + 1);
  };
  for (const { type, text } of embedded) {
    if (type !== streamType && !/ld\+json/i.test(type)) visit(parseJson(text), 0);
  }
  for (const row of streamRows(embedded).values()) visit(row, 0);
  return longest;
}

/** Whether a text consists of sentences, with or without tags, and is not code, a list of identifiers or an address. */
function isProse(value: string): boolean {
  const start = value.slice(0, 2_000);
  if (/^\s*(?:[{[]|https?:|data:|function|import |\(\)|var |const )/.test(start)) return false;
  const words = start.replace(/<[^>]*>/g, ' ').match(/[\p{L}]+/gu) ?? [];
  return (
    words.length >= 30 && /\p{L}[.!?。]["')\s<]/u.test(start) && !/[{};]\s*\n?.*[{};]/.test(start.replace(/&\w+;/g, ''))
  );
}
