/** What a page of documentation consists of beside its words, as texts that can be compared. */
export type Structure = {
  /** `2 Before you start` */
  headings: string[];
  code: string[];
  /** A language, and the code in it. */
  codeWithLanguage: string[];
  /** The text of a list item, and the code in it. */
  codeInItems: string[];
  /** The header of a table, a row, a column, and the text in that cell. */
  tables: string[];
  /** `1 ordered Missing files.` */
  lists: string[];
  /** A text, and its address. */
  links: string[];
  admonitions: string[];
  /** The label of a tab, and its first content. */
  tabs: string[];
  definitions: string[];
  /** The texts of notes to which the page refers. */
  footnotes: string[];
  formulas: string[];
};

export const measures = [
  'headings',
  'code',
  'codeWithLanguage',
  'codeInItems',
  'tables',
  'lists',
  'links',
  'admonitions',
  'tabs',
  'definitions',
  'footnotes',
  'formulas',
] as const satisfies (keyof Structure)[];

export function emptyStructure(): Structure {
  return {
    headings: [],
    code: [],
    codeWithLanguage: [],
    codeInItems: [],
    tables: [],
    lists: [],
    links: [],
    admonitions: [],
    tabs: [],
    definitions: [],
    footnotes: [],
    formulas: [],
  };
}

/** Generators draw quotes and dashes instead of the typed ones, and wrap lines. */
export function plainWords(text: string): string {
  return text
    .replaceAll(/[‘’]/g, "'")
    .replaceAll(/[“”]/g, '"')
    .replaceAll(/[–—]/g, '--')
    .replaceAll('…', '...')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

export function plainCode(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .replaceAll(/^\n+|\n+$/g, '');
}

const sameLanguage: Record<string, string> = {
  ...{ js: 'javascript', jsx: 'javascript', mjs: 'javascript', ts: 'typescript', py: 'python', python3: 'python' },
  ...{ sh: 'bash', shell: 'bash', zsh: 'bash', console: 'bash', yml: 'yaml', rs: 'rust', golang: 'go' },
};

export function languageName(name: string): string {
  const lower = name.toLowerCase();
  return sameLanguage[lower] ?? lower;
}

/** The harmonic mean of precision and recall; undefined if there is nothing to find and nothing was found. */
export function f1(expected: readonly string[], found: readonly string[]): number | undefined {
  if (expected.length === 0 && found.length === 0) return undefined;
  const left = new Map<string, number>();
  for (const one of expected) left.set(one, (left.get(one) ?? 0) + 1);
  let hits = 0;
  for (const one of found) {
    const count = left.get(one) ?? 0;
    if (count === 0) continue;
    hits += 1;
    left.set(one, count - 1);
  }
  return (2 * hits) / (expected.length + found.length);
}
