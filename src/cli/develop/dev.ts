import { existsSync } from 'node:fs';
import { styleText } from 'node:util';
import { credentialsPath, findCredentialsFile } from '../../boot/credentials-file.ts';
import { readConfig } from '../../config/config.ts';
import { EnvFile } from '../../config/env-file.ts';
import { DirectoryLockedError } from '../../db/directory-lock.ts';
import { stopEmbeddedPostgres } from '../../db/embedded.ts';
import { systemClock } from '../../lib/clock.ts';
import { createLogger } from '../../lib/log.ts';
import { connect } from '../client/client.ts';
import { Progress } from '../client/progress.ts';
import type { Session } from '../client/session.ts';
import { describeError } from '../explain.ts';
import { formatGreeting, maySignInByLink } from '../operate/greeting.ts';
import { sanitizeForTerminal } from '../terminal.ts';
import { followActivity } from './activity.ts';
import { execute, printPlan, readPlan } from './apply.ts';
import { DevServer } from './dev-server.ts';
import { describeProblem, type Problem } from './directory.ts';
import { formatLogLine, formatTime } from './readable-log.ts';
import { watchPaths } from './watch.ts';

export type DevOptions = { prune?: boolean };

/** What the ids of this command's own requests begin with: their lines in the log are not shown. */
const ownIds = 'dev-';
const envFile = '.env';

/**
 * `quarry dev [directory]`: runs a server, applies a directory to its app at each change, and shows logs, runs and
 * mistakes. Returns the exit code.
 */
export async function dev(directory: string, options: DevOptions): Promise<number> {
  const env = new EnvFile(envFile);
  env.load(readConfig);
  const { signal, onForce } = listenForStop();
  const output = createOutput();
  const app = new AppInFiles(directory, options, output, signal);
  let greeted = '';
  const server = new DevServer({
    signal,
    onLog: (line) => output.log(line),
    onReady: (baseUrl) => {
      void app.serve(baseUrl);
      if (baseUrl !== greeted) void greet(baseUrl, output, signal);
      else output.say('info', 'The server runs again');
      greeted = baseUrl;
    },
    onCrash: (how) => output.say('error', `The server ended (${how}). Starting it again`),
  });
  onForce(() => server.kill());
  const watching = (async () => {
    for await (const changed of watchPaths([app.directory, envFile], signal)) {
      if (!changed.includes(envFile)) {
        await app.apply();
        continue;
      }
      try {
        env.load(readConfig);
      } catch (error) {
        output.say('error', `${envFile} is not used until it is corrected. ${describeError(error)}`);
        continue;
      }
      output.say('info', `${envFile} changed: restarting the server`);
      server.restart();
    }
  })();
  try {
    return await server.run();
  } finally {
    signal.stop();
    await watching;
    await stopDatabase();
  }
}

/** The signal of Ctrl-C, which can also be given by the program. A second Ctrl-C calls what `onForce` was given. */
function listenForStop() {
  const stop = new AbortController();
  let force = () => {};
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(name, () => {
      if (stop.signal.aborted) force();
      stop.abort();
    });
  const onForce = (work: () => void) => {
    force = work;
  };
  const signal = Object.assign(stop.signal, { stop: () => stop.abort() });
  return { signal, onForce };
}

/** Ends the PostgreSQL that a crashed server left. */
async function stopDatabase(): Promise<void> {
  const { dataDir, databaseUrl } = readConfig();
  if (databaseUrl !== undefined || !existsSync(dataDir)) return;
  try {
    await stopEmbeddedPostgres(dataDir, createLogger('error'));
  } catch (error) {
    // Another server runs on this directory.
    if (!(error instanceof DirectoryLockedError)) throw error;
  }
}

type Level = 'info' | 'error';
type Output = {
  isTerminal: boolean;
  /** A line of the server's log. */
  log(line: string): void;
  /** A message of this command: a line for people, or JSON. */
  say(level: Level, text: string, members?: object): void;
  /** Text as it is. */
  write(text: string): void;
};

