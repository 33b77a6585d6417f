import { type EmbeddedData, parseJson, streamType } from '../script-state.ts';
import { type HtmlElement, HtmlText, parseHtml } from '../tree.ts';

/** Values and levels read of a stream; real pages have some thousands and less than a hundred. */
const valuesMax = 200_000;
const depthMax = 200;
const markupCharactersMax = 1_000_000;

/** What React renders instead of the page, or not as text. */
const otherProps = /^(?:fallback|error|loading|notFound|forbidden|unauthorized|template|errorStyles|templateStyles)$/;
const otherTags = /^(?:script|style|title|meta|link|template|iframe|svg|canvas|noscript|audio|video)$/;
const attributeOfProp: Record<string, string> = {
  className: 'class',
  htmlFor: 'for',
  itemProp: 'itemprop',
  ...Object.fromEntries(['id', 'role', 'href', 'src', 'alt', 'title', 'name', 'type'].map((name) => [name, name])),
};

/**
 * The page that a stream of React server components describes (`self.__next_f.push`). Each line of the stream is a value
 * with an id, and values refer to others by it.
 */
export function streamedBody(embedded: EmbeddedData[]): HtmlElement | undefined {
  const rows = streamRows(embedded);
  const root = rows.get('0');
  if (root === undefined) return undefined;
  const body = element('body', {}, undefined);
  new Renderer(rows).seek(root, body, 0);
  return body;
}

/** The values of a page's stream by their id; none when the page has no stream. */
export function streamRows(embedded: EmbeddedData[]): Map<string, unknown> {
  const pieces = embedded.filter(({ type }) => type === streamType).map(({ text }) => text);
  const rows = new Map<string, unknown>();
  // Lengths in the stream are in bytes.
  const bytes = Buffer.from(pieces.join(''));
  for (let at = 0; at < bytes.length; ) {
    const head = /^([0-9a-f]+):(?:T([0-9a-f]+),)?/.exec(bytes.toString('latin1', at, at + 40));
    const [, id = '', length] = head ?? [];
    const start = at + (head?.[0].length ?? 0);
    const line = bytes.indexOf('\n', start);
    const end = length === undefined ? (line < 0 ? bytes.length : line) : start + Number.parseInt(length, 16);
    if (head !== null) {
      const text = bytes.toString('utf8', start, end);
      const value = length === undefined ? parseJson(text) : text;
      if (value !== undefined && !rows.has(id)) rows.set(id, value);
    }
    at = length === undefined ? end + 1 : end;
  }
  return rows;
}

class Renderer {
  readonly #rows: Map<string, unknown>;
  readonly #rendered = new Set<string>();
  #values = 0;
  #markupCharacters = 0;

  constructor(rows: Map<string, unknown>) {
    this.#rows = rows;
  }

  /** Renders the elements in a value whose strings are not text, such as the route and properties of components. */
  seek(value: unknown, parent: HtmlElement, depth: number): void {
    if (this.#isTooMuch(depth)) return;
    if (typeof value === 'string') {
      const row = this.#take(value);
      if (typeof row === 'object') this.seek(row, parent, depth + 1);
    } else if (isTuple(value)) this.#render(value, parent, depth);
    else if (typeof value === 'object' && value !== null)
      for (const [name, member] of Object.entries(value))
        if (!otherProps.test(name)) this.seek(member, parent, depth + 1);
  }

  #render(value: unknown, parent: HtmlElement, depth: number): void {
    if (this.#isTooMuch(depth)) return;
    if (typeof value === 'number') append(parent, String(value));
    else if (typeof value === 'string') {
      if (!value.startsWith('$')) append(parent, value);
      else if (value.startsWith('$$')) append(parent, value.slice(1));
      else this.#render(this.#take(value), parent, depth + 1);
    } else if (isTuple(value)) this.#renderElement(value[1], properties(value[3]), parent, depth);
    else if (Array.isArray(value)) for (const child of value) this.#render(child, parent, depth + 1);
  }

  #renderElement(tag: unknown, props: Record<string, unknown>, parent: HtmlElement, depth: number): void {
    if (typeof tag !== 'string' || otherTags.test(tag)) return;
    if (!/^[a-z][a-z0-9-]*$/.test(tag)) {
      // A component: what it is given to show, and elements in its other properties.
      const { children, ...others } = props;
      this.seek(others, parent, depth + 1);
      this.#render(children, parent, depth + 1);
      return;
    }
    const attributes: Record<string, string> = {};
    for (const [name, value] of Object.entries(props)) {
      const attribute = name.startsWith('aria-') || name.startsWith('data-') ? name : attributeOfProp[name];
      if (attribute !== undefined && typeof value === 'string') attributes[attribute] = value;
      else if (name === 'hidden' && value === true) attributes.hidden = '';
    }
    const made = element(tag, attributes, parent);
    parent.children.push(made);
    const html = properties(props.dangerouslySetInnerHTML).__html;
    const markup = typeof html === 'string' && html.startsWith('$') ? this.#take(html) : html;
    if (typeof markup === 'string') this.#appendMarkup(made, markup);
    this.#render(props.children, made, depth + 1);
  }

  #appendMarkup(parent: HtmlElement, markup: string): void {
    this.#markupCharacters += markup.length;
    if (this.#markupCharacters > markupCharactersMax) return;
    for (const child of parseHtml(markup).root.children) {
      if (child.kind === 'element') child.parent = parent;
      parent.children.push(child);
    }
  }

  /** The value that `$1a` or `$L1a` refers to, the first time. */
  #take(reference: string): unknown {
    const id = /^\$[L@]?([0-9a-f]+)$/.exec(reference)?.[1];
    if (id === undefined || this.#rendered.has(id)) return undefined;
    this.#rendered.add(id);
    return this.#rows.get(id);
  }

  #isTooMuch(depth: number): boolean {
    this.#values += 1;
    return depth > depthMax || this.#values > valuesMax;
  }
}

function isTuple(value: unknown): value is unknown[] {
  return Array.isArray(value) && value[0] === '$' && value.length >= 4;
}

function properties(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

function element(name: string, attributes: Record<string, string>, parent: HtmlElement | undefined): HtmlElement {
  return { kind: 'element', name, attributes, children: [], parent };
}

function append(parent: HtmlElement, text: string): void {
  const last = parent.children.at(-1);
  if (last?.kind === 'text') last.text += text;
  else parent.children.push(new HtmlText(text));
}
