/**
 * Returns the word that needs the fewest insertions, deletions and replacements of characters to become `word`
 * (Levenshtein's distance); undefined if each needs more than a third of the word's characters.
 */
export function findNearest(word: string, words: Iterable<string>): string | undefined {
  let nearest: string | undefined;
  let least = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const each of words) {
    if (Math.abs(each.length - word.length) >= least) continue;
    const distance = distanceOf(word, each);
    if (distance >= least) continue;
    nearest = each;
    least = distance;
  }
  return nearest;
}

/**
 * Words to put after a problem with `name`, if it is probably one of `names`. A long name would take long to compare, and
 * a short one resembles many.
 */
export function suggestNearest(name: string, names: Iterable<string>): string {
  const nearest = name.length < 4 || name.length > 100 ? undefined : findNearest(name, names);
  return nearest === undefined ? '' : `; did you mean ${nearest}?`;
}

function distanceOf(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let row = 1; row <= a.length; row++) {
    const line = [row];
    for (let at = 1; at <= b.length; at++) {
      const replaced = (above[at - 1] ?? 0) + (a[row - 1] === b[at - 1] ? 0 : 1);
      line.push(Math.min(replaced, (above[at] ?? 0) + 1, (line[at - 1] ?? 0) + 1));
    }
    above = line;
  }
  return above[b.length] ?? 0;
}