/** Readable lines on a terminal, JSON lines elsewhere. */
function createOutput(): Output {
  const isTerminal = process.stdout.isTTY === true;
  const write = (text: string) => void process.stdout.write(isTerminal ? sanitizeForTerminal(text) : text);
  return {
    isTerminal,
    write,
    log(line) {
      const shown = isTerminal ? formatLogLine(line, { ownIds, isColoured: process.stdout.hasColors() }) : line;
      if (shown !== undefined) write(`${shown}\n`);
    },
    say(level, text, members) {
      const time = systemClock.now().toISOString();
      if (!isTerminal) return write(`${JSON.stringify({ level, time, msg: text, ...members })}\n`);
      const style = level === 'error' ? 'red' : 'bold';
      write(`${styleText('dim', formatTime(time))}  ${styleText(style, text)}\n`);
    },
  };
}

/** Prints the addresses, with a link that signs in to the console if that is a terminal: it is never logged. */
async function greet(baseUrl: string, output: Output, signal: AbortSignal): Promise<void> {
  const { dataDir, host } = readConfig();
  if (!output.isTerminal) return output.say('info', `Quarry listens on ${baseUrl}`, { base_url: baseUrl });
  const own = findCredentialsFile(dataDir);
  const mayLink = own !== undefined && maySignInByLink({ isTerminal: true, host, baseUrl });
  const link = mayLink ? await createSignInLink(baseUrl, own.developer_token, signal) : undefined;
  const credentials = own && credentialsPath(dataDir);
  output.write(`\n${formatGreeting({ url: baseUrl, baseUrl, credentials, signInUrl: link })}\n`);
}

async function createSignInLink(url: string, token: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const client = connect({ url, token, requestIds: ownIds }, signal);
    return (await client.send<{ url: string }>('POST', '/protected/api/v1/developer/sign_in_links')).url;
  } catch {
    // The token of the file was revoked: `quarry credentials` creates another.
    return undefined;
  }
}

/** Keeps the app of a server as the files of a directory say. */
class AppInFiles {
  readonly directory: string;
  readonly #options: DevOptions;
  readonly #output: Output;
  readonly #signal: AbortSignal;
  #session: Session | undefined;
  #baseUrl: string | undefined;
  #last: Promise<void> = Promise.resolve();

  constructor(directory: string, options: DevOptions, output: Output, signal: AbortSignal) {
    this.directory = directory;
    this.#options = options;
    this.#output = output;
    this.#signal = signal;
  }

  /** Applies the files to a server that has started, and shows what happens in it. */
  async serve(baseUrl: string): Promise<void> {
    try {
      this.#session = this.#connect(baseUrl);
    } catch (error) {
      return this.#output.say('error', describeError(error));
    }
    if (!existsSync(this.directory))
      this.#output.say('info', `There is no ${this.directory}: nothing is applied. \`quarry init\` writes one`);
    if (this.#baseUrl !== baseUrl) void this.#follow(this.#session);
    this.#baseUrl = baseUrl;
    await this.apply();
  }

  /** Applies the directory, after an application that is in progress. */
  apply(): Promise<void> {
    this.#last = this.#last.then(() => this.#apply()).catch((error: unknown) => this.#fail(error));
    return this.#last;
  }

  async #apply(): Promise<void> {
    const session = this.#session;
    if (session === undefined || !existsSync(this.directory)) return;
    const plan = await readPlan(session, this.directory, this.#options);
    if (plan.problems.length > 0) return this.#report(plan.problems);
    await printPlan(session, plan);
    this.#report(await execute(session, plan));
  }

  #report(problems: readonly Problem[]): void {
    for (const problem of problems) this.#output.say('error', describeProblem(problem), problem);
  }

  async #follow({ client }: Session): Promise<void> {
    try {
      for await (const { isFailure, text, event, data } of followActivity(client, this.#signal))
        this.#output.say(isFailure ? 'error' : 'info', text, { event, data });
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (!this.#signal.aborted) this.#output.say('error', error instanceof Error ? error.message : String(error));
  }

  /** The key of the server's own data directory; otherwise that of the environment. */
  #connect(url: string): Session {
    const { dataDir, apiKey } = readConfig();
    const key = findCredentialsFile(dataDir)?.secret_key ?? apiKey;
    const client = connect({ url, requestIds: ownIds, ...(key === undefined ? {} : { key }) }, this.#signal);
    const { isTerminal, say, write } = this.#output;
    return {
      client,
      json: !isTerminal,
      progress: new Progress(process.stderr),
      signal: this.#signal,
      onInterrupt: () => {},
      print: async (text) => write(String(text)),
      say: (text) => say('info', text),
    };
  }
}
