import { Parser } from 'htmlparser2';
import { type EmbeddedData, stateOfScript } from './script-state.ts';

/** A page as plain objects: the part of a DOM that extraction needs, and cheap enough to walk many times. */
export type HtmlElement = {
  kind: 'element';
  name: string;
  attributes: Record<string, string>;
  children: HtmlNode[];
  parent: HtmlElement | undefined;
};
export type HtmlNode = HtmlElement | HtmlText;

/**
 * Text between tags. It must be complete before it is first measured, because copies of a tree share it with its
 * measures.
 */
export class HtmlText {
  readonly kind = 'text';
  text: string;
  #collapsed: string | undefined;
  #width = -1;
  #trimmed = -1;
  #characters = -1;

  constructor(text: string) {
    this.text = text;
  }

  /** The text with each run of white space collapsed to one space. */
  get collapsed(): string {
    this.#collapsed ??= /[^\S ]|\s\s/.test(this.text) ? this.text.replace(/\s+/g, ' ') : this.text;
    return this.#collapsed;
  }

  /** The width of the collapsed text. */
  get width(): number {
    if (this.#width < 0) this.#width = widthOf(this.collapsed);
    return this.#width;
  }

  /** The width without the white space around the text. */
  get trimmed(): number {
    if (this.#trimmed < 0) this.#trimmed = widthOf(this.text.trim());
    return this.#trimmed;
  }

  /** The same, but in longer texts each run of white space counts as one character. */
  get characters(): number {
    if (this.#characters < 0)
      this.#characters = this.trimmed < shortCharacters ? this.trimmed : widthOf(this.collapsed.trim());
    return this.#characters;
  }
}

const shortCharacters = 40;

const wide = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60]/g;

/** The number of characters, where those of Chinese, Japanese and Korean count as two, as in a terminal. */
export function widthOf(text: string): number {
  return text.length + (text.match(wide)?.length ?? 0);
}

/** About how many words a text has in scripts of wide characters, most of which write no spaces: two are one. */
export function wideWords(text: string): number {
  return Math.floor((widthOf(text) - text.length) / 2);
}

export type HtmlTree = {
  root: HtmlElement;
  embedded: EmbeddedData[];
  /** Content for browsers without scripts, which is not part of `root`. */
  noscript: HtmlElement[];
  /** The addresses of scripts and frames, as the page states them. */
  loaded: string[];
  /** Where a script leads that does nothing but lead to another page. */
  jump: string | undefined;
  /** The number of scripts that may render the page. Data is not counted. */
  scripts: number;
  /** Whether the page has more elements than the limit, where the tree ends. */
  truncated: boolean;
};

export const treeLimits = {
  /** Elements nested deeper lose their tags but keep their text. */
  depthMax: 256,
  /** Extraction takes about 10 µs per element. */
  elementsMax: 200_000,
  /**
   * The parser's own stack of open elements is slow when it is deep, so deeper tags are removed from the text first.
   */
  openTagsMax: 1_000,
  embeddedCharactersMax: 4 * 1024 * 1024,
  loadedMax: 200,
} as const;

/**
 * Parses HTML of any quality. Leaves out scripts, styles and other contents that are never text; keeps JSON in
 * scripts separately. `xhtml`: a self-closing tag closes its element, as in e-books. Never throws, always terminates.
 */
export function parseHtml(html: string, { xhtml = false } = {}): HtmlTree {
  // HTML has no CDATA; the parser would read one to its end as a comment.
  const text = xhtml ? html : html.replaceAll('<![CDATA[', '');
  return buildTree(text, xhtml) ?? buildTree(dropDeepTags(text), xhtml) ?? emptyTree();
}

function emptyTree(): HtmlTree {
  const root: HtmlElement = { kind: 'element', name: '#root', attributes: {}, children: [], parent: undefined };
  return { root, embedded: [], noscript: [], loaded: [], jump: undefined, scripts: 0, truncated: false };
}

/** Undefined if the page is nested too deeply to be parsed quickly. */
function buildTree(html: string, xhtml: boolean): HtmlTree | undefined {
  const tree = emptyTree();
  let current = tree.root;
  let depth = 0;
  let elements = 0;
  let embeddedCharacters = 0;
  let tooDeep = false;
  // The innermost element whose content is skipped, by its depth.
  let skipFrom = 0;
  let data: EmbeddedData | undefined;
  let script: string | undefined;

  const parser = new Parser(
    {
      onopentag(name, attributes) {
        depth += 1;
        elements += 1;
        if (depth > treeLimits.openTagsMax * 2) tooDeep = true;
        if (elements > treeLimits.elementsMax) tree.truncated = true;
        if (tooDeep || tree.truncated || skipFrom > 0) return;
        if (isSkipped(name, attributes)) {
          skipFrom = depth;
          const { src } = attributes;
          if ((name === 'script' || name === 'iframe') && src && tree.loaded.length < treeLimits.loadedMax)
            tree.loaded.push(src);
          if (name === 'script') {
            if (/json/i.test(attributes.type ?? ''))
              data = { type: attributes.type ?? '', id: attributes.id ?? '', text: '' };
            else {
              tree.scripts += 1;
              if (src === undefined) script = '';
            }
          }
          return;
        }
        if (depth > treeLimits.depthMax) return;
        const element: HtmlElement = { kind: 'element', name, attributes, children: [], parent: current };
        (name === 'noscript' ? tree.noscript : current.children).push(element);
        current = element;
      },
      ontext(text) {
        if (tooDeep || tree.truncated) return;
        if (data !== undefined) data.text += text;
        if (script !== undefined) script += text;
        if (skipFrom > 0) return;
        const last = current.children.at(-1);
        if (last?.kind === 'text') last.text += text;
        else current.children.push(new HtmlText(text));
      },
      onclosetag() {
        if (skipFrom > 0) {
          if (depth === skipFrom) {
            skipFrom = 0;
            if (script !== undefined) tree.jump ??= jumpOf(script);
            if (script !== undefined && embeddedCharacters + script.length <= treeLimits.embeddedCharactersMax)
              data = stateOfScript(script);
            script = undefined;
            if (data !== undefined && embeddedCharacters + data.text.length <= treeLimits.embeddedCharactersMax) {
              embeddedCharacters += data.text.length;
              tree.embedded.push(data);
            }
            data = undefined;
          }
        } else if (depth <= treeLimits.depthMax && current.parent !== undefined) current = current.parent;
        depth -= 1;
      },
    },
    { decodeEntities: true, lowerCaseTags: true, lowerCaseAttributeNames: true, recognizeSelfClosing: xhtml },
  );
  // Parses in pieces, so that it can stop early on a hostile page.
  for (let at = 0; at < html.length && !tooDeep && !tree.truncated; at += 65_536)
    parser.write(html.slice(at, at + 65_536));
  if (tooDeep) return undefined;
  if (!tree.truncated) parser.end();
  return tree;
}

const skippedNames = new Set([
  'script',
  'style',
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
  // Declarative shadow roots are templates that browsers show.
  return skippedNames.has(name) && !(name === 'template' && attributes.shadowrootmode !== undefined);
}

/** Void elements, and elements that the next of their kind closes: they add no depth. */
const flat =
  /^(?:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr|p|li|dt|dd|tr|td|th|thead|tbody|tfoot|option|optgroup|colgroup)$/;

/** The text without the tags that would open elements beyond the depth limit. */
function dropDeepTags(text: string): string {
  const tag = /<(\/?)([A-Za-z][A-Za-z0-9:-]*)/g;
  let depth = 0;
  let kept = '';
  let from = 0;
  for (let match = tag.exec(text); match; match = tag.exec(text)) {
    const closes = match[1] === '/';
    const name = (match[2] ?? '').toLowerCase();
    const tooDeep = depth > treeLimits.openTagsMax;
    if (!flat.test(name)) depth = Math.max(0, depth + (closes ? -1 : 1));
    if (!tooDeep) continue;
    const end = text.indexOf('>', match.index);
    kept += text.slice(from, match.index);
    from = end < 0 ? text.length : end + 1;
    tag.lastIndex = from;
  }
  return from === 0 ? text : kept + text.slice(from);
}

/** The first descendant element of that name, in document order. */
export function findFirst(root: HtmlElement, name: string): HtmlElement | undefined {
  for (const child of root.children) {
    if (child.kind !== 'element') continue;
    const found = child.name === name ? child : findFirst(child, name);
    if (found !== undefined) return found;
  }
  return undefined;
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

/** All text of a node with white space collapsed. */
export function textOf(node: HtmlNode): string {
  const parts: string[] = [];
  let endsInSpace = true;
  eachPiece(node, (piece) => {
    const rest = endsInSpace && piece.startsWith(' ') ? piece.slice(1) : piece;
    if (rest === '') return;
    parts.push(rest);
    endsInSpace = rest.endsWith(' ');
  });
  return (parts.length === 1 ? (parts[0] ?? '') : parts.join('')).trimEnd();
}

/** The width of `textOf`, without assembling it. */
export function textLength(node: HtmlNode): number {
  let length = 0;
  let endsInSpace = true;
  eachPiece(node, (piece, width) => {
    if (endsInSpace && piece === ' ') return;
    length += endsInSpace && piece.startsWith(' ') ? width - 1 : width;
    if (piece !== '') endsInSpace = piece.endsWith(' ');
  });
  return endsInSpace && length > 0 ? length - 1 : length;
}

/** Calls back with the collapsed texts in order, each with its width, and with a space for each line break and each block. */
function eachPiece(node: HtmlNode, take: (piece: string, width: number) => void): void {
  if (node.kind === 'text') take(node.collapsed, node.width);
  else if (node.name === 'br') take(' ', 1);
  else {
    for (const child of node.children) eachPiece(child, take);
    if (blockNames.has(node.name)) take(' ', 1);
  }
}

/** The start of `textOf`, at least `characters` long if there is that much. Cheap on large elements. */
export function textStart(element: HtmlElement, characters: number): string {
  let out = '';
  const visit = (node: HtmlNode): void => {
    if (out.length >= characters) return;
    if (node.kind === 'text') out += node.collapsed;
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
    'address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure footer ' +
    'form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol option p pre section summary table tbody ' +
    'td tfoot th thead tr ul caption'
  ).split(' '),
);

const jump =
  /^(?:(?:window|document|self|top)\.)?location(?:(?:\.href)?\s*=\s*|\.(?:replace|assign)\(\s*)(["'])([^"'\\\n]+)\1\s*(?:\+\s*(?:window\.)?location\.(?:search|hash)\s*){0,2}\)?;?$/;

function jumpOf(script: string): string | undefined {
  return script.length > 1_000 ? undefined : jump.exec(script.trim())?.[2];
}
