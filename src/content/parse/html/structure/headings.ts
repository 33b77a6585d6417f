import { collect, findAll, type HtmlElement, HtmlText, textOf } from '../tree.ts';
import { marks } from './marks.ts';

/** Removes permalinks and buttons from headings, and keeps the fragments that lead to headings and terms. */
export function plainHeadings(root: HtmlElement): void {
  dropSigns(root);
  for (const heading of collect(root, ({ name }) => /^h[1-6]$/.test(name))) {
    // A style sheet alone may set a date apart from the version before it.
    for (const small of findAll(heading, 'small')) small.children.unshift(new HtmlText(' '));
    const linked = dropPermalinks(heading) ?? dropSiblingLink(heading);
    const fragment = linked ?? ownFragment(heading) ?? sectionFragment(heading);
    if (fragment === undefined) continue;
    heading.attributes = { ...heading.attributes, [marks.fragment]: fragment };
  }
  for (const term of findAll(root, 'dt')) {
    // Docutils writes the kind of a term behind it, and leaves the colon to a style sheet.
    for (const kind of findAll(term, 'span'))
      if (kind.attributes.class === 'classifier') kind.children.unshift(new HtmlText(' : '));
    const fragment = ownFragment(term);
    if (fragment !== undefined) term.attributes = { ...term.attributes, [marks.fragment]: fragment };
  }
}

/** Removes the permalinks of what is not a heading: functions, terms, figures, paragraphs. */
function dropSigns(element: HtmlElement): void {
  if (/^h[1-6]$/.test(element.name)) return;
  element.children = element.children.filter((child) => {
    if (child.kind === 'text') return true;
    if (child.name === 'a' && isSign(child)) return false;
    dropSigns(child);
    return true;
  });
}

function isSign(link: HtmlElement): boolean {
  const { href, class: names = '', title = '' } = link.attributes;
  if (fragmentOf(href) === undefined) return false;
  const text = textOf(link);
  if (text === '¶') return true;
  return text !== '' && sign.test(text) && (permalinkNames.test(names) || permalinkText.test(title));
}

/** Removes the links within a heading that only lead to it. Returns their fragment, or that of the heading's own link. */
function dropPermalinks(heading: HtmlElement): string | undefined {
  let fragment: string | undefined;
  const visit = (element: HtmlElement): void => {
    element.children = element.children.filter((child) => {
      if (child.kind === 'text') return true;
      const target = child.name === 'a' ? fragmentOf(child.attributes.href) : undefined;
      if (target !== undefined) fragment ??= target;
      const text = textOf(child);
      const isLink = child.name === 'a' && (text === '' || target !== undefined);
      if ((isLink || child.name === 'button' || child.name === 'span') && isPermalink(child, text)) {
        // An empty anchor may be the place to which others link.
        fragment ??= ownFragment(child);
        return false;
      }
      visit(child);
      return true;
    });
  };
  visit(heading);
  return fragment;
}

/** Some generators write the permalink beside the heading, in a box that holds nothing else. */
function dropSiblingLink(heading: HtmlElement): string | undefined {
  const box = heading.parent;
  if (box?.name !== 'div') return undefined;
  const elements = box.children.filter((child) => child.kind === 'element');
  if (elements.length !== 2) return undefined;
  const link = elements.find((element) => element !== heading);
  const target = link?.name === 'a' ? fragmentOf(link.attributes.href) : undefined;
  if (link === undefined || target === undefined) return undefined;
  box.children = box.children.filter((child) => child !== link);
  return target;
}

const sign = /^(?:[#¶§⚓🔗🔖^\ue000-\uf8ff\s"“”]*|\[?(?:permalink|link|anchor|edit)\]?)$/iu;
const invisible = /\u200b|\ufe0f/g;
const permalinkNames =
  /(?:^|[\s_-])(?:headerlink|header-?anchor|hash-?link|perma-?link|heading-?anchor|anchor-?link|anchorjs-link)(?:[\s_-]|$)/i;
const permalinkText = /^(?:permalink|permanent link|direct link|link to this|section titled)\b/i;

function isPermalink({ name, attributes }: HtmlElement, text: string): boolean {
  // A formula has no text, and a picture may be the heading.
  if (sign.test(text.replaceAll(invisible, ''))) return name !== 'span' || text !== '';
  if (permalinkText.test(text)) return true;
  return permalinkNames.test(attributes.class ?? '') && text.length <= 2;
}

function fragmentOf(href: string | undefined): string | undefined {
  const target = href?.trim();
  if (target === undefined || !target.startsWith('#') || target.length < 2) return undefined;
  return decodeFragment(target.slice(1));
}

/** A fragment as an id, which is what links and addresses name. */
function decodeFragment(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}

/** The id of an element, or of an anchor in it. */
function ownFragment(element: HtmlElement): string | undefined {
  const { id, name } = element.attributes;
  if (id || (element.name === 'a' && name)) return id || name;
  for (const inner of collect(element, (one) => one.name === 'a' || one.name === 'span')) {
    const found = inner.attributes.id || (inner.name === 'a' ? inner.attributes.name : undefined);
    if (found) return found;
  }
  return undefined;
}

/** The id of the section that starts with the heading. */
function sectionFragment(heading: HtmlElement): string | undefined {
  const { parent } = heading;
  if (parent?.name !== 'section' && parent?.name !== 'div') return undefined;
  const first = parent.children.find((child) => child.kind === 'element' && child.name !== 'span');
  return first === heading ? parent.attributes.id || undefined : undefined;
}
