import { isMenuScript, mayBeMenuPage } from '../../menu-files.ts';
import { absoluteLink, linksMax } from '../absolute-links.ts';
import { metaTags } from './metadata.ts';
import { findAll, findFirst, type HtmlElement, type HtmlTree, textLength } from './tree.ts';

export type PageLink = { url: string; nofollow: boolean };

/**
 * All links of a page, absolute, each once: first the files that hold its menu, then its links in order, then those for
 * browsers without scripts. Returns one more than the limit if there are too many.
 */
export function linksOf(tree: HtmlTree, meta: Map<string, string>, base: string): PageLink[] {
  const links = new Map<string, PageLink>();
  const add = (href: string | undefined, rel = ''): void => {
    const url = absoluteLink(href, base);
    if (url === undefined) return;
    const nofollow = /(^|\s)(nofollow|ugc|sponsored)(\s|$)/i.test(rel);
    const known = links.get(url);
    if (known === undefined) links.set(url, { url, nofollow });
    else if (!nofollow) known.nofollow = false;
  };
  for (const url of menusOf(tree, meta, base)) add(url);
  for (const root of [tree.root, ...tree.noscript])
    for (const { name, attributes } of [...findAll(root, 'a'), ...findAll(root, 'area'), ...findAll(root, 'frame')]) {
      add(name === 'frame' ? attributes.src : attributes.href, attributes.rel);
      if (links.size > linksMax) return [...links.values()];
    }
  return [...links.values()];
}

function menusOf({ loaded }: HtmlTree, meta: Map<string, string>, base: string): string[] {
  const named = [meta.get('docfx:navrel'), meta.get('docfx:tocrel')];
  return [...named, ...loaded].filter((href): href is string => {
    const path = URL.parse(absoluteLink(href, base) ?? '')?.pathname ?? '';
    return isMenuScript(path) || mayBeMenuPage(path);
  });
}

const linkedShareMin = 0.75;

/** Whether a page has hardly any text but its links. */
export function isListOfLinks(root: HtmlElement): boolean {
  const links = findAll(root, 'a');
  const linked = links.reduce((sum, link) => sum + textLength(link), 0);
  return links.length > 0 && linked >= textLength(findFirst(root, 'body') ?? root) * linkedShareMin;
}

/** A page that sends its readers on at once does so whatever it says. One that waits says little else. */
const refreshSecondsMax = { always: 1, ifShort: 15 };

/**
 * Where a page sends its readers by a `meta` element, as a redirect does; undefined if nowhere, or if it only reloads
 * itself. One that sends on only browsers without scripts, or by a script that does nothing else, has no text of its own
 * either.
 * @param isShort whether the page has no text but a notice
 */
export function refreshOf(tree: HtmlTree, base: string, url: string, isShort: () => boolean): string | undefined {
  const [own, plain] = [[tree.root], tree.noscript].map((roots) =>
    roots.map((root) => metaTags(root).get('refresh')).find((content) => content !== undefined),
  );
  const stated = /^\s*(\d{1,5})(?:\.\d*)?\s*[;,]\s*(?:url\s*=\s*)?(.+)$/is.exec(own ?? plain ?? '');
  const [, seconds, quoted] = stated ?? [undefined, '0', tree.jump];
  const target = absoluteLink(quoted?.trim().replace(/^(["'])(.*?)\1.*$/s, '$2'), base);
  if (target === undefined || target.split('#', 1)[0] === url.split('#', 1)[0]) return undefined;
  if (stated !== null && own !== undefined && Number(seconds) <= refreshSecondsMax.always) return target;
  return Number(seconds) <= refreshSecondsMax.ifShort && isShort() ? target : undefined;
}
