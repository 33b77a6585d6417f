import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { defined } from '../../src/lib/defined.ts';
import { secondCellOf, testsCells } from './cells-of-process.ts';
import { installCluster } from './cluster.ts';
import { basicEnvironment } from './command.ts';
import { endWithThisProcess, stopPostgresWithThisProcess } from './left-behind.ts';

export type ServedProcess = {
  baseUrl: string;
  pid: number;
  /** Everything it has printed so far on both streams. */
  output(): string;
  /** Kills it, as a crash would, and waits until it has ended. */
  kill(): Promise<void>;
  /** Asks it to drain, and returns its exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  /** Its exit code, when it has ended. */
  ended: Promise<number | null>;
};

/**
 * Starts `quarry serve` in a separate process and waits until `/readyz` returns 200. An embedded database already has
 * its tables at the first start.
 * @param env settings in addition to the basic environment; with `NODE_COMPILE_CACHE`, it starts exactly as users
 * start it
 * @param args what follows `serve`
 * @param options.warmParser starts a parser at startup, as users' servers do, and not with the first document
 */
export async function startServe(
  env: Record<string, string>,
  args: string[] = [],
  { warmParser = false } = {},
): Promise<ServedProcess> {
  if (env.DATABASE_URL === undefined && env.QUARRY_DATA_DIR !== undefined) installCluster(env.QUARRY_DATA_DIR);
  const preloaded = env.NODE_COMPILE_CACHE === undefined ? ['--import', warmParser ? cachedParsers : quickStart] : [];
  const child = spawn(process.execPath, ['--max-semi-space-size=8', ...preloaded, mainFile, 'serve', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...basicEnvironment(),
      // Such as those of a profiler.
      ...defined({ NODE_OPTIONS: process.env.NODE_OPTIONS }),
      HOST: '127.0.0.1',
      PORT: '0',
      QUARRY_WORKER_PORT: '0',
      QUARRY_PARSE_WORKERS: '1',
      // On a machine of many cores, it would be one for each of them and a supervisor.
      QUARRY_PROCESSES: '1',
      QUARRY_PARSE_NETWORK: 'shared',
      // Beside other tests, a connection may take longer than the usual ten seconds, and a start gives up then.
      QUARRY_DB_TIMEOUT_SECONDS: '60',
      // A server that starts its own database has no cells.
      ...(testsCells && env.DATABASE_URL !== undefined ? await secondCellOf(env.DATABASE_URL) : {}),
      ...env,
    },
  });
  running.add(child);
  endWithThisProcess(child);
  if (env.DATABASE_URL === undefined && env.QUARRY_DATA_DIR !== undefined)
    stopPostgresWithThisProcess(env.QUARRY_DATA_DIR);
  let output = '';
  const exited = new Promise<number | null>((resolve) =>
    child.once('exit', (code) => {
      running.delete(child);
      resolve(code);
    }),
  );
  const listening = new Promise<string>((resolve) => {
    const read = (chunk: Buffer) => {
      output += chunk;
      const url = /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0];
      if (url) resolve(url);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
  });
  const deadline = new Promise<undefined>((resolve) => {
    setTimeout(() => resolve(undefined), startTimeoutMs).unref();
  });
  const outcome = await Promise.race([listening, exited.then((code) => ({ code })), deadline]);
  if (typeof outcome !== 'string' || child.pid === undefined) {
    child.kill('SIGKILL');
    throw new Error(`The server ${outcome === undefined ? 'did not start in time' : 'ended'}:\n${output}`);
  }
  await waitUntilReady(outcome, () => output);
  const end = (signal: NodeJS.Signals) => {
    child.kill(signal);
    return exited;
  };
  return {
    baseUrl: outcome,
    pid: child.pid,
    output: () => output,
    kill: async () => void (await end('SIGKILL')),
    stop: (signal = 'SIGTERM') => end(signal),
    ended: exited,
  };
}

const cachedParsers = new URL('cached-parsers.ts', import.meta.url).href;
const quickStart = new URL('quick-start.ts', import.meta.url).href;
const mainFile = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const startTimeoutMs = 300_000;
const readyPollMs = 20;

/** A test that fails must not leave its servers behind. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

async function waitUntilReady(baseUrl: string, output: () => string): Promise<void> {
  const deadline = Date.now() + startTimeoutMs;
  while (Date.now() < deadline) {
    const response = await fetch(`${baseUrl}/readyz`).catch(() => undefined);
    await response?.arrayBuffer();
    if (response?.status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, readyPollMs));
  }
  throw new Error(`The server never became ready:\n${output()}`);
}
