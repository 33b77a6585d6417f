import { type Client, type ConnectionOptions, connect } from './client.ts';
import { Progress } from './progress.ts';

export type ClientOptions = ConnectionOptions & { json?: boolean };

/** What a command that calls a server works with. */
export type Session = {
  client: Client;
  json: boolean;
  progress: Progress;
  /** Ends with Ctrl-C. */
  signal: AbortSignal;
  /** Said on standard error when Ctrl-C ends the command. */
  onInterrupt(words: string): void;
  /** Writes to standard output, and waits while its reader is behind. */
  print(text: string | Uint8Array): Promise<void>;
  /** One line for people on standard error. */
  say(text: string): void;
};

const interrupted = 130;

/**
 * Runs a command against a server and answers its exit code. Ctrl-C ends what waits and answers 130; a reader that
 * went away (`quarry … | head`) ends the program without a word.
 */
export async function withSession(
  options: ClientOptions,
  work: (session: Session) => Promise<number>,
): Promise<number> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  const stop = new AbortController();
  const interrupt = () => {
    stop.abort();
    // Whatever waits for input, waits no more.
    process.stdin.destroy();
  };
  // Once: a second Ctrl-C ends the program at once.
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
        if (!process.stdout.write(text)) await new Promise<void>((resolve) => process.stdout.once('drain', resolve));
      },
      say(text) {
        progress.clear();
        process.stderr.write(`${text}\n`);
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

/** One JSON value on one line, so that many are read line by line. */
export function jsonLine(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}
