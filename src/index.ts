import { startServing } from './boot/serving.ts';
import { readConfig } from './config/config.ts';
import { createLogger } from './lib/log.ts';

/** A server that runs in this process. */
export type RunningServer = {
  /** The URL that the server listens on. */
  url: string;
  /** The base URL for clients, which differs behind a proxy. */
  baseUrl: string;
  /** Finishes requests and jobs, then stops everything, the embedded database included. */
  close(): Promise<void>;
};

/**
 * Starts a Quarry server in this process. `quarry serve` starts one in a separate process.
 * @param settings values by environment variable, such as `{ PORT: '0', QUARRY_DATA_DIR: '/srv/quarry' }`; they
 * override the environment
 */
export async function startServer(settings: Record<string, string> = {}): Promise<RunningServer> {
  const config = readConfig(undefined, settings);
  const { url, baseUrl, close } = await startServing(config, createLogger(config.logLevel));
  return { url, baseUrl, close };
}
