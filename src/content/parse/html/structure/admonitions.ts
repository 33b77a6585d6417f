import { collect, type HtmlElement, type HtmlNode, HtmlText, textLength, textOf } from '../tree.ts';
import { marks } from './marks.ts';

/** The kinds that Markdown knows, by the words that generators use. */
const kinds: Record<string, string> = {
  ...{
    note: 'note',
    notice: 'note',
    info: 'note',
    information: 'note',
    secondary: 'note',
    seealso: 'note',
    abstract: 'note',
  },
  ...{ tip: 'tip', hint: 'tip', success: 'tip', check: 'tip', important: 'important' },
  ...{ warning: 'warning', warn: 'warning', caution: 'caution', attention: 'warning' },
  ...{ danger: 'caution', error: 'caution', failure: 'caution', bug: 'caution' },
};

const kindWords = Object.keys(kinds).join('|');
/** Boxes that name themselves as an admonition, before or beside the name of their kind. */
const family =
  /(?:^|\s)(?:admonition|theme-admonition|custom-block|starlight-aside|markdown-alert|notecard|book-hint|blockquote-tag|confluence-information-macro|callout|alert|hint)(?:\s|-|$)/;
const kindOfFamily = new RegExp(`(?:^|[\\s-])(${kindWords})(?:-title)?(?=\\s|$)`);
/** Quotes and asides whose whole name is that of a kind. */
const kindAlone = /^(note|tip|hint|important|warning|caution|danger)(?:-title)?$/;
/** Asides of Slate, whose kinds are names of site notices elsewhere. */
const kindOfAside = /^(notice|success)$/;
const titleNames = /(?:^|[\s_-])(?:title|heading|header|summary)(?:[\s_-]|$)|title(?:\s|$)|admonitionHeading/i;
const charactersMax = 20_000;

/** Rewrites notes, tips and warnings as quotes with their kind. */
export function plainAdmonitions(root: HtmlElement): void {
  for (const element of collect(root, isPossible)) {
    const kind = kindOf(element);
    if (kind !== undefined && textLength(element) <= charactersMax) rewrite(element, kind);
  }
}

function isPossible({ name, attributes }: HtmlElement): boolean {
  return boxNames.has(name) && attributes.class !== undefined && attributes.class.length < 400;
}

const boxNames = new Set(['div', 'aside', 'section', 'blockquote', 'details', 'p']);

function kindOf({ name, attributes }: HtmlElement): string | undefined {
  const classes = (attributes.class ?? '').toLowerCase();
  if (family.test(classes)) {
    // "hint" is the name of a family and of a kind: `book-hint info`, `admonition hint`.
    const others = classes.replace(/(?<!\S)[\w-]*(?:hint|alert|callout)(?!\S)/g, ' ');
    const found = kindOfFamily.exec(others)?.[1] ?? kindOfFamily.exec(classes)?.[1];
    if (found !== undefined) return found;
  }
  if (name === 'p') return undefined;
  const alone = classes.trim();
  return (kindAlone.exec(alone) ?? (name === 'aside' ? kindOfAside.exec(alone) : null))?.[1];
}

function rewrite(element: HtmlElement, word: string): void {
  const kind = kinds[word] ?? 'note';
  const title = takeTitle(element, word);
  const children: HtmlNode[] = element.children;
  element.children = [];
  if (title !== '') element.children.push(...titleNodes(title, element));
  if (element.name === 'p') {
    const paragraph: HtmlElement = { kind: 'element', name: 'p', attributes: {}, children, parent: element };
    for (const child of children) if (child.kind === 'element') child.parent = paragraph;
    element.children.push(paragraph);
  } else element.children.push(...children);
  element.name = 'blockquote';
  element.attributes = { [marks.alert]: kind };
}

function titleNodes(title: string, parent: HtmlElement): HtmlElement[] {
  const paragraph: HtmlElement = { kind: 'element', name: 'p', attributes: {}, children: [], parent };
  paragraph.children.push({
    ...{ kind: 'element', name: 'strong', attributes: {}, parent: paragraph },
    children: [new HtmlText(title)],
  });
  return [paragraph];
}

/** Removes the title from the box. Returns it, unless it is only the name of the kind. */
function takeTitle(element: HtmlElement, word: string): string {
  const box = contentBox(element);
  const first = box.children.find((child) => child.kind === 'element' || child.trimmed > 0);
  if (first?.kind !== 'element') return '';
  const text = textOf(first);
  const isTitle = first.name === 'summary' || /^h\d$/.test(first.name) || titleNames.test(first.attributes.class ?? '');
  const isNamed = /-title(?:\s|$)/.test(element.attributes.class ?? '') && first.name === 'p';
  if (isTitle || isNamed || isKindWord(text, word)) {
    if (text.length > titleCharactersMax) return '';
    box.children.splice(box.children.indexOf(first), 1);
    return isKindWord(text, word) ? '' : text;
  }
  dropLeadingWord(first, word);
  return '';
}

const titleCharactersMax = 200;

/** A title may be in a box of its own within the admonition's only box. */
function contentBox(element: HtmlElement): HtmlElement {
  const elements = element.children.filter((child) => child.kind === 'element');
  const [only] = elements;
  return elements.length === 1 && only?.name === 'div' ? only : element;
}

function isKindWord(text: string, word: string): boolean {
  const plain = text.toLowerCase().replace(/[^a-z]/g, '');
  return plain === word || (kinds[plain] === kinds[word] && kinds[plain] !== undefined);
}

/** "**Note:** the text": the quote's kind says so. */
function dropLeadingWord(paragraph: HtmlElement, word: string): void {
  const first = paragraph.children.find((child) => child.kind === 'element' || child.trimmed > 0);
  if (first?.kind !== 'element' || !/^(?:strong|b|em|i|span)$/.test(first.name)) return;
  if (!/[:.]\s*$/.test(textOf(first)) || !isKindWord(textOf(first), word)) return;
  paragraph.children.splice(paragraph.children.indexOf(first), 1);
}
