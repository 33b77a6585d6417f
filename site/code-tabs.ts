/*
 * Consecutive blocks that say the same in different languages become tabs. In the Markdown they stay plain blocks: GitHub
 * shows them one below the other, and the tests of the guides run each.
 */
type Token = { type: string; info: string; content: string };
type Tab<T> = { label: string; blocks: T[] };

const languages: Record<string, string> = { ts: 'TypeScript', python: 'Python' };

/** What a block shows, if it can be a tab. */
export function labelOf({ info, content }: Token): string | undefined {
  const language = info.trim().split(/\s/)[0] ?? '';
  if (language !== 'sh') return languages[language];
  return /\bcurl\b/.test(content) ? 'curl' : /^(?:npx )?quarry\b/m.test(content) ? 'CLI' : undefined;
}

/**
 * The tabs that begin at a block, and how many tokens they take. The output of a block, a `text` block after it, belongs
 * to its tab. There are no tabs without a second language.
 */
export function findTabs<T extends Token>(tokens: T[], start: number): { tabs: Tab<T>[]; length: number } {
  const tabs: Tab<T>[] = [];
  let at = start;
  for (; tokens[at]?.type === 'fence'; at += 1) {
    const token = tokens[at] as T;
    const tab = tabs.at(-1);
    if (token.info.trim() === 'text' && tab?.blocks.length === 1) tab.blocks.push(token);
    else {
      const label = labelOf(token);
      if (label === undefined || tabs.some((other) => other.label === label)) break;
      tabs.push({ label, blocks: [token] });
    }
  }
  return tabs.length > 1 ? { tabs, length: at - start } : { tabs: [], length: 0 };
}
