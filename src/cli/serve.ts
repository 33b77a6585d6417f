import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type Config, readConfig, unknownSettings } from '../config.ts';
import { findCredentialsFile } from '../credentials-file.ts';
import { killEmbeddedPostgres } from '../db/embedded.ts';
import { createLogger } from '../log.ts';
import { type Serving, startServing } from '../serving.ts';
import { traceIds } from '../tracing/trace.ts';
import { greeting, maySignInByLink } from './greeting.ts';

/** Serves until a signal arrives or the embedded database exits. */
export async function run({ only }: { only?: string | boolean | undefined } = {}): Promise<number> {
  const config = readConfig(undefined, typeof only === 'string' ? { QUARRY_ROLE: only } : {});
  const log = createLogger(config.logLevel, config.otlpEndpoint === undefined ? undefined : traceIds);
  for (const name of unknownSettings())
    log.warn({ name }, 'This variable looks like a setting, but no such setting exists');
  // Registered before anything starts, so that a stop during startup leaves nothing running.
  const stop = listenForStop(() => forceExit(config.dataDir));

  const running = await startServing(config, log);
  try {
    const isWorker = config.role === 'worker';
    const signInCode = isWorker ? undefined : createSignInCode(config, running);
    collectGarbage();
    process.stdout.write(isWorker ? workerGreeting(running.url) : greeting({ ...running, signInCode }));
    const reason = await Promise.race([stop.asked, running.databaseEnded.then(() => 'database' as const)]);
    log.info({ reason }, 'Stopping');
    return reason === 'database' ? 1 : 0;
  } finally {
    // After the limit, the process exits in any case: its supervisor would kill it anyway.
    setTimeout(() => forceExit(config.dataDir), stopTimeoutMs).unref();
    await running.close();
    log.info('Stopped');
  }
}

/** Returns to the system what only the start needed, 20 MB: V8 itself would keep it until it is busy. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  setFlagsFromString('--no-expose-gc');
}

const stopTimeoutMs = 9_500;
const sameSignalMs = 500;

function listenForStop(force: () => void): { asked: Promise<NodeJS.Signals> } {
  const asked = new Promise<NodeJS.Signals>((resolve) => {
    let firstAt: number | undefined;
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
      process.on(signal, () => {
        firstAt ??= performance.now();
        // Ctrl-C arrives from the terminal and again from npm: only a later one means "immediately".
        if (performance.now() - firstAt > sameSignalMs) force();
        resolve(signal);
      });
  });
  return { asked };
}

/** Exits immediately. The embedded database recovers at the next start. */
function forceExit(dataDir: string): void {
  killEmbeddedPostgres(dataDir);
  process.exit(1);
}

/** For the link that signs in once; it is printed and nowhere else. */
function createSignInCode({ host, dataDir }: Config, { baseUrl, createSignInCode: create }: Serving) {
  if (!maySignInByLink({ isTerminal: process.stdout.isTTY === true, host, baseUrl })) return undefined;
  const token = findCredentialsFile(dataDir)?.developer_token;
  return token === undefined ? undefined : create(token);
}

function workerGreeting(url: string): string {
  return `Quarry runs background jobs\nHealth and metrics ${url}/readyz ${url}/metrics\n`;
}
