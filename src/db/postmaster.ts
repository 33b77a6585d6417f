import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { closeSync, copyFileSync, openSync, readFileSync, rmSync, statfsSync, statSync, truncateSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from '../lib/log.ts';
import type { Account } from './postgres-account.ts';
import type { PostgresBinaries } from './postgres-binaries.ts';
import { EmbeddedPostgresError } from './postgres-error.ts';

type PostmasterOptions = {
  binaries: PostgresBinaries;
  cluster: string;
  socketDirectory: string;
  port: number;
  logFile: string;
  /** The user that PostgreSQL runs as. Set if this process is root, which PostgreSQL refuses. */
  account: Account | undefined;
  log: Logger;
  settings: Record<string, string>;
};

type Postmaster = {
  pid: number;
  /** Resolves when the process has ended, for any reason. */
  ended: Promise<void>;
  stop(): Promise<void>;
};

/** Starts PostgreSQL on a cluster that no other process uses, and waits until it accepts connections. */
export async function startPostmaster(options: PostmasterOptions): Promise<Postmaster> {
  for (let attempt = 1; ; attempt++) {
    const outcome = await tryStart(options);
    if (typeof outcome !== 'string') return outcome;
    // The backends of a killed postmaster soon notice its end and free the shared memory.
    if (!/shared memory block|lock file/.test(outcome) || attempt >= startAttemptsMax)
      throw new EmbeddedPostgresError(explainFailure(options, outcome));
    await wait(startRetryMs);
  }
}

/**
 * Stops a PostgreSQL that still runs on the cluster after its server has ended, and removes what a crash left behind.
 */
export async function stopOrphan(cluster: string, log: Logger): Promise<void> {
  const pid = readPidFile(cluster)?.pid;
  if (pid === undefined || !isAlive(pid)) return;
  if (!isPostgresOn(pid, cluster)) {
    // The process id now belongs to another program. PostgreSQL cannot tell the difference and would refuse to start.
    rmSync(join(cluster, 'postmaster.pid'), { force: true });
    return;
  }
  log.warn({ postgresPid: pid }, 'Stopping the PostgreSQL that an earlier server left running');
  await stopProcess(pid, () => !isAlive(pid));
}

/** The process id and socket directory of the running postmaster, from the cluster's pid file. */
export function findPostmaster(cluster: string): { pid: number; socketDirectory: string; port: number } | undefined {
  const file = readPidFile(cluster);
  if (file?.status !== 'ready' || !isAlive(file.pid) || !isPostgresOn(file.pid, cluster)) return undefined;
  return { pid: file.pid, socketDirectory: file.socketDirectory, port: file.port };
}

/** The environment of every PostgreSQL program. It excludes this process's variables, which may contain secrets. */
export const postgresEnvironment = { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

const startAttemptsMax = 50;
const startRetryMs = 100;
const readyPollMs = 5;
/** Crash recovery of a large database takes minutes; a start that takes longer than this has failed. */
const startTimeoutMs = 600_000;
const fastShutdownMs = 5_000;
const immediateShutdownMs = 2_000;
const logBytesMax = 5 * 1024 * 1024;
const logCheckMs = 60_000;

/** Returns the running server, or the end of PostgreSQL's log if it did not start. */
async function tryStart(options: PostmasterOptions): Promise<Postmaster | string> {
  const { binaries, cluster, account, log } = options;
  boundLog(options.logFile);
  const logStart = statSync(options.logFile, { throwIfNoEntry: false })?.size ?? 0;
  const output = openSync(options.logFile, 'a', 0o600);
  const child = spawn(join(binaries.directory, 'bin', 'postgres'), ['-D', cluster, ...serverSettings(options)], {
    cwd: '/',
    env: postgresEnvironment,
    stdio: ['ignore', output, output],
    // A separate session: Ctrl-C in the terminal must reach only this process, or connections would close before
    // requests have drained.
    detached: true,
    ...(account ?? {}),
  });
  closeSync(output);
  const ended = endOf(child);
  let hasEnded = false;
  void ended.then(() => {
    hasEnded = true;
  });
  const { pid } = child;
  if (pid === undefined) throw new EmbeddedPostgresError(explainSpawnFailure(await ended, options), await ended);
  child.unref();

  const deadline = performance.now() + startTimeoutMs;
  while (!hasEnded && readPidFile(cluster, pid)?.status !== 'ready') {
    if (performance.now() > deadline) {
      child.kill('SIGKILL');
      return 'PostgreSQL did not become ready in time.';
    }
    await wait(readyPollMs);
  }
  if (hasEnded) return readFileSync(options.logFile).subarray(logStart).toString().slice(-4_000);

  let stopping: Promise<void> | undefined;
  const logTimer = setInterval(() => boundLog(options.logFile), logCheckMs).unref();
  void ended.then(() => {
    clearInterval(logTimer);
    if (!stopping)
      log.fatal({ postgresPid: pid, logFile: options.logFile }, 'The embedded PostgreSQL ended unexpectedly');
  });
  return {
    pid,
    ended: ended.then(() => undefined),
    stop() {
      stopping ??= stopProcess(pid, () => hasEnded);
      return stopping;
    },
  };
}

/** Settings are in the code, not in the cluster, so that an upgrade of Quarry can change them. */
function serverSettings({ socketDirectory, port, settings: extra }: PostmasterOptions): string[] {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY) / 1024 / 1024;
  const megabytes = (least: number, most: number, share: number) =>
    `${Math.round(Math.max(least, Math.min(most, memory * share)))}MB`;
  const settings: Record<string, string> = {
    listen_addresses: '',
    // A comma-separated list. The quotes protect a directory whose name contains a comma.
    unix_socket_directories: `"${socketDirectory.replaceAll('"', '""')}"`,
    unix_socket_permissions: '0700',
    port: String(port),
    max_connections: '200',
    // Pages that do not fit are in the system's cache. Those that do take memory in both.
    shared_buffers: megabytes(64, 128, 1 / 16),
    wal_buffers: megabytes(2, 16, 1 / 512),
    effective_cache_size: megabytes(256, 2_048, 1 / 4),
    jit: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    logging_collector: 'off',
    log_min_messages: 'warning',
    // Statements and details contain tenants' data. Our own log says which request failed.
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
    ...(hasSmallSharedMemory() ? { dynamic_shared_memory_type: 'mmap' } : {}),
    ...extra,
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** Containers by default limit /dev/shm to 64 MB, which parallel queries exhaust. */
function hasSmallSharedMemory(): boolean {
  if (process.platform !== 'linux') return false;
  try {
    const { blocks, bsize } = statfsSync('/dev/shm');
    return blocks * bsize < 256 * 1024 * 1024;
  } catch {
    return true;
  }
}

/** Sends a fast shutdown (cancels running statements, writes everything), then stronger signals. */
async function stopProcess(pid: number, hasEnded: () => boolean): Promise<void> {
  const steps: [NodeJS.Signals, number][] = [
    ['SIGINT', fastShutdownMs],
    ['SIGQUIT', immediateShutdownMs],
    ['SIGKILL', immediateShutdownMs],
  ];
  for (const [signal, patienceMs] of steps) {
    // The process id may belong to another process as soon as this one has ended.
    if (hasEnded()) return;
    try {
      process.kill(pid, signal);
    } catch {
      // The process ended in the meantime.
    }
    const deadline = performance.now() + patienceMs;
    while (!hasEnded() && performance.now() < deadline) await wait(readyPollMs);
  }
  if (hasEnded()) return;
  throw new EmbeddedPostgresError(`PostgreSQL (process ${pid}) could not be stopped.`);
}

function endOf(child: ChildProcess): Promise<Error | undefined> {
  return new Promise((resolve) => {
    child.once('error', resolve);
    child.once('exit', () => resolve(undefined));
  });
}

type PidFile = { pid: number; port: number; socketDirectory: string; status: string };

/**
 * Reads PostgreSQL's postmaster.pid: process id, directory, start time, port, socket directory, address, memory key,
 * status.
 */
function readPidFile(cluster: string, expectedPid?: number): PidFile | undefined {
  let lines: string[];
  try {
    lines = readFileSync(join(cluster, 'postmaster.pid'), 'utf8').split('\n');
  } catch {
    return undefined;
  }
  const pid = Number.parseInt(lines[0] ?? '', 10);
  if (!(pid > 0) || (expectedPid !== undefined && pid !== expectedPid)) return undefined;
  return { pid, port: Number(lines[3]), socketDirectory: lines[4] ?? '', status: (lines[7] ?? '').trim() };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
  // In a container without an init process, ended processes remain as zombies.
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return true;
  }
}

/** Whether the process is a PostgreSQL that was started with this directory. */
function isPostgresOn(pid: number, cluster: string): boolean {
  const command = readCommand(pid);
  return command !== undefined && /postgres/.test(command) && command.includes(`-D ${cluster} `);
}

function readCommand(pid: number): string | undefined {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return execFileSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8', timeout: 5_000 });
  } catch {
    return undefined;
  }
}

/** Keeps this log and the previous one. PostgreSQL appends, so truncating the open file is safe. */
function boundLog(file: string): void {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) <= logBytesMax) return;
  copyFileSync(file, `${file}.1`);
  truncateSync(file, 0);
}

function explainFailure({ cluster, logFile }: PostmasterOptions, output: string): string {
  if (/No space left on device/.test(output))
    return `The disk that holds ${cluster} is full. Free some space and start again.`;
  return `PostgreSQL did not start. It reported:\n${output.trim()}\nThe full log is in ${logFile}.`;
}

/** Why a PostgreSQL program could not be started at all. */
export function explainSpawnFailure(error: unknown, { binaries }: Pick<PostmasterOptions, 'binaries'>): string {
  const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
  return missing
    ? `PostgreSQL's programs in ${binaries.directory} cannot run here: they need glibc, which Alpine Linux does not include. Use a Debian-based system or set DATABASE_URL.`
    : `PostgreSQL's programs in ${binaries.directory} cannot run here: ${String(error)}`;
}
