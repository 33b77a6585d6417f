const wordsOfPatterns = new Map<string, string>();

/**
 * The member `pattern` of a schema.
 * @param words what is wrong with a text that does not match, such as `must be a media type`: people do not read patterns
 */
export function pattern(expression: string, words: string): { pattern: string } {
  wordsOfPatterns.set(expression, words);
  return { pattern: expression };
}

/** What is wrong with a text that does not match the pattern of a schema. */
export function wordsOfPattern(expression: string): string | undefined {
  return wordsOfPatterns.get(expression);
}
