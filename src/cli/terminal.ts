/**
 * Text as a terminal may receive it: without the control characters that would move its cursor, set its title or read its
 * clipboard. Names and messages come from strangers. Colours and line ends stay.
 */
export function forTerminal(text: string): string {
  return text.replace(unsafe, (found) => (found.startsWith('\u{1b}[') ? found : ' '));
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const unsafe = /\u{1b}\[[\d;]*m|(?![\n\t])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu;
