import type { EmbeddedData } from './script-state.ts';
import { collect, type HtmlElement, parseHtml, textOf } from './tree.ts';

/** An item that the page describes in JSON-LD or microdata: its schema.org types and its properties. */
export type Thing = { types: string[]; properties: Record<string, unknown> };

const blockCharactersMax = 512 * 1024;
const thingsMax = 500;
const depthMax = 6;

/** The subjects of the page in JSON-LD: top-level items, items in `@graph`, and main entities. Broken JSON is skipped. */
export function linkedThings(embedded: EmbeddedData[]): Thing[] {
  const things: Thing[] = [];
  for (const { type, text } of embedded) {
    if (!/ld\+json/i.test(type) || text.length > blockCharactersMax) continue;
    try {
      // Line breaks inside strings are a common template bug.
      collectThings(JSON.parse(text.replace(/\s+/g, ' ')), things, 0);
    } catch {
      // Broken JSON-LD is ignored.
    }
  }
  return things;
}

function collectThings(value: unknown, things: Thing[], depth: number): void {
  if (depth > depthMax || things.length >= thingsMax || typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const item of value.slice(0, 100)) collectThings(item, things, depth + 1);
    return;
  }
  const properties = value as Record<string, unknown>;
  const types = [properties['@type']].flat().filter((type) => typeof type === 'string');
  if (types.length > 0) things.push({ types: types.map((type) => type.replace(/^.*[/:]/, '')), properties });
  for (const key of ['@graph', 'mainEntity', 'mainEntityOfPage']) collectThings(properties[key], things, depth + 1);
}

const markup = /[<&]/;
const formatting = /<\/?(?:p|br|div|span|ul|ol|li|b|i|strong|em|a|h[1-6]|table)\b[^>]*>/i;

/**
 * A value of JSON-LD as text. Scripts hold no HTML, but many pages write their values with entities and tags, or with the
 * tags as entities.
 */
export function plainValue(value: string): string {
  if (!markup.test(value)) return value;
  const text = textOf(parseHtml(value).root);
  return formatting.test(text) ? textOf(parseHtml(text).root) : text;
}

/** The types in microdata, and how often each occurs. */
export function microdataTypes(root: HtmlElement): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { attributes } of collect(root, (element) => element.attributes.itemtype !== undefined)) {
    const type = (attributes.itemtype ?? '').replace(/^.*\//, '');
    counts.set(type, (counts.get(type) ?? 0) + 1);
  }
  return counts;
}

/** The value of an element's microdata property: its machine-readable form if there is one, otherwise its text. */
export function itemValue(element: HtmlElement): string {
  const { content, datetime, href, src } = element.attributes;
  return (content ?? datetime ?? (textOf(element) || href || src) ?? '').trim();
}
