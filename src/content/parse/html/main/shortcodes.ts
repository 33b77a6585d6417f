import { type HtmlElement, HtmlText } from '../tree.ts';

/** Instructions of WordPress page builders that a site shows as text after the builder was removed: `[vc_row …]`. */
const shortcode =
  /\[\/?(?:vc|wpb|et_pb|fusion|av|ux|mk|nectar|cs|tatsu|thrive|rev_slider)(?:_[a-z0-9_]+)?(?:\s[^[\]]{0,2000})?\]/g;

const hint = /\[\/?(?:vc|wpb|et_pb|fusion|av|ux|mk|nectar|cs|tatsu|thrive|rev)_/;

/** The page without shortcodes, except in code, which may be about them. The page itself if it has none. */
export function withoutShortcodes(body: HtmlElement): HtmlElement {
  return holdsShortcode(body) ? copyWithout(body, undefined) : body;
}

function holdsShortcode(element: HtmlElement): boolean {
  if (element.name === 'pre' || element.name === 'code') return false;
  return element.children.some((child) => (child.kind === 'text' ? hint.test(child.text) : holdsShortcode(child)));
}

function copyWithout(element: HtmlElement, parent: HtmlElement | undefined): HtmlElement {
  const copy: HtmlElement = { ...element, children: [], parent };
  const isCode = element.name === 'pre' || element.name === 'code';
  for (const child of element.children)
    if (child.kind === 'element') copy.children.push(copyWithout(child, copy));
    else
      copy.children.push(
        !isCode && hint.test(child.text) ? new HtmlText(child.text.replaceAll(shortcode, ' ')) : child,
      );
  return copy;
}
