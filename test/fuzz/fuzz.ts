import { ParserPool } from '../../src/content/parse/pool/pool.ts';
import { ParseError } from '../../src/content/parse/types.ts';
import type { Logger } from '../../src/lib/log.ts';
import type { SampleDocument } from '../support/documents.ts';
import { reportProgress } from '../support/rounds.ts';
import { startWatch } from '../support/speed.ts';
import { Mutator } from './mutate.ts';

type FuzzOptions = {
  documents: SampleDocument[];
  /** The last files, as many as this, are made into small pictures instead of being read. */
  pictures?: number;
  files: number;
  seed: number;
  deadlineMs: number;
  memoryMb: number;
  log: Logger;
};

type FuzzReport = {
  files: number;
  /** The number of outcomes: `document` (or picture), or the reason of a ParseError. */
  outcomes: Record<string, number>;
  slowestMs: number;
  slowestFile: string;
  serverGrowthMb: number;
  processesEnded: string[];
  problems: string[];
};

const parallel = 2;
const graceMs = 2_000;
const growthMbMax = 128;
const filesPerReport = 1_000;

/** Sends this many damaged copies of the documents through a separate pool. */
export async function fuzz(options: FuzzOptions): Promise<FuzzReport> {
  const pool = new ParserPool({
    workers: parallel,
    memoryMb: options.memoryMb,
    deadlineMs: options.deadlineMs,
    log: options.log,
  });
  const mutator = new Mutator(options.seed);
  const report: FuzzReport = {
    files: 0,
    outcomes: {},
    slowestMs: 0,
    slowestFile: '',
    serverGrowthMb: 0,
    processesEnded: [],
    problems: [],
  };
  const before = process.memoryUsage.rss();
  const cases = damagedFiles(options, mutator);
  await Promise.all(Array.from({ length: parallel }, () => consume(pool, cases, options, report)));
  report.serverGrowthMb = Math.round((process.memoryUsage.rss() - before) / 1024 / 1024);
  if (report.serverGrowthMb > growthMbMax)
    report.problems.push(`the server's memory grew by ${report.serverGrowthMb} MB`);
  await pool.close();
  return report;
}

type Case = { name: string; filename: string; bytes: Uint8Array; isPicture: boolean };

function* damagedFiles(options: FuzzOptions, mutator: Mutator): Generator<Case> {
  for (let index = 0; index < options.files; index++) {
    const document = options.documents[index % options.documents.length];
    const donor = options.documents[mutator.next(options.documents.length)];
    if (!document || !donor) return;
    const { kind, bytes } = mutator.mutate(document.bytes, donor.bytes);
    const filename = mutator.next(3) === 0 ? 'upload' : document.filename;
    const isPicture = index % options.documents.length >= options.documents.length - (options.pictures ?? 0);
    yield { name: `#${index} ${document.filename} (${kind})`, filename, bytes, isPicture };
  }
}

async function consume(
  pool: ParserPool,
  cases: Generator<Case>,
  options: FuzzOptions,
  report: FuzzReport,
): Promise<void> {
  for (const { name, filename, bytes, isPicture } of cases) {
    const watch = startWatch();
    let outcome = 'document';
    const noteEnd = (message: string): void => {
      if (/crash|memory|within/.test(message)) report.processesEnded.push(`${name}: ${message}`);
    };
    try {
      if (isPicture) await pool.picture(bytes, { width: 256, format: 'webp' });
      else {
        // A message within a message may fail alone when it ends its process, but the failure must be reported.
        const { parts = [] } = await pool.parse({ bytes, filename }, { parts: 'apart' });
        for (const { error } of parts) if (error) noteEnd(error.message);
      }
    } catch (error) {
      outcome = error instanceof ParseError ? error.reason : 'no ParseError';
      if (!(error instanceof ParseError)) report.problems.push(`${name}: ${String(error)}`);
      else noteEnd(error.message);
    }
    const tookMs = Math.round(watch.passedMs());
    report.files += 1;
    if (report.files % filesPerReport === 0) reportProgress(report.files, options.files, 'damaged files');
    report.outcomes[outcome] = (report.outcomes[outcome] ?? 0) + 1;
    if (tookMs > report.slowestMs) Object.assign(report, { slowestMs: tookMs, slowestFile: name });
    if (watch.isLate(options.deadlineMs + graceMs)) report.problems.push(`${name}: took ${tookMs} ms`);
  }
}
