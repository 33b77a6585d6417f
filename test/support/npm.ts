import { execFile } from 'node:child_process';
import { delimiter, dirname } from 'node:path';
import { promisify } from 'node:util';

/** A test that installs packages may take this long: a busy machine or a slow registry is not a failure. */
export const installTimeoutMs = 15 * 60_000;

/**
 * Runs npm with the environment of this process, because that says how the machine reaches its registry. Packages of an
 * earlier installation come from npm's cache. No script of a package runs, so nothing is compiled or downloaded by one.
 */
export async function npm(directory: string, ...args: string[]): Promise<void> {
  const patience = ['--fetch-timeout=30000', '--fetch-retries=5', '--prefer-offline', '--no-audit'];
  await promisify(execFile)('npm', [...args, ...patience], {
    cwd: directory,
    env: { ...process.env, PATH: [dirname(process.execPath), process.env.PATH].join(delimiter) },
    timeout: installTimeoutMs,
  });
}
