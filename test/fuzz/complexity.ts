import { longestTurnMs } from '../support/loop-meter.ts';
import { reportProgress } from '../support/rounds.ts';
import type { TestServer } from '../support/server.ts';
import type { ApiDocument } from './api-document.ts';
import { createResources, type Outside } from './api-resources.ts';
import { type Case, casesOf, listTools, send } from './api-sweep.ts';
import type { Values } from './awkward-values.ts';
import { limitCases, rawCases, undocumentedCases } from './complexity-cases.ts';

/** No turn of the event loop takes more processor time than this, garbage collection apart. */
const turnMsMax = 50;
/** The time for four times the size is at most this many times as long. */
const growthMax = 5;
/** Below this time, the growth is noise. */
const worthComparingMs = 15;
/** A slow turn is measured again: code that runs for the first time is compiled in it, and other processes take its caches. */
const triesMax = 5;
/** The small size in characters; the large one is four times as long. Headers and paths take no more. */
const textCharacters = 4_000;
const bodyCharacters = 15_000;
const progressEvery = 100;
/** Pairs that once took too long are measured each time. */
const foundBefore = new Set([
  'POST /v1/vector_stores/{source}/search filters = short members',
  'POST /api/v1/automations workflow = long members',
  'POST /mcp params = short members',
]);
/** Measures the pairs whose names match instead: to repeat those that were found. */
const only = process.env.COMPLEXITY_ONLY === undefined ? undefined : new RegExp(process.env.COMPLEXITY_ONLY);

type ComplexityReport = {
  pairs: number;
  possible: number;
  slowestMs: number;
  slowest: string;
  /** The number of responses by status. */
  statuses: Record<string, number>;
  problems: string[];
};

/** Sends every parameter, header, member and argument of every operation and tool with texts built to be expensive. */
export async function measureComplexity(options: {
  server: TestServer;
  outside: Outside;
  /** Measures one of every `oneOf` pairs. */
  oneOf: number;
  seed: number;
}): Promise<ComplexityReport> {
  const { server, outside, oneOf, seed } = options;
  const document = (await server.api<ApiDocument>('GET', '/openapi.json')).body;
  const resources = await createResources(server, outside);
  const tools = await listTools(server, resources);
  const report: ComplexityReport = { pairs: 0, possible: 0, slowestMs: 0, slowest: '', statuses: {}, problems: [] };
  const plain: Case[] = [];
  for (const each of casesOf(document, resources, tools, expensive(1))) if (each.isPlain) plain.push(each);
  for (const each of plain) await send(server, each);
  const { routes } = server.server.api;
  const sets: ((times: number) => Generator<Case>)[] = [
    (times) => casesOf(document, resources, tools, expensive(times)),
    (times) => undocumentedCases(plain, times),
    (times) => limitCases(document, routes, plain, times),
    (times) => rawCases(resources, plain, times),
  ];
  for (const casesIn of sets) {
    let index = oneOf - (seed % oneOf);
    const larger = casesIn(4);
    for (const small of casesIn(1)) {
      const large = larger.next().value as Case;
      if (small.isPlain) continue;
      report.possible += 1;
      const isNext = index++ % oneOf === 0;
      if (only === undefined ? !isNext && !foundBefore.has(small.name) : !only.test(small.name)) continue;
      report.pairs += 1;
      if (report.pairs % progressEvery === 0)
        reportProgress(report.pairs, report.pairs, `pairs, ${report.problems.length} problems`);
      // Built before, because this process is also the client.
      const turn = (one: Case) => {
        const sent = one.send();
        return longestTurnMs(async () => {
          const outcome = await send(server, { ...one, send: () => sent });
          const status = typeof outcome === 'string' ? outcome : String(outcome.status);
          report.statuses[status] = (report.statuses[status] ?? 0) + 1;
        });
      };
      const { problem, largeMs } = await judge(
        () => turn(small),
        () => turn(large),
      );
      if (largeMs > report.slowestMs) Object.assign(report, { slowestMs: Math.round(largeMs), slowest: small.name });
      if (problem !== undefined) report.problems.push(`${small.name}: ${problem}`);
    }
  }
  return report;
}

/** Measures work of one and of four times a size. Returns what is wrong with it. */
export async function judge(
  small: () => Promise<number>,
  large: () => Promise<number>,
): Promise<{ problem: string | undefined; largeMs: number }> {
  let largeMs = Number.POSITIVE_INFINITY;
  let smallMs = 0;
  for (let tries = 0; tries < triesMax; tries++) {
    largeMs = Math.min(largeMs, await large());
    if (largeMs <= worthComparingMs) return { problem: undefined, largeMs };
    // The slowest of the small ones: compared with it, a growth is certain.
    smallMs = Math.max(smallMs, await small());
    if (largeMs <= turnMsMax && largeMs <= growthMax * smallMs) return { problem: undefined, largeMs };
  }
  const times = `${smallMs.toFixed(1)} ms, and ${largeMs.toFixed(1)} ms for four times the size`;
  return { problem: times, largeMs };
}

/** Texts and values of a size that have made some parser take the square of it. */
function expensive(times: number): Values {
  const fill = (unit: string, characters: number) => unit.repeat(Math.floor((times * characters) / unit.length));
  const units = [
    'a',
    ' ',
    '(',
    '{{1}}',
    '/',
    '%25',
    '"',
    '\\',
    'a,',
    'a.',
    '*a',
    '=',
    '-',
    ';q=0,',
    'a: 1\n',
    '9',
    'é',
  ];
  const text = (unit: string) => `${fill(unit, textCharacters)}!`;
  const count = Math.floor((times * bodyCharacters) / 12);
  const members = Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, index]));
  return {
    texts: units.map(text),
    json: [
      members,
      Array.from({ length: count }, (_, index) => `v${index}`),
      { properties: members },
      { type: 'object', properties: { a: { type: 'string', pattern: `(${fill('.*a', textCharacters)})+$` } } },
    ],
  };
}
