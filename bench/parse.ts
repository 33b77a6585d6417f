/**
 * What the parser pool costs on top of the engine, in one run:
 *   node bench/parse.ts [FILE.pdf] [--rounds 40] Latency of a PDF through the pool against the plain engine in this
 *   process, and documents per second with two workers against one, compared with what two bare processes of the
 *   engine reach on this machine. Without a file, a page that this project draws.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { PDFiumLibrary } from '@hyzyla/pdfium';
import { ParserPool } from '../src/content/parse/pool/pool.ts';
import { samplePdf } from '../src/content/parse/sample-pdf.ts';
import { createLogger } from '../src/lib/log.ts';
import { keepRatio } from './ratios.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '40' } },
});
const rounds = Number(values.rounds);
const bytes = positionals[0] === undefined ? samplePdf() : readFileSync(positionals[0]);
const log = createLogger('error');

const library = await PDFiumLibrary.init();
if (process.send) {
  await repeat(rounds, plainEngine);
  process.send('ready');
  await once(process, 'message');
  await repeat(rounds * 4, plainEngine);
  process.exit();
}
const pools = new Map(
  [1, 2].map((workers) => [workers, new ParserPool({ workers, memoryMb: 512, deadlineMs: 60_000, log })]),
);
for (const pool of pools.values()) await repeat(10, () => pool.parse({ bytes }));
await repeat(10, plainEngine);

const engineMs: number[] = [];
const poolMs: number[] = [];
for (let round = 0; round < rounds; round++) {
  engineMs.push(await timed(plainEngine));
  poolMs.push(await timed(() => pools.get(1)?.parse({ bytes })));
}
const [engine, pool] = [median(engineMs), median(poolMs)];
keepRatio('parse, a page through the pool', engine / pool);
console.log(`plain engine      ${engine.toFixed(1)} ms`);
console.log(
  `through the pool  ${pool.toFixed(1)} ms = ${(pool / engine).toFixed(2)} x engine, or 1.3 x engine ${signed(pool - 1.3 * engine)} ms`,
);

// The turns alternate, so that other load on the machine affects all equally.
const scaling = { engine: [] as number[], pool: [] as number[] };
const rates = new Map<number, number[]>([1, 2].map((workers) => [workers, []]));
for (let turn = 0; turn < 5; turn++) {
  scaling.engine.push((await engineRate(2)) / (await engineRate(1)));
  const rate = new Map<number, number>();
  for (const [workers, one] of pools) {
    const tookMs = await timed(() => Promise.all(Array.from({ length: rounds * 4 }, () => one.parse({ bytes }))));
    rate.set(workers, (rounds * 4 * 1000) / tookMs);
    rates.get(workers)?.push((rounds * 4 * 1000) / tookMs);
  }
  scaling.pool.push((rate.get(2) ?? 0) / (rate.get(1) ?? 1));
}
for (const [workers, all] of rates)
  console.log(`${workers} worker${workers === 1 ? ' ' : 's'}         ${median(all).toFixed(0)} documents/s`);
console.log(`two bare engines = ${median(scaling.engine).toFixed(2)} x one`);
console.log(`two workers = ${median(scaling.pool).toFixed(2)} x one`);
await Promise.all([...pools.values()].map((one) => one.close()));
library.destroy();

async function plainEngine(): Promise<void> {
  const document = await library.loadDocument(bytes);
  for (const page of document.pages()) page.getText();
  document.destroy();
}

/** Documents per second of this many concurrent bare processes of the engine. */
async function engineRate(processes: number): Promise<number> {
  const children = Array.from({ length: processes }, () => fork(import.meta.filename, process.argv.slice(2)));
  await Promise.all(children.map((child) => once(child, 'message')));
  const ended = children.map((child) => once(child, 'exit'));
  const tookMs = await timed(() => {
    for (const child of children) child.send('go');
    return Promise.all(ended);
  });
  return (processes * rounds * 4 * 1000) / tookMs;
}

async function repeat(times: number, act: () => Promise<unknown>): Promise<void> {
  for (let time = 0; time < times; time++) await act();
}

async function timed(act: () => Promise<unknown> | undefined): Promise<number> {
  const started = performance.now();
  await act();
  return performance.now() - started;
}

function median(values: number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

function signed(value: number): string {
  return `${value < 0 ? '-' : '+'} ${Math.abs(value).toFixed(1)}`;
}
