import { sanitizeForTerminal } from '../terminal.ts';
import { type Client, type ConnectionOptions, connect } from './client.ts';
import { Progress } from './progress.ts';

export type ClientOptions = ConnectionOptions & { json?: boolean };

/** The context of a command that calls a server. */
export type Session = {
  client: Client;
  json: boolean;
  progress: Progress;
  /** Aborted by Ctrl-C. */
  signal: AbortSignal;
  /** Sets the message printed on standard error when Ctrl-C ends the command. */
  onInterrupt(words: string): void;
  /** Writes to standard output, with backpressure. */
  print(text: string | Uint8Array): Promise<void>;
  /** One line for people on standard error. */
  say(text: string): void;
};

const interrupted = 130;

/**
 * Runs a command against a server and returns its exit code. Ctrl-C aborts it and returns 130; a closed pipe
 * (`quarry … | head`) ends the program silently.
 */
export async function withSession(
  options: ClientOptions,
  work: (session: Session) => Promise<number>,
): Promise<number> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  const stop = new AbortController();
  const interrupt = () => {
    stop.abort();
    // Stop waiting for input.
    process.stdin.destroy();
  };
  // Once: a second Ctrl-C ends the program immediately.
  process.once('SIGINT', interrupt);
  process.once('SIGTERM', interrupt);
  const progress = new Progress(process.stderr);
  let farewell = '';
  try {
    return await work({
      client: connect(options, stop.signal),
      json: options.json === true,
      progress,
      signal: stop.signal,
      onInterrupt: (words) => {
        farewell = words;
      },
      async print(text) {
        progress.clear();
        const shown = typeof text === 'string' && process.stdout.isTTY ? sanitizeForTerminal(text) : text;
        if (!process.stdout.write(shown)) await new Promise<void>((resolve) => process.stdout.once('drain', resolve));
      },
      say(text) {
        progress.clear();
        process.stderr.write(`${sanitizeForTerminal(text)}\n`);
      },
    });
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    progress.clear();
    if (farewell !== '') process.stderr.write(`${farewell}\n`);
    return interrupted;
  } finally {
    progress.clear();
    process.removeListener('SIGINT', interrupt);
    process.removeListener('SIGTERM', interrupt);
  }
}

/** One JSON value per line, so that output can be read line by line. */
export function jsonLine(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}
