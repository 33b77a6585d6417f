/** "1 page", "2 pages". `plural` is for nouns that need more than an s. */
export function countOf(number: number, noun: string, plural = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : plural}`;
}
