import { type RefObject, useEffect } from 'react';

const highlightName = 'quoted';

/** Marks phrases in the text of an element, across the borders of its elements, whatever stands between the words. */
export function useMarkedPhrases(host: RefObject<HTMLElement | null>, phrases: string[]): void {
  const wanted = JSON.stringify(phrases);
  useEffect(() => {
    if (!host.current || !('highlights' in CSS)) return;
    const highlight = CSS.highlights.get(highlightName) ?? new Highlight();
    CSS.highlights.set(highlightName, highlight);
    const ranges = (JSON.parse(wanted) as string[]).flatMap((phrase) =>
      findPhrase(host.current as HTMLElement, phrase),
    );
    for (const range of ranges) highlight.add(range);
    return () => {
      for (const range of ranges) highlight.delete(range);
    };
  }, [host, wanted]);
}

function findPhrase(host: HTMLElement, phrase: string): Range[] {
  const words = phrase.match(/[\p{L}\p{N}]+/gu);
  if (words === null) return [];
  const nodes: { node: Node; start: number }[] = [];
  let text = '';
  const walker = document.createTreeWalker(host, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    nodes.push({ node: walker.currentNode, start: text.length });
    text += walker.currentNode.nodeValue ?? '';
  }
  const match = new RegExp(words.join('[^\\p{L}\\p{N}]*'), 'u').exec(text);
  if (match === null) return [];
  const range = document.createRange();
  const from = nodes.findLast(({ start }) => start <= match.index);
  const end = match.index + match[0].length;
  const to = nodes.findLast(({ start }) => start < end);
  if (from === undefined || to === undefined) return [];
  range.setStart(from.node, match.index - from.start);
  range.setEnd(to.node, end - to.start);
  return [range];
}
