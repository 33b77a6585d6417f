import { type AppCredentials, bootstrapIfEmpty, type FirstPlace } from '../apps/bootstrap.ts';
import { readCells } from '../cells/settings.ts';
import { type Config, ConfigError } from '../config/config.ts';
import type { SignInLink } from '../console/sign-in-links.ts';
import { reportConfinement } from '../content/parse/pool/report.ts';
import { findSite } from '../http/openapi/site.ts';
import { AppError } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import { rewrapKeys, unwrapsStoredKeys } from '../tenancy/rotation-store.ts';
import type { ProcessCells } from './cells.ts';
import { credentialsFile, credentialsPath, findCredentialsFile, writeCredentialsFile } from './credentials-file.ts';
import { createServer, type QuarryServer } from './server.ts';
import { createServices, type Services, type ServicesOptions } from './services.ts';

/** A started process: it serves requests, runs background jobs, or both. */
export type Serving = {
  /** Where it listens. */
  url: string;
  /** The base URL for clients. */
  baseUrl: string;
  /** The file with the first credentials, if it is in this data directory. */
  credentials: string | undefined;
  /** Creates a code that signs the owner of a developer token into the console once. */
  createSignInLink(developerToken: string): Promise<SignInLink | undefined>;
  /** Resolves when the embedded database has exited; never with an external one. */
  databaseEnded: Promise<void>;
  /** Finishes requests and jobs, then stops everything. */
  close(): Promise<void>;
};

/** Starts everything that a process with these settings does. On failure, stops what has been started. */
export async function startServing(config: Config, log: Logger, options?: ServicesOptions): Promise<Serving> {
  const settings = readCells(config);
  const cell = settings && (settings.find(({ target }) => target === undefined)?.name ?? 'directory');
  const services = await createServices(config, log, { ...options, cell });
  let server: QuarryServer | undefined;
  let cells: ProcessCells | undefined;
  const close = async (): Promise<void> => {
    await Promise.all([server?.close(), cells?.close(), services.stopWorkers()]);
    await services.close();
  };
  try {
    if (!(await unwrapsStoredKeys(services.db, services.secrets)))
      throw new ConfigError([
        'the root secret is not the one that this database was created with: set QUARRY_SECRET to that one, or restore the file "secret" in the data directory',
      ]);
    // Loaded only with cells, because it costs memory.
    if (settings !== undefined) cells = await (await import('./cells.ts')).prepareCells(services, settings);
    server = await createServer(services, { site: findSite(), front: cells?.front, cells: cells?.home });
    await cells?.start(server);
    const url = options?.listeningUrl ?? (await server.listen());
    if (options?.listeningUrl !== undefined) server.work.ticker.startTicking();
    const credentials = config.role === 'worker' ? undefined : await prepareCredentials(services, cells?.createFirst);
    await cells?.listOwnApps();
    if (config.secretPrevious !== undefined) {
      const rewrapped = await rewrapKeys(services.db, services.secrets);
      log.info({ rewrapped }, 'Wrapped stored keys with the current secret');
    }
    await services.startWorkers(server.work);
    services.setReady();
    reportConfinement(config, log);
    services.parser.warm();
    const { createSignInLink } = server;
    return {
      url,
      baseUrl: services.baseUrl(),
      credentials,
      createSignInLink,
      databaseEnded: services.databaseEnded,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Creates the first credentials of an empty database; otherwise updates the base URL in the file. */
async function prepareCredentials(
  { db, secrets, config, log, baseUrl }: Services,
  place: FirstPlace | undefined,
): Promise<string | undefined> {
  const keep = (credentials: AppCredentials) =>
    writeCredentialsFile(config.dataDir, credentialsFile(baseUrl(), credentials));
  const created = await bootstrapIfEmpty(db, secrets, keep, place).catch((error: unknown) => {
    if (!(error instanceof AppError)) throw error;
    log.error({ err: error }, 'No cell can take the first app. The next start creates it');
    return undefined;
  });
  if (created) return credentialsPath(config.dataDir);
  const existing = findCredentialsFile(config.dataDir);
  if (existing === undefined) return undefined;
  if (existing.base_url !== baseUrl()) writeCredentialsFile(config.dataDir, { ...existing, base_url: baseUrl() });
  return credentialsPath(config.dataDir);
}
