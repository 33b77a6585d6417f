import type { HtmlElement } from '../tree.ts';
import { isNamedChrome } from './names.ts';
import { isChrome } from './signs.ts';

/** The ids of the closed parts that a button within the text opens: accordions and tabs, but not menus and dialogs. */
export function panelIds(body: HtmlElement): Set<string> {
  const ids = new Set<string>();
  const visit = (parent: HtmlElement): void => {
    for (const child of parent.children) {
      if (child.kind === 'text' || isOutsideText(child)) continue;
      if (opensPanel(child)) for (const id of targets(child)) ids.add(id);
      visit(child);
    }
  };
  visit(body);
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
