import { defined } from '../../../lib/defined.ts';
import { canonical, type RobotsFile, type RobotsRule, robotsBytesMax } from '../../robots-file.ts';

const rulesMax = 20_000;
const sitemapLinesMax = 50;
const crawlDelayMsMax = 30_000;

type Group = { agents: string[]; rules: RobotsRule[]; crawlDelayMs: number | undefined };

/** Decodes robots.txt: UTF-8, or UTF-16 as some editors save it, with or without a byte order mark. */
export function decodeRobots(bytes: Uint8Array): string {
  const start = bytes.subarray(0, robotsBytesMax);
  const [first, second] = start;
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0))
    return new TextDecoder('utf-16le').decode(start);
  if ((first === 0xfe && second === 0xff) || (first === 0 && second !== 0 && second !== undefined))
    return new TextDecoder('utf-16be').decode(start);
  return new TextDecoder().decode(start);
}

/** Parses the rules of robots.txt for the product token `agent` (such as "quarry"). Skips invalid lines. */
export function parseRobots(bytes: Uint8Array, agent: string): RobotsFile {
  const { groups, sitemaps } = readGroups(decodeRobots(bytes));
  const token = agent.toLowerCase();
  const named = groups.filter((group) => group.agents.includes(token));
  const chosen = named.length > 0 ? named : groups.filter((group) => group.agents.includes('*'));
  const crawlDelayMs = chosen.map((group) => group.crawlDelayMs).find((delay) => delay !== undefined);
  return {
    rules: chosen.flatMap((group) => group.rules),
    ...defined({ crawlDelayMs }),
    sitemaps,
  };
}

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
