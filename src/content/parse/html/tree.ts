import { Parser } from 'htmlparser2';

/** A page as plain objects: what extraction needs of a DOM, and cheap enough to walk many times. */
export type HtmlElement = {
  kind: 'element';
  name: string;
  attributes: Record<string, string>;
  children: HtmlNode[];
  parent: HtmlElement | undefined;
};
export type HtmlText = { kind: 'text'; text: string; parent: HtmlElement | undefined };
export type HtmlNode = HtmlElement | HtmlText;

export const treeLimits = {
  /** Elements nested deeper lose their tags and keep their text. */
  depthMax: 256,
  /** Nested deeper than this is an attack on parsers; the page ends there. */
  depthEndsPage: 4_096,
  nodesMax: 400_000,
} as const;

/** Reads HTML of any quality. Scripts and styles are left out, but for JSON-LD. Never throws, always ends. */
export function parseHtml(html: string): HtmlElement {
  const root: HtmlElement = { kind: 'element', name: '#root', attributes: {}, children: [], parent: undefined };
  let current = root;
  let depth = 0;
  let nodes = 0;
  let ended = false;
  // The innermost element whose content is passed over, by its depth.
  let skipFrom = 0;

  const parser = new Parser(
    {
      onopentag(name, attributes) {
        depth += 1;
        nodes += 1;
        if (depth > treeLimits.depthEndsPage || nodes > treeLimits.nodesMax) {
          ended = true;
          return;
        }
        if (skipFrom > 0) return;
        if (isSkipped(name, attributes)) {
          skipFrom = depth;
          return;
        }
        if (depth > treeLimits.depthMax) return;
        const element: HtmlElement = { kind: 'element', name, attributes, children: [], parent: current };
        current.children.push(element);
        current = element;
      },
      ontext(text) {
        if (ended || skipFrom > 0) return;
        const last = current.children.at(-1);
        if (last?.kind === 'text') last.text += text;
        else current.children.push({ kind: 'text', text, parent: current });
      },
      onclosetag() {
        if (skipFrom > 0) {
          if (depth === skipFrom) skipFrom = 0;
        } else if (depth <= treeLimits.depthMax && current.parent !== undefined) current = current.parent;
        depth -= 1;
      },
    },
    { decodeEntities: true, lowerCaseTags: true, lowerCaseAttributeNames: true },
  );
  // In pieces, so that a hostile page can be left early.
  for (let at = 0; at < html.length && !ended; at += 65_536) parser.write(html.slice(at, at + 65_536));
  if (!ended) parser.end();
  return root;
}

const skippedNames = new Set([
  'script',
  'style',
  'noscript',
  'template',
  'iframe',
  'object',
  'embed',
  'canvas',
  'svg',
  'audio',
  'video',
  'applet',
  'frameset',
]);

function isSkipped(name: string, attributes: Record<string, string>): boolean {
  if (!skippedNames.has(name)) return false;
  if (name === 'script') return !/ld\+json/i.test(attributes.type ?? '');
  // Declarative shadow roots are templates that browsers show.
  return !(name === 'template' && attributes.shadowrootmode !== undefined);
}

/** Every element below `root` in document order, `root` itself not included. */
export function* descendants(root: HtmlElement): Generator<HtmlElement> {
  for (const child of root.children) {
    if (child.kind !== 'element') continue;
    yield child;
    yield* descendants(child);
  }
}

export function findAll(root: HtmlElement, name: string): HtmlElement[] {
  return collect(root, (element) => element.name === name);
}

export function collect(root: HtmlElement, wanted: (element: HtmlElement) => boolean): HtmlElement[] {
  const found: HtmlElement[] = [];
  const visit = (element: HtmlElement): void => {
    for (const child of element.children) {
      if (child.kind !== 'element') continue;
      if (wanted(child)) found.push(child);
      visit(child);
    }
  };
  visit(root);
  return found;
}

/** All text below a node with white space runs as one space. */
export function textOf(node: HtmlNode): string {
  const parts: string[] = [];
  const visit = (at: HtmlNode): void => {
    if (at.kind === 'text') parts.push(at.text);
    else if (at.name === 'br') parts.push(' ');
    else {
      for (const child of at.children) visit(child);
      if (blockNames.has(at.name)) parts.push(' ');
    }
  };
  visit(node);
  return parts.join('').replace(/\s+/g, ' ').trim();
}

/** The beginning of `textOf`, at least `characters` long where there is so much; cheap on large elements. */
export function textStart(element: HtmlElement, characters: number): string {
  let out = '';
  const visit = (node: HtmlNode): void => {
    if (out.length >= characters) return;
    if (node.kind === 'text') out += node.text.replace(/\s+/g, ' ');
    else {
      for (const child of node.children) visit(child);
      if (blockNames.has(node.name)) out += ' ';
    }
  };
  visit(element);
  return out.trim();
}

export function detach(element: HtmlElement): void {
  const siblings = element.parent?.children;
  if (siblings === undefined) return;
  const at = siblings.indexOf(element);
  if (at >= 0) siblings.splice(at, 1);
  element.parent = undefined;
}

export function hasAncestor(element: HtmlElement, wanted: (ancestor: HtmlElement) => boolean): boolean {
  for (let at = element.parent; at !== undefined; at = at.parent) if (wanted(at)) return true;
  return false;
}

export const blockNames = new Set(
  (
    'address article aside blockquote body center dd details dialog div dl dt fieldset figcaption figure footer form ' +
    'h1 h2 h3 h4 h5 h6 header hgroup hr html li main menu nav ol option p pre section summary table tbody td tfoot th ' +
    'thead tr ul caption'
  ).split(' '),
);
