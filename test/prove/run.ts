/**
 * Tries the promises of docs/reliability.md harder than `npm test` does, part by part.
 *   npm run prove [-- --long] [--seed N] [--only PART[,PART…]] [--list]
 *   npm run prove -- --soak 60
 * About an hour on two cores. With `--long`, several times that; two parts run at a time. A part that fails does not stop
 * the others; the exit code says that one did. The output of each part is in test/output/prove. A seed repeats the same
 * choices, but not the moments at which processes meet.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { createWriteStream, mkdirSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { progressMark } from '../support/rounds.ts';
import { listParts, type Part } from './parts.ts';
import { soak } from './soak.ts';

const { values } = parseArgs({
  options: {
    long: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    only: { type: 'string' },
    list: { type: 'boolean', default: false },
    /** Minutes of mixed load on one server, in place of the parts. */
    soak: { type: 'string' },
  },
});
const root = fileURLToPath(new URL('../..', import.meta.url));
const nameWidth = 16;
/** Most crashes and faults wait more than they compute. */
const longAtOnce = 2;
const progressEveryMs = 30_000;
const outputDir = join(root, 'test', 'output', 'prove');

type Outcome = Part & { seconds: number; passed: boolean; notes: string[] };

process.exitCode = await main();

async function main(): Promise<number> {
  const seed = Number(values.seed);
  if (!Number.isSafeInteger(seed)) throw new Error('--seed takes a whole number.');
  const all = listParts(values.long ? 'long' : 'quick', seed);
  const only = values.only?.split(',');
  const unknown = only?.find((name) => !all.some((part) => part.name === name));
  if (unknown !== undefined) throw new Error(`There is no part ${unknown}. Parts: ${namesOf(all)}`);
  const parts = all.filter(({ name }) => only?.includes(name) ?? true);
  if (values.list) {
    for (const { name, what } of parts) console.log(`${name.padEnd(nameWidth)} ${what}`);
    return 0;
  }
  mkdirSync(outputDir, { recursive: true });
  if (values.soak !== undefined) return (await soak(Number(values.soak), join(outputDir, 'soak.svg'))) ? 0 : 1;
  let signal: NodeJS.Signals | undefined;
  const running = new Set<ChildProcess>();
  for (const each of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(each, () => {
      signal = each;
      for (const child of running) child.kill(each);
    });

  const outcomes: Outcome[] = [];
  const rest = parts.values();
  const runNext = async () => {
    for (const part of rest) {
      console.log(`${part.name}: ${part.what}`);
      const outcome = await run(part, running);
      if (signal !== undefined) return;
      outcomes.push(outcome);
      console.log(`${part.name}: ${outcome.passed ? 'passed' : 'FAILED'} after ${outcome.seconds} s`);
      for (const note of outcome.notes) console.log(`  ${note}`);
      if (!outcome.passed) {
        const length = values.long ? ' --long' : '';
        console.log(`  see ${fileOf(part)}`);
        console.log(`  repeat with: npm run prove -- --only ${part.name} --seed ${seed}${length}`);
      }
    }
  };
  await Promise.all(Array.from({ length: values.long ? longAtOnce : 1 }, runNext));
  if (signal !== undefined) return 128 + constants.signals[signal];
  console.log(`\n${tableOf(outcomes, seed)}`);
  return outcomes.every(({ passed }) => passed) ? 0 : 1;
}

async function run(part: Part, running: Set<ChildProcess>): Promise<Outcome> {
  const started = performance.now();
  const file = createWriteStream(fileOf(part));
  const child = spawn(process.execPath, part.command, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PROVE_PROGRESS: '1', ...part.env },
  });
  running.add(child);
  for (const stream of [child.stdout, child.stderr]) {
    stream.pipe(file, { end: false });
    showProgress(part, stream, started);
  }
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  running.delete(child);
  await new Promise<void>((resolve) => file.end(resolve));
  const seconds = Math.round((performance.now() - started) / 1_000);
  return { ...part, seconds, passed: code === 0, notes: notesOf(readFileSync(fileOf(part), 'utf8')) };
}

/** Prints the progress that the part reports, at intervals. */
function showProgress({ name }: Part, output: Readable, started: number): void {
  let shown = started;
  createInterface({ input: output }).on('line', (line) => {
    const now = performance.now();
    if (!line.startsWith(progressMark) || now - shown < progressEveryMs) return;
    shown = now;
    console.log(`  ${name}: ${line.slice(progressMark.length).trim()}, ${Math.round((now - started) / 1_000)} s`);
  });
}

/** What the tests print as notes, and the number of tests. */
function notesOf(output: string): string[] {
  return [...output.matchAll(/^\s*ℹ (.*)$/gm)]
    .map(([, text = '']) => text)
    .filter((text) => !/^(?:suites|cancelled|todo|duration_ms|repeat with)\b/.test(text));
}

function tableOf(outcomes: Outcome[], seed: number): string {
  const rows = outcomes.map(({ name, what, seconds, passed }) => [
    ...[name, what, String(seed), String(seconds)],
    passed ? 'passed' : 'FAILED',
  ]);
  const lines = [['Part', 'Rounds', 'Seed', 'Seconds', 'Result'], ...rows];
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines.map((line) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')).join('\n');
}

function fileOf({ name }: Part): string {
  return join(outputDir, `${name}.txt`);
}

function namesOf(parts: Part[]): string {
  return parts.map(({ name }) => name).join(', ');
}
