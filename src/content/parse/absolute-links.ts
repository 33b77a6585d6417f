/** The most links that are kept of one page or document. */
export const linksMax = 5_000;

/** The http or https URL that a link leads to; undefined if it leads nowhere else. */
export function absoluteLink(href: string | undefined, base: string): string | undefined {
  const trimmed = href?.trim();
  if (!trimmed || trimmed.startsWith('#')) return undefined;
  const url = URL.parse(trimmed, base);
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url.href : undefined;
}

/** Where links lead, each once, without fragments, up to the limit. */
export function absoluteLinks(hrefs: Iterable<string>, base: string): string[] {
  const links = new Set<string>();
  for (const href of hrefs) {
    const url = absoluteLink(href, base)?.split('#', 1)[0];
    if (url !== undefined) links.add(url);
    if (links.size >= linksMax) break;
  }
  return [...links];
}
