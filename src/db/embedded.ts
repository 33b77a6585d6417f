import { execFile } from 'node:child_process';
import { hash, randomUUID } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { createDirectories } from '../lib/directories.ts';
import type { Logger } from '../lib/log.ts';
import { syncDirectoryBlocking } from '../lib/sync-directory.ts';
import { type DatabaseAddress, socketPath } from './address.ts';
import { type DirectoryLock, lockDirectory } from './directory-lock.ts';
import { type Account, canReach, getPostgresAccount, ownAccount, requireNamedUser } from './postgres-account.ts';
import { copyBinaries, findBinaries, type PostgresBinaries } from './postgres-binaries.ts';
import { EmbeddedPostgresError } from './postgres-error.ts';
import { explainSpawnFailure, findPostmaster, postgresEnvironment, startPostmaster, stopOrphan } from './postmaster.ts';

export type EmbeddedPostgres = {
  address: DatabaseAddress;
  /** Resolves when PostgreSQL has ended, whether requested or not. */
  ended: Promise<void>;
  /** Shuts PostgreSQL down within seconds, then unlocks the data directory. Safe to call again. */
  stop(): Promise<void>;
};

type EmbeddedOptions = {
  dataDir: string;
  log: Logger;
  /** Additional server settings, such as `fsync: 'off'` for tests. */
  settings?: Record<string, string>;
};

/**
 * Locks the data directory for this process and starts the PostgreSQL in it. The first start creates the database.
 * @param options.dataDir absolute path; created when absent. PostgreSQL's files are below `postgres/` in it, or,
 *   when this process is root and the user `postgres` cannot reach it, below /var/lib/quarry (noted in the
 *   directory). @throws DirectoryLockedError when another server uses the directory. @throws EmbeddedPostgresError
 *   when PostgreSQL cannot run here; the message says how to fix it.
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const binaries = findBinaries();
  const dataDir = createDataDir(options.dataDir);
  const lock = lockDirectory(dataDir);
  try {
    return await startLocked(dataDir, binaries, lock, options);
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * The address of the PostgreSQL of the server that runs on this data directory, for commands that run beside the
 * server.
 */
export function findEmbeddedPostgres(dataDir: string): DatabaseAddress | undefined {
  if (!existsSync(dataDir)) return undefined;
  const real = realpathSync(dataDir);
  const postmaster = findPostmaster(findCluster(real));
  return postmaster && addressAt(postmaster.socketDirectory, postmaster.port);
}

/**
 * Stops the PostgreSQL that a killed server left running on this data directory. Returns whether there was one.
 * @throws DirectoryLockedError if a server runs.
 */
export async function stopEmbeddedPostgres(dataDir: string, log: Logger): Promise<boolean> {
  if (!existsSync(dataDir)) return false;
  const real = realpathSync(dataDir);
  const lock = lockDirectory(real);
  try {
    const cluster = findCluster(real);
    const wasRunning = findPostmaster(cluster) !== undefined;
    await stopOrphan(cluster, log);
    return wasRunning;
  } finally {
    lock.release();
  }
}

/** Stops PostgreSQL for a server that cannot wait for it. Nothing committed is lost. */
export function killEmbeddedPostgres(dataDir: string): void {
  const postmaster = existsSync(dataDir) ? findPostmaster(findCluster(realpathSync(dataDir))) : undefined;
  if (postmaster) process.kill(postmaster.pid, 'SIGQUIT');
}

/** PostgreSQL's own data directory, for our data directory with every symbolic link resolved. */
export function findCluster(dataDir: string): string {
  return join(readPlace(dataDir) ?? defaultPlace(dataDir), 'cluster');
}

const port = 5432;
const username = 'quarry';
const sharedRoot = '/var/lib/quarry';
const placeFile = 'postgres.place';
/** The kernel's limit for the path of a socket, without the closing NUL: 107 bytes on Linux, 103 on macOS. */
const socketPathBytesMax = process.platform === 'linux' ? 107 : 103;
const initTimeoutMs = 120_000;

