import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { UsageError } from '../errors.ts';

/**
 * Asks before something is destroyed, unless `yes` is given. Throws UsageError without consent, and where no person can
 * be asked.
 */
export async function confirm(question: string, yes: boolean | undefined): Promise<void> {
  if (yes) return;
  if (process.stdin.isTTY !== true) throw new UsageError(`${question} Nothing was changed. Scripts pass --yes.`);
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await new Promise<string>((resolve) => {
    lines.once('close', () => resolve(''));
    lines.question(`${question} [y/N] `, resolve);
  }).finally(() => lines.close());
  if (!/^y(?:es)?$/i.test(answer.trim())) throw new UsageError('Nothing was changed.');
}

/** Reads a secret: typed at a terminal without echo, or the first line of standard input. Throws UsageError if it is empty. */
export async function readSecret(question: string): Promise<string> {
  const atTerminal = process.stdin.isTTY === true;
  if (atTerminal) process.stderr.write(`${question}: `);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: silent, terminal: atTerminal });
  const line = await new Promise<string>((resolve, reject) => {
    lines.once('line', resolve);
    lines.once('SIGINT', () => reject(new UsageError('Nothing was changed.')));
    lines.once('close', () => resolve(''));
  }).finally(() => {
    lines.close();
    if (atTerminal) process.stderr.write('\n');
  });
  if (line.trim() === '') throw new UsageError(`${question} is missing: type it, or pass it on standard input.`);
  return line.trim();
}
