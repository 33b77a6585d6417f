import { isLeafBlock } from '../main/measure.ts';
import { blockNames, collect, findAll, type HtmlElement, HtmlText, textLength, textOf } from '../tree.ts';

/**
 * Removes what a reference shows beside its parts: links to their source code, buttons that run or fold them, and lines
 * of links to the pages before, after and above.
 */
export function plainTools(root: HtmlElement): void {
  const ways = new Set<HtmlElement>();
  for (const link of findAll(root, 'a')) {
    const block = isWay(link) ? blockOf(link) : undefined;
    if (block !== undefined) ways.add(block);
  }
  dropTools(root, new Set([...ways].filter(isLineOfWays)));
}

function dropTools(element: HtmlElement, lines: Set<HtmlElement>): void {
  const kept: HtmlElement['children'] = [];
  for (const child of element.children) {
    if (child.kind === 'text') kept.push(child);
    else if (isTool(child)) {
      const before = kept.at(-1);
      // `1.0.0 · source`: the sign only separates the link.
      if (before?.kind === 'text' && /[·|]\s*$/.test(before.text))
        kept[kept.length - 1] = new HtmlText(before.text.replace(/\s*[·|]\s*$/, ''));
    } else if (!lines.has(child)) {
      dropTools(child, lines);
      kept.push(child);
    }
  }
  element.children = kept;
}

const toolCharactersMax = 40;
const toolNames = /(?:^|\s)(?:srclink|test-arrow|view-source|viewcode-link|method-click-advice|hideme)(?:\s|$)/;
const sourceText = /^\[?(?:view )?(?:source|src)\]?$/i;
const sourcePath = /(?:^|\/)(?:src|_modules|src-html|blob)\//;

function isTool(element: HtmlElement): boolean {
  const { name, attributes } = element;
  if (name !== 'a' && name !== 'span' && name !== 'summary') return false;
  if (toolNames.test(attributes.class ?? '')) return textLength(element) <= toolCharactersMax;
  if (name !== 'a') return false;
  const href = attributes.href?.trim() ?? '';
  const text = textOf(element);
  if (/^javascript:/i.test(href)) return text !== '' && !/[\p{L}\p{N}]/u.test(text);
  if (sourceText.test(text)) return sourcePath.test(href);
  return text === '#' && /(?:^|\s)selflink(?:\s|$)/.test(attributes.class ?? '');
}

/** Whether a link says that it leads to another page of the same text. */
function isWay({ attributes }: HtmlElement): boolean {
  return /(?:^|\s)(?:next|prev|previous|up|contents|index)(?:\s|$)/i.test(attributes.rel ?? '');
}

function blockOf(element: HtmlElement): HtmlElement | undefined {
  let at = element.parent;
  while (at !== undefined && !blockNames.has(at.name)) at = at.parent;
  return at;
}

/** Whether a block consists of such links, with words such as "Next:" before them. */
function isLineOfWays(block: HtmlElement): boolean {
  if (/^(?:h[1-6]|body|main|article)$/.test(block.name) || !isLeafBlock(block)) return false;
  const links = collect(block, ({ name, attributes }) => name === 'a' && attributes.href !== undefined);
  const linked = links.reduce((sum, link) => sum + textLength(link), 0);
  return links.every(isWay) && textLength(block) - linked <= toolCharactersMax;
}
