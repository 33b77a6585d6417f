import { bootstrapIfEmpty, rewrapKeys, unwrapsStoredKeys } from '../apps/bootstrap.ts';
import { ConfigError, readConfig, unknownSettings } from '../config.ts';
import { credentialsFile, credentialsPath, findCredentialsFile, writeCredentialsFile } from '../credentials-file.ts';
import { killEmbeddedPostgres } from '../db/embedded.ts';
import { createLogger } from '../log.ts';
import { createServer, type QuarryServer } from '../server.ts';
import { createServices, type Services } from '../services.ts';
import { greeting, maySignInByLink } from './greeting.ts';

/** Serves until a signal arrives or the embedded database exits. */
export async function run({ only }: { only?: string | boolean | undefined } = {}): Promise<number> {
  const config = readConfig(undefined, typeof only === 'string' ? { QUARRY_ROLE: only } : {});
  const log = createLogger(config.logLevel);
  for (const name of unknownSettings())
    log.warn({ name }, 'This variable looks like a setting, but no such setting exists');
  // Registered before anything starts, so that a stop during startup leaves nothing running.
  const stop = listenForStop(() => forceExit(config.dataDir));

  const services = await createServices(config, log);
  let server: QuarryServer | undefined;
  try {
    if (!(await unwrapsStoredKeys(services.db, services.secrets)))
      throw new ConfigError([
        'the root secret is not the one that this database was created with: set QUARRY_SECRET to that one, or restore the file "secret" in the data directory',
      ]);
    server = await createServer(services);
    const url = await server.listen();
    const isWorker = config.role === 'worker';
    const credentials = isWorker ? undefined : await prepareCredentials(services);
    if (config.secretPrevious !== undefined) {
      const rewrapped = await rewrapKeys(services.db, services.secrets);
      log.info({ rewrapped }, 'Wrapped stored keys with the current secret');
    }
    await services.startWorkers(server.work);
    services.setReady();
    services.parser.warm();
    const signInCode = isWorker ? undefined : createSignInCode(services, server);
    const shown = { url, baseUrl: services.baseUrl(), credentials, signInCode };
    process.stdout.write(isWorker ? workerGreeting(url) : greeting(shown));
    const reason = await Promise.race([stop.asked, services.databaseEnded.then(() => 'database' as const)]);
    log.info({ reason }, 'Stopping');
    return reason === 'database' ? 1 : 0;
  } finally {
    // After the limit, the process exits in any case: its supervisor would kill it anyway.
    setTimeout(() => forceExit(config.dataDir), stopTimeoutMs).unref();
    await Promise.all([server?.close(), services.stopWorkers()]);
    await services.close();
    log.info('Stopped');
  }
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

/** Creates the first credentials of an empty database; otherwise updates the base URL in the file. */
async function prepareCredentials({ db, secrets, config, baseUrl }: Services): Promise<string | undefined> {
  const created = await bootstrapIfEmpty(db, secrets, (credentials) =>
    writeCredentialsFile(config.dataDir, credentialsFile(baseUrl(), credentials)),
  );
  if (created) return credentialsPath(config.dataDir);
  const existing = findCredentialsFile(config.dataDir);
  if (existing === undefined) return undefined;
  if (existing.base_url !== baseUrl()) writeCredentialsFile(config.dataDir, { ...existing, base_url: baseUrl() });
  return credentialsPath(config.dataDir);
}

/** For the link that signs in once; it is printed and nowhere else. */
function createSignInCode({ config, baseUrl }: Services, server: QuarryServer): string | undefined {
  const isTerminal = process.stdout.isTTY === true;
  if (!maySignInByLink({ isTerminal, host: config.host, baseUrl: baseUrl() })) return undefined;
  const token = findCredentialsFile(config.dataDir)?.developer_token;
  return token === undefined ? undefined : server.createSignInCode(token);
}

function workerGreeting(url: string): string {
  return `Quarry runs background jobs\nHealth and metrics ${url}/readyz ${url}/metrics\n`;
}
