/**
 * Removes the control characters that would move a terminal's cursor, set its title or read its clipboard: names and
 * messages are untrusted. Colours and line ends stay.
 */
export function sanitizeForTerminal(text: string): string {
  return text.replace(unsafe, (found) => (found.startsWith('\u{1b}[') ? found : ' '));
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are removed.
const unsafe = /\u{1b}\[[\d;]*m|(?![\n\t])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu;
