import { absoluteLinks } from '../absolute-links.ts';

const fence = /^ {0,3}(`{3,}|~{3,})/;
/** Only their beginnings, so that no text takes longer than its length: `](address`, and `[name]: address`. */
const inline = /\]\(\s{0,10}<?([^\s<>)]{1,2000})/g;
const definition = /^ {0,3}\[[^\]]{1,200}\]:\s{0,10}<?([^\s<>]{1,2000})/;

/** What Markdown outside of blocks of code links to, absolute, each once and without fragments. */
export function markdownLinks(markdown: string, base: string): string[] {
  return absoluteLinks(hrefsOf(markdown), base);
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
