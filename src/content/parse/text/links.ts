const linksMax = 5_000;
const fence = /^ {0,3}(`{3,}|~{3,})/;
/** Only their beginnings, so that no text takes longer than its length: `](address`, and `[name]: address`. */
const inline = /\]\(\s{0,10}<?([^\s<>)]{1,2000})/g;
const definition = /^ {0,3}\[[^\]]{1,200}\]:\s{0,10}<?([^\s<>]{1,2000})/;

/** What Markdown outside of blocks of code links to, absolute, each once and without fragments, at most 5,000. */
export function markdownLinks(markdown: string, base: string): string[] {
  const links = new Set<string>();
  for (const href of hrefsOf(markdown)) {
    const url = URL.parse(href, base);
    if (url?.protocol !== 'http:' && url?.protocol !== 'https:') continue;
    url.hash = '';
    links.add(url.href);
    if (links.size >= linksMax) break;
  }
  return [...links];
}

function* hrefsOf(markdown: string): Generator<string> {
  let open: string | undefined;
  for (const line of markdown.split('\n')) {
    const mark = fence.exec(line)?.[1];
    if (open !== undefined) {
      if (mark?.startsWith(open)) open = undefined;
    } else if (mark !== undefined) open = mark;
    else if (line.includes(']')) {
      for (const [, href = ''] of line.matchAll(inline)) yield href;
      const named = definition.exec(line)?.[1];
      if (named !== undefined) yield named;
    }
  }
}
