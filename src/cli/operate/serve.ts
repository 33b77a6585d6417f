import cluster from 'node:cluster';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { findCredentialsFile } from '../../boot/credentials-file.ts';
import { type Config, readConfig } from '../../config/config.ts';
import { signInUrl } from '../../console/sign-in-links.ts';
import { killEmbeddedPostgres, startEmbeddedPostgres } from '../../db/embedded.ts';
import { createLogger, type Logger } from '../../lib/log.ts';
import { describePlan, isSupervised, type Plan, planProcesses } from '../../supervisor/plan.ts';
import { traceIds } from '../../tracing/trace.ts';
import type { Serving } from '../develop/dev-server.ts';
import { formatGreeting, maySignInByLink } from './greeting.ts';
import { warnOfUnknownSettings } from './unknown-settings.ts';

type Running = {
  started: { url: string; baseUrl: string; credentials: string | undefined; signInCode: string | undefined };
  databaseEnded: Promise<void>;
  close(): Promise<void>;
};

/** Serves until a signal arrives or the embedded database exits. */
export async function run({ only }: { only?: string | boolean | undefined } = {}): Promise<number> {
  if (cluster.isWorker) return runSupervised();
  const config = readConfig(undefined, typeof only === 'string' ? { QUARRY_ROLE: only } : {});
  const log = createLogger(config.logLevel, config.otlpEndpoint === undefined ? undefined : traceIds);
  for (const { name, warning } of warnOfUnknownSettings()) log.warn({ name }, warning);
  // Registered before anything starts, so that a stop during startup leaves nothing running.
  const stop = listenForStop(() => forceExit(config.dataDir));

  const plan = planProcesses(config);
  const running = isSupervised(plan) ? await startSupervisor(config, log, plan) : await startAlone(config, log);
  collectGarbage();
  let timeoutMs = stopTimeoutMs;
  try {
    const { url, baseUrl } = running.started;
    // To `quarry dev`, which started it.
    process.send?.({ type: 'serving', baseUrl } satisfies Serving);
    process.stdout.write(
      config.role === 'worker'
        ? workerGreeting(url)
        : formatGreeting({ ...running.started, signInUrl: linkOf(running.started) }),
    );
    const reason = await Promise.race([stop.requested, running.databaseEnded.then(() => 'database' as const)]);
    log.info({ reason }, 'Stopping');
    if (reason !== 'database') return 0;
    timeoutMs = stopTimeoutWithoutDatabaseMs;
    return 1;
  } finally {
    // After the limit, the process exits in any case: its supervisor would kill it anyway.
    setTimeout(() => forceExit(config.dataDir), timeoutMs).unref();
    await running.close();
    log.info('Stopped');
    exitSoon();
  }
}

function linkOf({ baseUrl, signInCode }: Running['started']): string | undefined {
  return signInCode === undefined ? undefined : signInUrl(baseUrl, signInCode);
}

async function startAlone(config: Config, log: Logger): Promise<Running> {
  // PostgreSQL starts while the code of the server loads.
  const embedded =
    config.databaseUrl === undefined ? startEmbeddedPostgres({ dataDir: config.dataDir, log }) : undefined;
  // Its failure is thrown by startServing, which awaits it later.
  embedded?.catch(() => {});
  const { startServing } = await import('../../boot/serving.ts');
  const serving = await startServing(config, log, { embedded });
  const { url, baseUrl, credentials, databaseEnded, close } = serving;
  const token = mayShowSignIn(config, baseUrl) ? findCredentialsFile(config.dataDir)?.developer_token : undefined;
  const signInCode = token === undefined ? undefined : (await serving.createSignInLink(token))?.code;
  return { started: { url, baseUrl, credentials, signInCode }, databaseEnded, close };
}

async function startSupervisor(config: Config, log: Logger, plan: Plan): Promise<Running> {
  const { supervise } = await import('../../supervisor/supervise.ts');
  const { started, databaseEnded, close } = await supervise(config, log, plan);
  log.info({ processes: describePlan(plan) }, 'All processes started');
  const signInCode = mayShowSignIn(config, started.baseUrl) ? started.signInCode : undefined;
  return { started: { ...started, signInCode }, databaseEnded, close };
}

/** Runs a process of a supervisor, which owns the database and assigns the work. */
async function runSupervised(): Promise<number> {
  const stop = listenForStop(() => process.exit(1));
  const { runChild } = await import('../../supervisor/child.ts');
  await runChild(stop.requested, collectGarbage);
  exitSoon();
  return 0;
}

/** Connections to a cell that does not respond would keep a process that has stopped. */
function exitSoon(): void {
  setTimeout(() => process.exit(), leftoverMs).unref();
}

/**
 * Returns the memory that only startup needed to the system; an idle V8 would keep it. A normal major collection leaves
 * the young generation at the 16 MB to which startup grew it; the flavor `last-resort` shrinks it, in about 0.1 s.
 */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (how: Collection) => void;
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  setFlagsFromString('--no-expose-gc');
}

type Collection = { type: 'major'; execution: 'sync'; flavor: 'last-resort' };

const stopTimeoutMs = 9_500;
/** Nothing in progress can be finished. The sooner the process ends, the sooner the next one serves. */
const stopTimeoutWithoutDatabaseMs = 1_000;
const leftoverMs = 500;
const sameSignalMs = 500;

function listenForStop(force: () => void): { requested: Promise<NodeJS.Signals> } {
  const requested = new Promise<NodeJS.Signals>((resolve) => {
    let firstAt: number | undefined;
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
      process.on(signal, () => {
        firstAt ??= performance.now();
        // npm forwards the Ctrl-C that the terminal also sends. Only a later signal stops the server immediately.
        if (performance.now() - firstAt > sameSignalMs) force();
        resolve(signal);
      });
    // A supervisor tells its processes over the channel what to do, so they stay while it is open.
    if (!process.connected || cluster.isWorker) return;
    // `quarry dev` started this process. If it is killed, nobody reads the log, and the server stops in order.
    process.stderr.on('error', () => {});
    process.once('disconnect', () => resolve('SIGHUP'));
    process.channel?.unref();
  });
  return { requested };
}

/** Exits immediately. The embedded database recovers at the next start. */
function forceExit(dataDir: string): void {
  killEmbeddedPostgres(dataDir);
  process.exit(1);
}

/** Whether to print the link that signs in. It is never logged. */
function mayShowSignIn({ host, role }: Config, baseUrl: string): boolean {
  return role !== 'worker' && maySignInByLink({ isTerminal: process.stdout.isTTY === true, host, baseUrl });
}

function workerGreeting(url: string): string {
  return `Quarry runs background jobs\nHealth and metrics ${url}/readyz ${url}/metrics\n`;
}
