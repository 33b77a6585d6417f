const linksMax = 5_000;

/** The addresses in a script that holds a menu as data (`{text:"Classes",url:"annotated.html"}`), absolute, each once. */
export function menuLinks(bytes: Uint8Array, base: string): string[] {
  const links = new Set<string>();
  for (const [, , href = ''] of new TextDecoder().decode(bytes).matchAll(/\burl:\s*(["'])([^"'\\\n]{1,2000})\1/g)) {
    const url = URL.parse(href, base);
    if (url?.protocol === 'http:' || url?.protocol === 'https:') links.add(url.href);
    if (links.size >= linksMax) break;
  }
  return [...links];
}
