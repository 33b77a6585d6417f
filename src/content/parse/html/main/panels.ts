import { collect, type HtmlElement, type HtmlNode } from '../tree.ts';
import { isChrome } from './elements.ts';
import type { Extent } from './measure.ts';
import { isNamedChrome } from './names.ts';

/** The ids of closed parts that a button within the text opens: accordions and tabs, but not menus and dialogs. */
export function panelIds(body: HtmlElement): Set<string> {
  const ids = new Set<string>();
  const known = new Map<HtmlElement, boolean>();
  const isOutside = (element: HtmlElement): boolean => {
    const before = known.get(element);
    if (before !== undefined) return before;
    const outside = isOutsideText(element) || (element.parent !== undefined && isOutside(element.parent));
    known.set(element, outside);
    return outside;
  };
  for (const element of collect(body, opensPanel))
    if (!isOutside(element)) for (const id of targets(element)) ids.add(id);
  return ids;
}

function opensPanel({ name, attributes }: HtmlElement): boolean {
  if ((attributes['aria-haspopup'] ?? 'false') !== 'false') return false;
  if (attributes.role === 'tab' || attributes['aria-expanded'] !== undefined) return true;
  if ((attributes['data-bs-toggle'] ?? attributes['data-toggle']) === 'collapse') return true;
  return attributes['aria-controls'] !== undefined && (name === 'button' || attributes.role === 'button');
}

function targets({ attributes }: HtmlElement): string[] {
  const { href = '' } = attributes;
  const named = attributes['aria-controls'] ?? attributes['data-bs-target'] ?? attributes['data-target'];
  const ids = (named ?? (href.startsWith('#') ? href : '')).split(/\s+/);
  return ids.map((id) => id.replace(/^#/, '')).filter((id) => id !== '');
}

function isOutsideText(element: HtmlElement): boolean {
  const { name } = element;
  if (name === 'button') return false;
  return name === 'header' || name === 'footer' || name === 'form' || isChrome(element) || isNamedChrome(element);
}

const toggleNames = /^(?:h[1-6]|dt|summary|button)$/;
/** A part with more links is a menu. */
const linkedShareMax = 0.3;

/** The parts that directly follow a heading or a button: an accordion without ARIA hides them until a click. */
export function partsBelowToggles(body: HtmlElement, extents: Map<HtmlElement, Extent>): Set<HtmlElement> {
  const parts = new Set<HtmlElement>();
  for (const parent of [body, ...collect(body, () => true)]) {
    let before: HtmlNode | undefined;
    for (const node of parent.children) {
      if (node.kind === 'text' && node.trimmed === 0) continue;
      if (node.kind === 'element' && before?.kind === 'element' && isToggle(before)) {
        const { characters = 0, linked = 0 } = extents.get(node) ?? {};
        if (linked < characters * linkedShareMax) parts.add(node);
      }
      before = node;
    }
  }
  return parts;
}

function isToggle({ name, attributes }: HtmlElement): boolean {
  return toggleNames.test(name) && (attributes['aria-haspopup'] ?? 'false') === 'false';
}
