import { setTimeout as wait } from 'node:timers/promises';
import { FetchError } from '../content/fetch/errors.ts';
import type { Fetcher, FetchResponse } from '../content/fetch/guarded-fetch.ts';
import type { ParserPool } from '../content/parse/pool/pool.ts';
import { ParseError } from '../content/parse/types.ts';
import { type RobotsFile, robotsBytesMax } from '../content/robots-file.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { isRetryable, retryDelayMs } from './retry.ts';
import { allowEverything, allowNothing, type RobotsRules, robotsRules } from './robots.ts';
import { type HostRow, insertHost, listHosts } from './store.ts';
import type { Crawl } from './types.ts';

/** The product token that this crawler looks for in robots.txt. */
const robotsAgent = 'quarry';

type RobotsDeps = { db: Db; fetcher: Fetcher; parser: ParserPool; clock: Clock };

/**
 * The robots.txt of each host of one crawl, fetched once and stored with the crawl, so that the whole crawl uses one
 * version.
 */
export class RobotsCache {
  readonly #deps: RobotsDeps;
  readonly #crawl: Crawl;
  readonly #signal: AbortSignal;
  readonly #rules = new Map<string, Promise<RobotsRules>>();

  constructor(deps: RobotsDeps, crawl: Crawl, signal: AbortSignal) {
    this.#deps = deps;
    this.#crawl = crawl;
    this.#signal = signal;
  }

  async load(): Promise<void> {
    for (const row of await listHosts(this.#deps.db, this.#crawl))
      this.#rules.set(row.origin, Promise.resolve(rulesOf(row)));
  }

  /** Throws FetchError if the host cannot be reached. The next call tries again. */
  rulesFor(url: URL): Promise<RobotsRules> {
    if (this.#crawl.settings.ignoreRobots) return Promise.resolve(allowEverything);
    const { origin } = url;
    let rules = this.#rules.get(origin);
    if (rules === undefined) {
      rules = this.#read(origin);
      this.#rules.set(origin, rules);
      rules.catch(() => this.#rules.delete(origin));
    }
    return rules;
  }

  async #read(origin: string): Promise<RobotsRules> {
    const row = await fetchRobots(this.#deps, this.#crawl.appId, origin, this.#signal);
    await insertHost(this.#deps.db, this.#crawl, row);
    return rulesOf(row);
  }
}

function rulesOf(row: HostRow): RobotsRules {
  if (row.state === 'open') return allowEverything;
  return row.state === 'closed' ? allowNothing : robotsRules(JSON.parse(row.robots ?? '') as RobotsFile);
}

/** RFC 9309, 2.3.1: a missing file (4xx) allows everything, a failing server (5xx, 429) allows nothing. */
async function fetchRobots(
  { fetcher, parser, clock }: RobotsDeps,
  lane: string,
  origin: string,
  signal: AbortSignal,
): Promise<HostRow> {
  for (let tries = 1; ; tries++) {
    const response = await fetcher.fetch(`${origin}/robots.txt`, {
      lane,
      signal,
      timeoutMs: robotsTimeoutMs,
      // Only the start is read, whatever the length.
      bytesMax: Number.POSITIVE_INFINITY,
    });
    if (response.status >= 200 && response.status < 300)
      return { origin, state: 'found', robots: await readRobots(parser, response, { lane, signal }) };
    response.discard();
    if (!isRetryable(response.status)) return { origin, state: 'open', robots: null };
    const delayMs = retryDelayMs(tries, undefined, clock.now());
    if (delayMs === undefined) return { origin, state: 'closed', robots: null };
    await wait(delayMs, undefined, { signal });
  }
}

const robotsTimeoutMs = 15_000;

/**
 * Reads at most the required size of robots.txt; rules after it do not apply. A file that crashes its parser counts
 * as having no rules.
 */
async function readRobots(
  parser: ParserPool,
  { body, headers }: FetchResponse,
  run: { lane: string; signal: AbortSignal },
): Promise<string> {
  const input = {
    bytes: await readStart(body),
    contentEncoding: headers['content-encoding'] ?? '',
    decodedBytesMax: robotsBytesMax,
    cutBody: true,
    agent: robotsAgent,
  };
  const file = await parser.run<RobotsFile>('robots', input, run).catch((error: unknown): RobotsFile => {
    if (error instanceof ParseError || error instanceof FetchError) return { rules: [], sitemaps: [] };
    throw error;
  });
  // PostgreSQL text cannot contain NUL, and no rule needs one.
  return JSON.stringify(file).replaceAll('\\u0000', '');
}

async function readStart(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    if (bytes >= robotsBytesMax) break;
  }
  return Buffer.concat(chunks).subarray(0, robotsBytesMax);
}