async function startLocked(
  dataDir: string,
  installed: PostgresBinaries,
  lock: DirectoryLock,
  { log, settings = {} }: EmbeddedOptions,
): Promise<EmbeddedPostgres> {
  const { place, account } = choosePlace(dataDir);
  const cluster = join(place, 'cluster');
  const reachable = account === undefined || canReach(account, join(installed.directory, 'bin'));
  const binaries = reachable ? installed : copyBinaries(installed, sharedRoot);

  if (existsSync(join(cluster, 'PG_VERSION'))) checkCluster(cluster, binaries, account);
  else await createCluster(place, binaries, account, log);
  if (place !== defaultPlace(dataDir)) writeFileSync(join(dataDir, placeFile), `${place}\n`, { mode: 0o600 });

  await stopOrphan(cluster, log);
  const socketDirectory = createSocketDirectory(place, account);
  const logFile = join(dataDir, 'postgres.log');
  const postmaster = await startPostmaster({
    binaries,
    cluster,
    socketDirectory,
    port,
    logFile,
    account,
    log,
    settings,
  });
  let stopped: Promise<void> | undefined;
  return {
    address: addressAt(socketDirectory, port),
    ended: postmaster.ended,
    stop() {
      stopped ??= postmaster.stop().finally(() => lock.release());
      return stopped;
    },
  };
}

function addressAt(socketDirectory: string, socketPort: number): DatabaseAddress {
  return { host: socketDirectory, port: socketPort, database: 'postgres', username };
}

function createDataDir(path: string): string {
  try {
    createDirectories(path, 0o700);
    return realpathSync(path);
  } catch (error) {
    throw new EmbeddedPostgresError(
      `The data directory ${path} could not be created: ${String(error)}. ` +
        'Set QUARRY_DATA_DIR to a directory that this user may create and write.',
      error,
    );
  }
}

/** Returns the directory that holds the cluster, and the user that owns it if this process is root. */
function choosePlace(dataDir: string): { place: string; account: Account | undefined } {
  const noted = readPlace(dataDir);
  if (noted !== undefined && !existsSync(join(noted, 'cluster', 'PG_VERSION')))
    throw new EmbeddedPostgresError(
      `The database of ${dataDir} was created in ${noted}, but is no longer there. ` +
        `Restore it, or, to lose it and start with an empty database, remove ${join(dataDir, placeFile)}.`,
    );
  const own = ownAccount();
  if (own) return { place: createParent(noted ?? defaultPlace(dataDir), undefined), account: undefined };

  const existing = statSync(join(noted ?? defaultPlace(dataDir), 'cluster'), { throwIfNoEntry: false });
  // A cluster that an ordinary user created keeps its owner, so that both can start it.
  const account = existing && existing.uid !== 0 ? { uid: existing.uid, gid: existing.gid } : getPostgresAccount();
  openDataDir(dataDir, account);
  if (noted !== undefined) return { place: noted, account };
  if (canReach(account, dataDir)) return { place: createParent(defaultPlace(dataDir), account), account };
  if (existing)
    throw new EmbeddedPostgresError(
      `The user with id ${account.uid}, who owns the database in ${dataDir}, cannot reach that directory. ` +
        'Allow access through every parent directory (`chmod o+x`), or run Quarry as that user.',
    );
  const place = join(sharedRoot, shortHash(dataDir));
  return { place: createParent(place, account), account };
}

function defaultPlace(dataDir: string): string {
  return join(dataDir, 'postgres');
}

function readPlace(dataDir: string): string | undefined {
  const file = join(dataDir, placeFile);
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
}

/** Lets the user's group traverse the data directory itself, but not read it. */
function openDataDir(dataDir: string, account: Account): void {
  if (canReach(account, dataDir) || !canReach(account, dirname(dataDir))) return;
  const stat = statSync(dataDir);
  if (stat.uid !== 0 || (stat.mode & 0o070) !== 0) return;
  chownSync(dataDir, 0, account.gid);
  chmodSync(dataDir, (stat.mode & 0o7777) | 0o010);
}

function shortHash(text: string): string {
  return hash('sha256', text).slice(0, 16);
}

function createParent(place: string, account: Account | undefined): string {
  if (account && dirname(place) === sharedRoot) createDirectories(sharedRoot, 0o755);
  createPrivateDirectory(place, account);
  return place;
}

function createPrivateDirectory(directory: string, account: Account | undefined): void {
  if (!existsSync(directory)) mkdirSync(directory, { mode: 0o700 });
  const stat = lstatSync(directory);
  // Changes the owner only of root's own directory: in /tmp, anyone could have created this name.
  if (account && stat.isDirectory() && stat.uid === 0) chownSync(directory, account.uid, account.gid);
}

