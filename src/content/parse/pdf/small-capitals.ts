/** The piece of a line with which another size of type begins. */
export type SizeChange = { from: number; size: number };

/** At least five capital letters and no lower-case ones. */
const capitals = /^(?!.*\p{Ll})(?:.*?\p{Lu}){5}/u;

/**
 * Whether a text is in small capitals, drawn as larger and smaller capitals. The larger ones show the size of the type.
 * `ratio` is that of its first letter to most of it.
 */
export function isInSmallCapitals(text: string, ratio: number): boolean {
  return ratio > 1.1 && ratio < 1.6 && capitals.test(text);
}

/**
 * Whether a line is in the small capitals of a browser: all of its capital letters and digits have one size, and all of its
 * lower-case letters, which are drawn as capitals, a smaller one.
 */
export function isLowerCaseSmaller(pieces: string[], sizes: SizeChange[]): boolean {
  const large = Math.max(...sizes.map(({ size }) => size));
  let small = 0;
  for (const [index, { from, size }] of sizes.entries()) {
    const text = pieces.slice(from, sizes[index + 1]?.from).join('');
    if (size === large ? /\p{Ll}/u.test(text) : /[\p{Lu}\p{N}]/u.test(text)) return false;
    if (size < large * 0.6 || (size < large && size > large * 0.9)) return false;
    if (size < large) small += text.match(/\p{Ll}/gu)?.length ?? 0;
  }
  return small >= 3;
}
