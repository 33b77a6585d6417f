import { redact } from '../lib/log.ts';
import { ApiError, UsageError } from './errors.ts';
import { describeError } from './explain.ts';
import { sanitizeForTerminal } from './terminal.ts';

/** Runs one `quarry` command. Returns the exit code: 0, 1 when it failed, 2 for a usage error. */
export async function runCommand(args: string[]): Promise<number> {
  // When the reader closes the pipe (`quarry openapi | head`), a backup or server keeps running without output.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.stderr.write(`Cannot write to standard output (${error.code}).\n`);
  });
  try {
    // A server does without the definitions of all commands, which take memory for as long as it runs.
    if (args.length === 1 && args[0] === 'serve') return await (await import('./operate/serve.ts')).run();
    return await (await import('./program.ts')).runProgram(args);
  } catch (error) {
    const known = error instanceof UsageError || error instanceof ApiError;
    process.stderr.write(`${known ? sanitizeForTerminal(redact(error.message)) : describeError(error)}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}
