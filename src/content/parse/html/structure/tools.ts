import { type Extent, isLeafBlock, measureText, removeWhere } from '../main/measure.ts';
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
  for (const button of findAll(root, 'button')) showOperation(button);
}

const operationCharactersMax = 300;
const operation = /^(get|put|post|delete|options|head|patch|trace|query)\s*(?=[/{]|https?:)/i;
const status = /^(?:[1-5](?:\d\d|xx)|default)\b/i;

/** References of HTTP APIs are folded by buttons that name an operation (`post/users`) or a response (`404 Not found`). */
function showOperation(button: HtmlElement): void {
  if (textLength(button) > operationCharactersMax) return;
  const text = textOf(button);
  const method = operation.exec(text);
  if (method === null && !(status.test(text) && collect(button, ({ name }) => name === 'strong').length > 0)) return;
  button.name = 'p';
  button.attributes = {};
  if (method === null) return;
  const code: HtmlElement = { kind: 'element', name: 'code', attributes: {}, children: [], parent: button };
  code.children.push(new HtmlText(`${method[1]?.toUpperCase()} ${text.slice(method[0].length)}`));
  button.children = [code];
}

/**
 * Removes lines of links that a page shows above and below its text, and the table of its own contents. Changes the tree.
 * Runs after the type of the page is known, because links are signals of it.
 */
export function dropOwnLinks(root: HtmlElement): void {
  const extents = measureText(root);
  const dropped = new Set([...shownTwice(root, extents), ...ownContents(root, extents)]);
  if (dropped.size > 0) removeWhere(root, (element) => dropped.has(element));
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
const signsOfLinkMax = 8;

/** MediaWiki's links to edit a section, in any language. */
const editNames = /(?:^|\s)(?:mw-)?editsection(?:\s|$)/;
/** The line "From Wikipedia, the free encyclopedia" that MediaWiki writes below each title. */
const tagline = 'siteSub';
const toolNames =
  /(?:^|\s)(?:srclink|test-arrow|view-source|viewcode-link|method-click-advice|hideme|hide-when-js-enabled)(?:\s|$)/;
/** `In [1]:` beside a cell of a notebook. */
const promptNames = /(?:^|\s)(?:jp-(?:Input|Output)Prompt|input_prompt|output_prompt)(?:\s|$)/;
const sourceText = /^\[?(?:view )?(?:source|src)\]?$/i;
const sourcePath = /(?:^|\/)(?:src|_modules|src-html|blob)\//;

function isTool(element: HtmlElement): boolean {
  const { name, attributes } = element;
  if (attributes.id === tagline || promptNames.test(attributes.class ?? '')) return true;
  if (name !== 'a' && name !== 'span' && name !== 'summary') return false;
  if (editNames.test(attributes.class ?? '')) return true;
  if (toolNames.test(attributes.class ?? '')) return textLength(element) <= toolCharactersMax;
  if (name !== 'a') return false;
  const href = attributes.href?.trim() ?? '';
  const text = textOf(element);
  if (/^javascript:/i.test(href)) return text !== '' && !/[\p{L}\p{N}]/u.test(text);
  if (sourceText.test(text)) return sourcePath.test(href);
  return text === '#' && /(?:^|\s)selflink(?:\s|$)/.test(attributes.class ?? '');
}

/** Whether a link says that it leads to another page of the same text, by its relation or as texi2html writes. */
function isWay({ attributes }: HtmlElement): boolean {
  return (
    /(?:^|\s)(?:next|prev|previous|up|contents|index)(?:\s|$)/i.test(attributes.rel ?? '') ||
    wayTitles.test(attributes.title ?? '')
  );
}

const wayTitles =
  /^(?:(?:next|previous|up|beginning of this) (?:chapter|section)\b.*|cover \(top\) of document|table of contents|index|about \(help\))$/i;

function blockOf(element: HtmlElement): HtmlElement | undefined {
  let at = element.parent;
  while (at !== undefined && !blockNames.has(at.name)) at = at.parent;
  return at?.name === 'td' && at.parent?.name === 'tr' ? at.parent : at;
}

/** How many characters a line of links may have beside them: a word, and signs such as brackets around each. */
function signsBeside(links: number): number {
  return Math.max(toolCharactersMax, links * signsOfLinkMax);
}

/** Whether a block consists of such links, with words such as "Next:" before them. */
function isLineOfWays(block: HtmlElement): boolean {
  if (/^(?:h[1-6]|body|main|article)$/.test(block.name) || (block.name !== 'tr' && !isLeafBlock(block))) return false;
  const links = collect(block, ({ name, attributes }) => name === 'a' && attributes.href !== undefined);
  const linked = links.reduce((sum, link) => sum + textLength(link), 0);
  return links.every(isWay) && textLength(block) - linked <= signsBeside(links.length);
}

const lineOfLinks = { linksMin: 3, charactersMax: 600, charactersOfLinkMax: 25, textFactorMin: 5 } as const;

/** Lines within these are parts of a text that may well have the same part twice. */
const wholeNames = new Set(['pre', 'li', 'dd']);

/** Short lines of the same links in two places of a page, above and below its text: they lead through its site. */
function shownTwice(root: HtmlElement, extents: Map<HtmlElement, Extent>): HtmlElement[] {
  const { characters: all = 0, linked: allLinked = 0 } = extents.get(root) ?? {};
  const lines = new Map<string, HtmlElement[]>();
  const visit = (element: HtmlElement): void => {
    const { characters = 0, linked = 0, links = 0 } = extents.get(element) ?? {};
    if (links < lineOfLinks.linksMin || wholeNames.has(element.name)) return;
    const isLine =
      characters - linked <= signsBeside(links) &&
      characters <= lineOfLinks.charactersMax &&
      linked <= links * lineOfLinks.charactersOfLinkMax &&
      characters * lineOfLinks.textFactorMin <= all - allLinked;
    if (!isLine || !blockNames.has(element.name)) {
      for (const child of element.children) if (child.kind === 'element') visit(child);
      return;
    }
    const targets = findAll(element, 'a').flatMap(({ attributes }) => attributes.href ?? []);
    const key = `${textOf(element)} ${targets.join(' ')}`;
    lines.set(key, [...(lines.get(key) ?? []), element]);
  };
  visit(root);
  return [...lines.values()].filter((same) => same.length === 2).flat();
}

const contentsName = /(?:^|[\s_-])(?:toc|table-of-contents|tableofcontents)(?:[\s_-]|$)/i;

/** Lists that are named as the contents and lead only to parts of the page itself. */
function ownContents(root: HtmlElement, extents: Map<HtmlElement, Extent>): HtmlElement[] {
  const found: HtmlElement[] = [];
  const visit = (element: HtmlElement): void => {
    const { characters = 0, linked = 0, links = 0 } = extents.get(element) ?? {};
    if (links < lineOfLinks.linksMin) return;
    if (isContents(element) && characters - linked <= toolCharactersMax) {
      const targets = findAll(element, 'a').map(({ attributes }) => attributes.href?.trim() ?? '#');
      if (targets.every((target) => target.startsWith('#'))) found.push(element);
      // Boxes within it would look at the same links again.
      return;
    }
    for (const child of element.children) if (child.kind === 'element') visit(child);
  };
  visit(root);
  return found;
}

function isContents({ name, attributes }: HtmlElement): boolean {
  return blockNames.has(name) && contentsName.test(`${attributes.class ?? ''} ${attributes.id ?? ''}`);
}
