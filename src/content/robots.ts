/** The Robots Exclusion Protocol (RFC 9309), with crawl-delay and sitemap lines as widely used beside it. */

export type RobotsRules = {
  /** Whether this agent may fetch the URL. */
  allows(url: URL): boolean;
  /** The pause between two requests that the site asks for; undefined when it says nothing. */
  crawlDelayMs: number | undefined;
  sitemaps: string[];
};

/** RFC 9309 asks crawlers to read at least 500 KiB. */
export const robotsBytesMax = 512 * 1024;
const rulesMax = 20_000;
const sitemapLinesMax = 50;
const crawlDelayMsMax = 30_000;

type Rule = { allow: boolean; pattern: string };
type Group = { agents: string[]; rules: Rule[]; crawlDelayMs: number | undefined };

/** The text of robots.txt: UTF-8, or UTF-16 as some editors save it, with or without a byte order mark. */
export function decodeRobots(bytes: Uint8Array): string {
  const start = bytes.subarray(0, robotsBytesMax);
  const [first, second] = start;
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0))
    return new TextDecoder('utf-16le').decode(start);
  if ((first === 0xfe && second === 0xff) || (first === 0 && second !== 0 && second !== undefined))
    return new TextDecoder('utf-16be').decode(start);
  return new TextDecoder().decode(start);
}

/** The rules of robots.txt for the product token `agent` (such as "quarry"). Lines that make no sense are passed over. */
export function parseRobots(text: string, agent: string): RobotsRules {
  const { groups, sitemaps } = readGroups(text);
  const token = agent.toLowerCase();
  const named = groups.filter((group) => group.agents.includes(token));
  const chosen = named.length > 0 ? named : groups.filter((group) => group.agents.includes('*'));
  const rules = chosen.flatMap((group) => group.rules);
  return {
    allows: (url) => judge(rules, url.pathname + url.search),
    crawlDelayMs: chosen.map((group) => group.crawlDelayMs).find((delay) => delay !== undefined),
    sitemaps,
  };
}

/** What an absent robots.txt (4xx) means, and what one that cannot be had (5xx, no connection) means. */
export const allowEverything: RobotsRules = { allows: () => true, crawlDelayMs: undefined, sitemaps: [] };
export const allowNothing: RobotsRules = { allows: () => false, crawlDelayMs: undefined, sitemaps: [] };

function readGroups(text: string): { groups: Group[]; sitemaps: string[] } {
  const groups: Group[] = [];
  const sitemaps: string[] = [];
  let current: Group | undefined;
  let inAgents = false;
  let rules = 0;
  for (const line of text
    .slice(0, robotsBytesMax)
    .replace(/^\uFEFF/, '')
    .split(/\r\n|\r|\n/)) {
    const parts = /^\s*([A-Za-z-]+)\s*:\s*([^#]*)/.exec(line);
    if (parts === null) continue;
    const name = (parts[1] ?? '').toLowerCase();
    const value = (parts[2] ?? '').trim();
    if (name === 'sitemap') {
      if (sitemaps.length < sitemapLinesMax && value !== '') sitemaps.push(value);
    } else if (name === 'user-agent') {
      if (!inAgents || current === undefined) {
        current = { agents: [], rules: [], crawlDelayMs: undefined };
        groups.push(current);
      }
      current.agents.push(value === '*' ? '*' : (/^[A-Za-z_-]+/.exec(value)?.[0] ?? '').toLowerCase());
      inAgents = true;
    } else if (current !== undefined && (name === 'allow' || name === 'disallow')) {
      inAgents = false;
      if (value !== '' && rules++ < rulesMax)
        current.rules.push({ allow: name === 'allow', pattern: canonical(value) });
    } else if (current !== undefined && name === 'crawl-delay') {
      inAgents = false;
      const seconds = Number(value);
      if (value !== '' && seconds >= 0) current.crawlDelayMs ??= Math.min(seconds * 1_000, crawlDelayMsMax);
    }
  }
  return { groups, sitemaps };
}

/** The longest matching pattern decides; allow wins a tie; robots.txt itself is always allowed. */
function judge(rules: Rule[], path: string): boolean {
  if (path === '/robots.txt') return true;
  const subject = canonical(path);
  let best: Rule | undefined;
  for (const rule of rules) {
    const longer = best === undefined || rule.pattern.length > best.pattern.length;
    const tie = best !== undefined && rule.pattern.length === best.pattern.length && rule.allow && !best.allow;
    if ((longer || tie) && matchesPathPattern(rule.pattern, subject)) best = rule;
  }
  return best?.allow ?? true;
}

/**
 * A path pattern of robots.txt: a prefix in which `*` stands for anything and a final `$` for the end.
 * Runs in time linear in pattern times path: no backtracking, so a hostile pattern costs nothing.
 */
export function matchesPathPattern(pattern: string, path: string): boolean {
  const anchored = pattern.endsWith('$');
  const pieces = (anchored ? pattern.slice(0, -1) : pattern).split('*');
  const first = pieces[0] ?? '';
  if (!path.startsWith(first)) return false;
  let at = first.length;
  for (let i = 1; i < pieces.length; i++) {
    const piece = pieces[i] ?? '';
    const last = i === pieces.length - 1;
    if (last && anchored) return path.length - piece.length >= at && path.endsWith(piece);
    const found = path.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  return !anchored || at === path.length;
}

/** Both sides of the comparison in one spelling: UTF-8 percent-encoded, hex in capitals, unreserved octets plain. */
export function canonical(path: string): string {
  return path
    .replace(/[^\x21-\x7e]+/g, (raw) => encodeURIComponent(raw.toWellFormed()))
    .replace(/%([0-9a-fA-F]{2})/g, (_all, hex: string) => {
      const letter = String.fromCharCode(Number.parseInt(hex, 16));
      return /[A-Za-z0-9\-._~]/.test(letter) ? letter : `%${hex.toUpperCase()}`;
    });
}
