import { readFileSync } from 'node:fs';
import { type Counts, noCounts, type Problem, type Verified } from '../ledger/findings.ts';
import { type ExportedHead, type ReadHead, readHead } from '../ledger/head.ts';
import { countOf } from './count.ts';
import { UsageError } from './errors.ts';

const headBytesMax = 64 * 1024 * 1024;

/** Reads exported heads from files. Each holds one head, or the list that `quarry heads` prints. */
export function readHeadFiles(files: readonly string[]): ReadHead[] {
  return files.flatMap((file) => {
    const heads = parseFile(file);
    return heads.map((head) => {
      const read = head === null || typeof head !== 'object' ? undefined : readHead(head as ExportedHead);
      if (read === undefined) throw new UsageError(`${file} is not an exported head, or it was changed.`);
      return read;
    });
  });
}

function parseFile(file: string): unknown[] {
  try {
    const text = readFileSync(file, 'utf8');
    if (text.length > headBytesMax) throw new Error('too long');
    const value = JSON.parse(text) as { heads?: unknown };
    return Array.isArray(value.heads) ? value.heads : [value];
  } catch (error) {
    throw new UsageError(
      `${file} cannot be read as an exported head: ${error instanceof Error ? error.message : error}`,
    );
  }
}

/** Prints problems as they are found, and totals at the end. */
export class Report {
  readonly #json: boolean;
  readonly counts: Counts = noCounts();
  problems = 0;

  constructor(json: boolean) {
    this.#json = json;
  }

  add({ problems, counts }: Pick<Verified, 'problems' | 'counts'>): void {
    for (const problem of problems) this.print(problem);
    for (const name of Object.keys(this.counts) as (keyof Counts)[]) this.counts[name] += counts[name];
  }

  print(problem: Problem): void {
    this.problems += 1;
    const { kind, chain, record, segment, message } = problem;
    const where = [chain, record, segment === undefined ? undefined : `segment ${segment}`].filter(Boolean).join(', ');
    process.stdout.write(this.#json ? `${JSON.stringify({ problem })}\n` : `${kind} ${where}: ${message}\n`);
  }

  /** Returns the exit code. */
  end(ledgers: number, heads: number): number {
    const { segments, records, runs, entries, removed, unsealed } = this.counts;
    const result = this.problems === 0 ? 'unchanged' : 'changed';
    if (this.#json)
      process.stdout.write(`${JSON.stringify({ result, problems: this.problems, ledgers, heads, ...this.counts })}\n`);
    else {
      process.stdout.write(
        `${countOf(ledgers, 'ledger')}, ${countOf(heads, 'exported head')}, ${countOf(segments, 'segment')}, ${countOf(records, 'record')}, ${countOf(runs, 'journal')}, ${countOf(entries, 'entry', 'entries')} verified; ${removed} removed by retention or deletion, ${unsealed} not sealed yet\n`,
      );
      process.stdout.write(this.problems === 0 ? 'Nothing was changed.\n' : `${countOf(this.problems, 'problem')}\n`);
    }
    return this.problems === 0 ? 0 : 1;
  }
}
