import { Parser } from 'htmlparser2';
import { parseLimits } from '../limits.ts';
import { failed } from '../types.ts';

/** An element with its local name (without prefix), its attributes by local name, and its children in order. */
export type XmlElement = { name: string; attributes: Record<string, string>; children: (XmlElement | string)[] };

/** Reads XML into a tree. Tolerates mismatched tags. Limits the depth and the number of elements. Throws ParseError. */
export function parseXml(text: string): XmlElement {
  const root: XmlElement = { name: '', attributes: {}, children: [] };
  const stack: XmlElement[] = [root];
  let elements = 0;
  scanXml(text, {
    open(name, attributes) {
      elements += 1;
      if (elements > parseLimits.xmlNodesMax) throw failed('The document has more parts than can be read.');
      if (stack.length >= parseLimits.xmlDepthMax) throw failed('The document is nested too deeply to be read.');
      const element = { name, attributes: withLocalNames(attributes), children: [] };
      stack.at(-1)?.children.push(element);
      stack.push(element);
    },
    text(piece) {
      const siblings = stack.at(-1)?.children ?? [];
      const last = siblings.length - 1;
      const before = siblings[last];
      if (typeof before === 'string') siblings[last] = before + piece;
      else siblings.push(piece);
    },
    close() {
      stack.pop();
    },
  });
  return root;
}

type XmlHandlers = {
  /** `name` has no prefix. `attributes` keep the names that they have in the document. */
  open(name: string, attributes: Record<string, string>): void;
  text(piece: string): void;
  close(name: string): void;
};

/**
 * Reports the tags and texts of XML in order, using `htmlparser2`. Only the five XML entities and character
 * references are decoded, so nothing expands.
 */
export function scanXml(text: string, handlers: XmlHandlers): void {
  const parser = new Parser(
    {
      onopentag: (name, attributes) => handlers.open(localName(name), attributes),
      ontext: (piece) => handlers.text(piece),
      onclosetag: (name) => handlers.close(localName(name)),
    },
    { xmlMode: true, decodeEntities: true },
  );
  parser.end(text);
}

/** Attributes by local name and also by prefixed name. Of two equal names, the first counts. */
function withLocalNames(attributes: Record<string, string>): Record<string, string> {
  const named: Record<string, string> = {};
  for (const key in attributes) {
    const local = localName(key);
    if (key.startsWith('xmlns') || local === '__proto__') continue;
    const value = attributes[key] ?? '';
    if (!Object.hasOwn(named, local)) named[local] = value;
    if (local !== key) named[key] = value;
  }
  return named;
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

/** The first child element of that name. */
export function child(element: XmlElement | undefined, name: string): XmlElement | undefined {
  for (const one of element?.children ?? []) if (typeof one !== 'string' && one.name === name) return one;
  return undefined;
}

export function childElements(element: XmlElement | undefined, name?: string): XmlElement[] {
  const found: XmlElement[] = [];
  for (const one of element?.children ?? [])
    if (typeof one !== 'string' && (name === undefined || one.name === name)) found.push(one);
  return found;
}

/** The element at the end of a chain of first children. */
export function descend(element: XmlElement | undefined, ...names: string[]): XmlElement | undefined {
  let current = element;
  for (const name of names) current = child(current, name);
  return current;
}

/** Every descendant element of that name, in document order. */
export function descendants(element: XmlElement | undefined, name: string): XmlElement[] {
  const found: XmlElement[] = [];
  const visit = (one: XmlElement): void => {
    for (const inner of one.children) {
      if (typeof inner === 'string') continue;
      if (inner.name === name) found.push(inner);
      visit(inner);
    }
  };
  if (element) visit(element);
  return found;
}

/** All text of the descendants, unchanged. */
export function textOf(element: XmlElement | string | undefined): string {
  if (element === undefined) return '';
  if (typeof element === 'string') return element;
  let text = '';
  for (const one of element.children) text += textOf(one);
  return text;
}
