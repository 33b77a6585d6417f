import { canonical, type RobotsFile, type RobotsRule } from '../content/robots-file.ts';

/** The Robots Exclusion Protocol (RFC 9309), with the widely used crawl-delay and sitemap lines. */
export type RobotsRules = {
  /** Whether this crawler may fetch the URL. */
  allows(url: URL): boolean;
  /** The pause between two requests that the site requires, if any. */
  crawlDelayMs: number | undefined;
  sitemaps: string[];
  /** The file could not be read, so its rules are unknown. */
  isUnavailable?: boolean;
};

export function robotsRules({ rules, crawlDelayMs, sitemaps }: RobotsFile): RobotsRules {
  return { allows: (url) => judge(rules, url.pathname + url.search), crawlDelayMs, sitemaps };
}

/** The meanings of an absent robots.txt (4xx) and of an unavailable one (5xx, no connection). */
export const allowEverything: RobotsRules = { allows: () => true, crawlDelayMs: undefined, sitemaps: [] };
export const allowNothing: RobotsRules = {
  allows: () => false,
  crawlDelayMs: undefined,
  sitemaps: [],
  isUnavailable: true,
};

/** The longest matching pattern decides. On a tie, allow wins. robots.txt itself is always allowed. */
function judge(rules: readonly RobotsRule[], path: string): boolean {
  if (path === '/robots.txt') return true;
  const subject = canonical(path);
  let best: RobotsRule | undefined;
  for (const rule of rules) {
    const longer = best === undefined || rule.pattern.length > best.pattern.length;
    const tie = best !== undefined && rule.pattern.length === best.pattern.length && rule.allow && !best.allow;
    if ((longer || tie) && matchesPathPattern(rule.pattern, subject)) best = rule;
  }
  return best?.allow ?? true;
}

/**
 * Matches a path pattern of robots.txt: a prefix in which `*` matches anything and a final `$` matches the end.
 * Takes time linear in pattern times path: without backtracking, a hostile pattern does no harm.
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