function checkCluster(cluster: string, binaries: PostgresBinaries, account: Account | undefined): void {
  const version = Number.parseInt(readFileSync(join(cluster, 'PG_VERSION'), 'utf8'), 10);
  if (version !== binaries.majorVersion)
    throw new EmbeddedPostgresError(
      `The database in ${cluster} was created by PostgreSQL ${version}, but this version of Quarry includes ${binaries.majorVersion}. ` +
        `Dump it with the Quarry version that created it and restore it into an empty data directory, or run your own PostgreSQL ${version} on it and set DATABASE_URL.`,
    );
  const owner = statSync(cluster).uid;
  const expected = account?.uid ?? process.getuid?.();
  if (owner !== expected)
    throw new EmbeddedPostgresError(
      owner === 0
        ? `The database in ${cluster} belongs to root, but PostgreSQL refuses to run as root. Change its owner (chown -R).`
        : `The database in ${cluster} belongs to the user with id ${owner}. Run Quarry as that user or as root.`,
    );
}

/** Creates the cluster under a temporary name and renames it when complete: a killed start leaves nothing unfinished. */
async function createCluster(
  place: string,
  binaries: PostgresBinaries,
  account: Account | undefined,
  log: Logger,
): Promise<void> {
  if (!account) requireNamedUser();
  for (const name of readdirSync(place).filter((entry) => entry.startsWith('unfinished-'))) {
    try {
      rmSync(join(place, name), { recursive: true, force: true, maxRetries: 5 });
    } catch (error) {
      // The initdb of a killed start may still be writing there. It ends by itself.
      log.warn({ err: error, name }, 'An unfinished database could not be removed');
    }
  }
  log.info({ place }, 'Creating the embedded database');
  const unfinished = join(place, `unfinished-${process.pid}-${randomUUID()}`);
  const initdb = join(binaries.directory, 'bin', 'initdb');
  const args = [
    ['-D', unfinished, '-U', username, '--encoding=UTF8', '--data-checksums', '--no-instructions'],
    // The built-in C.UTF-8 is Unicode-aware, sorts the same on every system, and does not change with libc.
    ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
    // Only the server can enter the socket's private directory, and PostgreSQL listens on no network.
    ['--auth-local=trust', '--auth-host=reject'],
  ].flat();
  try {
    await promisify(execFile)(initdb, args, {
      cwd: '/',
      env: postgresEnvironment,
      timeout: initTimeoutMs,
      ...(account ?? {}),
    });
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true, maxRetries: 5 });
    throw new EmbeddedPostgresError(explainInitFailure(error, place, binaries), error);
  }
  renameSync(unfinished, join(place, 'cluster'));
  syncDirectoryBlocking(place);
}

function explainInitFailure(error: unknown, place: string, binaries: PostgresBinaries): string {
  const output = error instanceof Error && 'stderr' in error ? String(error.stderr) : '';
  if (/No space left on device/.test(output))
    return `The disk that holds ${place} is full. Free some space and start again.`;
  if (output.trim() === '') return explainSpawnFailure(error, { binaries });
  return `The embedded database could not be created in ${place}. PostgreSQL reported:\n${output.trim()}`;
}

/**
 * Creates the socket directory beside the cluster, or in the temporary directory if the path would be too long for a
 * socket.
 */
function createSocketDirectory(place: string, account: Account | undefined): string {
  const beside = join(place, 'socket');
  const fits = Buffer.byteLength(socketPath({ host: beside, port })) <= socketPathBytesMax;
  const short = !account || canReach(account, tmpdir()) ? tmpdir() : '/tmp';
  const directory = fits ? beside : join(short, `quarry-${shortHash(place)}`);
  createPrivateDirectory(directory, account);
  const stat = lstatSync(directory);
  const owner = account?.uid ?? process.getuid?.();
  if (!stat.isDirectory() || stat.uid !== owner || (stat.mode & 0o077) !== 0)
    throw new EmbeddedPostgresError(
      `${directory} should be a private directory for PostgreSQL's socket, but another user created it. Remove it.`,
    );
  // No PostgreSQL runs on this cluster now, so a socket left by a crash is stale.
  rmSync(socketPath({ host: directory, port }), { force: true });
  rmSync(`${socketPath({ host: directory, port })}.lock`, { force: true });
  return directory;
}
