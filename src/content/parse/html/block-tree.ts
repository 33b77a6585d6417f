import { Parser } from 'htmlparser2';
import { failed, parseLimits } from '../types.ts';

export type HtmlElement = {
  name: string;
  attributes: Record<string, string>;
  children: HtmlNode[];
  parent: HtmlElement | undefined;
};
export type HtmlNode = HtmlElement | string;

/** Contents that are never text of the document. */
const opaque = new Set([
  'script',
  'style',
  'template',
  'noscript',
  'iframe',
  'object',
  'embed',
  'svg',
  'canvas',
  'video',
  'audio',
]);

/**
 * The elements of an HTML document, as browsers would roughly nest them. What is nested deeper than the bound is kept
 * at the bound, so no later walk over the tree can exhaust the stack.
 */
export function parseHtmlTree(text: string): HtmlElement {
  const root: HtmlElement = { name: '', attributes: {}, children: [], parent: undefined };
  let current = root;
  let depth = 0;
  let tooDeep = 0;
  let nodes = 0;
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        nodes += 1;
        if (nodes > parseLimits.xmlNodesMax) throw failed('The page has more parts than can be read.');
        if (depth >= parseLimits.htmlDepthMax) {
          tooDeep += 1;
          return;
        }
        const element: HtmlElement = { name, attributes, children: [], parent: current };
        if (!opaque.has(name)) current.children.push(element);
        current = element;
        depth += 1;
      },
      ontext(value) {
        const last = current.children.length - 1;
        const previous = current.children[last];
        if (typeof previous === 'string') current.children[last] = previous + value;
        else current.children.push(value);
      },
      onclosetag() {
        if (tooDeep > 0) tooDeep -= 1;
        else if (current.parent) {
          current = current.parent;
          depth -= 1;
        }
      },
    },
    { decodeEntities: true, lowerCaseTags: true, lowerCaseAttributeNames: true, recognizeSelfClosing: true },
  );
  const bounded = dropDeepTags(text);
  for (let at = 0; at < bounded.length; at += 65_536) parser.write(bounded.slice(at, at + 65_536));
  parser.end();
  return root;
}

/** Elements that hold nothing, and those that the next of their kind closes: they do not make a page deeper. */
const flat =
  /^(?:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr|p|li|dt|dd|tr|td|th|thead|tbody|tfoot|option|optgroup|colgroup)$/;
const openTagsMax = 1_000;

/** The parser's own stack of open elements grows slow with its depth: tags that would go deeper are taken out first. */
export function dropDeepTags(text: string): string {
  const tag = /<(\/?)([A-Za-z][A-Za-z0-9:-]*)/g;
  let depth = 0;
  let kept = '';
  let from = 0;
  for (let match = tag.exec(text); match; match = tag.exec(text)) {
    if (flat.test((match[2] ?? '').toLowerCase())) continue;
    const closes = match[1] === '/';
    const tooDeep = depth > openTagsMax;
    depth = Math.max(0, depth + (closes ? -1 : 1));
    if (!tooDeep) continue;
    const end = text.indexOf('>', match.index);
    kept += text.slice(from, match.index);
    from = end < 0 ? text.length : end + 1;
    tag.lastIndex = from;
  }
  return from === 0 ? text : kept + text.slice(from);
}

/** The first element of that name below, in document order. */
export function findElement(element: HtmlElement, name: string): HtmlElement | undefined {
  for (const child of element.children) {
    if (typeof child === 'string') continue;
    if (child.name === name) return child;
    const found = findElement(child, name);
    if (found) return found;
  }
  return undefined;
}

export function findElements(element: HtmlElement, name: string, found: HtmlElement[] = []): HtmlElement[] {
  for (const child of element.children) {
    if (typeof child === 'string') continue;
    if (child.name === name) found.push(child);
    findElements(child, name, found);
  }
  return found;
}

export function htmlText(node: HtmlNode): string {
  if (typeof node === 'string') return node;
  return node.children.map(htmlText).join('');
}
