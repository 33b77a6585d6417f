import { collect, type HtmlElement } from '../tree.ts';
import { isChrome } from './elements.ts';
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
