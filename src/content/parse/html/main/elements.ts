import type { HtmlElement } from '../tree.ts';

/** What the tag, the role and the style of an element say about it. */

const chromeNames = new Set([
  'nav',
  'dialog',
  'menu',
  'button',
  'select',
  'input',
  'textarea',
  'link',
  'meta',
  'head',
  'title',
]);
const chromeRoles = new Set([
  'navigation',
  'banner',
  'contentinfo',
  'search',
  'dialog',
  'alertdialog',
  'menu',
  'menubar',
  'toolbar',
  'complementary',
  'tooltip',
]);

/** Parts that are never a page's text, by tag or by role. */
export function isChrome(element: HtmlElement): boolean {
  if (chromeNames.has(element.name)) return true;
  return element.attributes.role !== undefined && chromeRoles.has(element.attributes.role.toLowerCase());
}

export function isHidden({ attributes, name }: HtmlElement): boolean {
  if (attributes.hidden !== undefined && streamedId.test(attributes.id ?? '')) return false;
  if (attributes.hidden !== undefined && name !== 'body') return true;
  if (attributes['aria-hidden'] === 'true' && name !== 'span' && name !== 'img' && name !== 'math' && name !== 'a')
    return true;
  const style = attributes.style;
  return style !== undefined && /(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)/i.test(style);
}

/** Whether the style of an element covers the whole window: a dialog, a menu or a notice that a script opens. */
export function isOverlay({ attributes }: HtmlElement): boolean {
  const names = attributes.class ?? '';
  return names.includes('inset-0') && /(?:^|\s)fixed(?:\s|$)/.test(names) && /(?:^|\s)inset-0(?:\s|$)/.test(names);
}

/** A hidden box with this share of a page's text is the page itself, revealed by a script. */
export const hiddenShareMax = 0.5;

/** React streams parts of a page as hidden boxes that a script moves to their place. */
const streamedId = /^S:[0-9a-f]+$/;
