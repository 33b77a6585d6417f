import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/** An unprivileged user that owns nothing. Parsers run as this user if the server runs as root. */
export const parserUserId = 65_533;
/**
 * Limits that the system enforces for each process, on Linux. A process is replaced long before it reaches its time
 * limit.
 */
export const processorSecondsMax = 3_600;
/** Long, because a probe that a busy machine does not finish would leave the parsers less confined. */
const probeTimeoutMs = 30_000;

/** How parser processes are confined on this system, in addition to Node's permissions. */
type Confinement = {
  /** Commands that wrap the program, each with the next command as its arguments. */
  prefix: string[];
  /** Whether the system limits processor time, data and file size. */
  limits: boolean;
  /** Whether the process has no network, whatever runs in it. */
  network: boolean;
  /** The user that it runs as, if not the server's own. */
  userId: number | undefined;
  /** Whether the process may read every file, because that user could not read the program otherwise. */
  readsAll: boolean;
};

const found = new Map<string, Confinement>();

/**
 * Tests once what this system allows: the strongest confinement in which the program can still be read, and these
 * directories too, if any confinement can read them.
 */
export function findConfinement(programFile: string, directories: string[] = []): Confinement {
  const files = [programFile, ...directories.filter((directory) => existsSync(directory))];
  const key = files.join('\n');
  const best =
    found.get(key) ??
    candidates().find((one) => isUsable(one, files)) ??
    candidates().find((one) => isUsable(one, [programFile])) ??
    none(process.platform === 'linux');
  found.set(key, best);
  return best;
}

const shell = '/bin/sh';

function* candidates(): Generator<Confinement> {
  if (process.platform !== 'linux' || !existsSync(shell)) return;
  const unshare = findCommand('unshare');
  const setpriv = findCommand('setpriv');
  const isRoot = process.getuid?.() === 0;
  const namespaces = unshare === undefined ? [] : isRoot ? [[]] : [['--map-current-user'], ['--map-root-user']];
  const ways = [...namespaces.map((options) => [unshare ?? '', '--net', ...options, '--']), []];
  for (const way of ways) {
    const network = way.length > 0;
    const base = { limits: true, network, userId: undefined, readsAll: false };
    if (setpriv !== undefined && isRoot)
      for (const readsAll of [false, true])
        yield { ...base, prefix: [...way, setpriv, ...otherUser(readsAll), '--'], userId: parserUserId, readsAll };
    if (setpriv !== undefined) yield { ...base, prefix: [...way, setpriv, ...fewerRights, '--'] };
    yield { ...base, prefix: way };
  }
}

/** Parsers end when the server is killed, and programs that they start cannot gain privileges. */
const fewerRights = ['--pdeathsig=KILL', '--no-new-privs'];

function otherUser(readsAll: boolean): string[] {
  const kept = readsAll ? ',+dac_read_search' : '';
  return [
    ...fewerRights,
    ...[`--reuid=${parserUserId}`, `--regid=${parserUserId}`, '--clear-groups'],
    ...[`--inh-caps=-all${kept}`, `--bounding-set=-all${kept}`],
    ...(readsAll ? ['--ambient-caps=+dac_read_search'] : []),
  ];
}

function none(limits: boolean): Confinement {
  return { prefix: [], limits: limits && existsSync(shell), network: false, userId: undefined, readsAll: false };
}

function isUsable({ prefix }: Confinement, files: string[]): boolean {
  const [command = shell, ...rest] = [...prefix, shell];
  const look = 'test -x "$0" && for path; do test -r "$path" || exit 1; done';
  const { status } = spawnSync(command, [...rest, '-c', look, process.execPath, ...files], {
    env: {},
    cwd: '/',
    stdio: 'ignore',
    timeout: probeTimeoutMs,
  });
  return status === 0;
}

function findCommand(name: string): string | undefined {
  return ['/usr/bin', '/bin', '/usr/sbin', '/sbin'].map((path) => `${path}/${name}`).find((path) => existsSync(path));
}
