import { failed, parseLimits } from '../types.ts';

/** An element with its local name (prefix dropped), its attributes by local name, and its children in order. */
export type XmlElement = { name: string; attributes: Record<string, string>; children: (XmlElement | string)[] };

/**
 * Reads XML without a document type: entities other than the five of XML and character references stay as they are,
 * so nothing expands. Forgiving about tags that do not match. Depth and size are bounded. Throws ParseError.
 */
export function parseXml(text: string): XmlElement {
  const root: XmlElement = { name: '', attributes: {}, children: [] };
  const stack: XmlElement[] = [root];
  let nodes = 0;
  let at = 0;
  const append = (value: string): void => {
    if (value !== '') stack.at(-1)?.children.push(value);
  };
  while (at < text.length) {
    const open = text.indexOf('<', at);
    if (open < 0) {
      append(decodeEntities(text.slice(at)));
      break;
    }
    if (open > at) append(decodeEntities(text.slice(at, open)));
    const next = text.charCodeAt(open + 1);
    if (next === 0x21 || next === 0x3f) {
      if (text.startsWith('<![CDATA[', open)) {
        const end = indexOr(text, ']]>', open + 9, text.length);
        append(text.slice(open + 9, end));
        at = end + 3;
      } else if (text.startsWith('<!--', open)) at = indexOr(text, '-->', open + 4, text.length) + 3;
      else if (next === 0x3f) at = indexOr(text, '?>', open + 2, text.length) + 2;
      else at = skipDeclaration(text, open);
      continue;
    }
    const close = tagEnd(text, open + 1);
    if (next === 0x2f) {
      const name = localName(text.slice(open + 2, close).trim());
      for (let depth = stack.length - 1; depth > 0; depth--) {
        if (stack[depth]?.name !== name) continue;
        stack.length = depth;
        break;
      }
    } else {
      nodes += 1;
      if (nodes > parseLimits.xmlNodesMax) throw failed('The document has more parts than can be read.');
      const selfClosing = text.charCodeAt(close - 1) === 0x2f;
      const element = readTag(text.slice(open + 1, selfClosing ? close - 1 : close));
      stack.at(-1)?.children.push(element);
      if (!selfClosing) {
        if (stack.length >= parseLimits.xmlDepthMax) throw failed('The document is nested too deeply to be read.');
        stack.push(element);
      }
    }
    at = close + 1;
  }
  return root;
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

/** Every element of that name below, in document order. */
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

/** All text below, as it stands. */
export function textOf(element: XmlElement | string | undefined): string {
  if (element === undefined) return '';
  if (typeof element === 'string') return element;
  let text = '';
  for (const one of element.children) text += textOf(one);
  return text;
}

const tagPattern = /([^\s=/]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;

function readTag(tag: string): XmlElement {
  const nameEnd = tag.search(/\s/);
  const name = localName(nameEnd < 0 ? tag : tag.slice(0, nameEnd));
  const attributes: Record<string, string> = {};
  if (nameEnd >= 0) {
    for (const match of tag.slice(nameEnd).matchAll(tagPattern)) {
      const key = match[1] ?? '';
      const value = decodeEntities(match[2] ?? match[3] ?? '');
      const local = localName(key);
      if (!key.startsWith('xmlns') && local !== '__proto__') {
        if (!Object.hasOwn(attributes, local)) attributes[local] = value;
        if (local !== key) attributes[key] = value;
      }
    }
  }
  return { name, attributes, children: [] };
}

/** The closing bracket of a tag, past brackets inside quoted values. */
function tagEnd(text: string, from: number): number {
  let quote = 0;
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (quote !== 0) {
      if (code === quote) quote = 0;
    } else if (code === 0x22 || code === 0x27) quote = code;
    else if (code === 0x3e) return at;
  }
  return text.length;
}

/** A document type declaration with its internal subset, skipped unread. */
function skipDeclaration(text: string, from: number): number {
  let brackets = 0;
  for (let at = from + 2; at < text.length; at++) {
    const character = text[at];
    if (character === '[') brackets += 1;
    else if (character === ']') brackets -= 1;
    else if (character === '>' && brackets <= 0) return at + 1;
  }
  return text.length;
}

function indexOr(text: string, needle: string, from: number, otherwise: number): number {
  const at = text.indexOf(needle, from);
  return at < 0 ? otherwise : at;
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

const named: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'", nbsp: '\u00a0' };

/** Character references and the five entities of XML as characters; others stay as they are. */
export function decodeEntities(text: string): string {
  if (!text.includes('&')) return text;
  return text.replaceAll(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(\w{2,4}));/g, (all, decimal, hex, name) => {
    if (name !== undefined) return named[name] ?? all;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code === 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? '\ufffd' : String.fromCodePoint(code);
  });
}
