import { execFileSync } from 'node:child_process';
import { appendFileSync, readFileSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname } from 'node:path';
import { EmbeddedPostgresError } from './postgres-error.ts';

/** The operating system user that PostgreSQL runs as. */
export type Account = { uid: number; gid: number };

/** The account of this process, or undefined if it is root, which PostgreSQL refuses. */
export function ownAccount(): Account | undefined {
  const uid = process.getuid?.() ?? 0;
  return uid === 0 ? undefined : { uid, gid: process.getgid?.() ?? uid };
}

/**
 * Returns the user `postgres`, and creates it if absent. Only root may call this.
 * @throws EmbeddedPostgresError if it cannot be created.
 */
export function getPostgresAccount(): Account {
  const found = findAccount('postgres');
  if (found) return found;
  const attempts = [
    () => run('useradd', ['--system', '--user-group', '--no-create-home', '--shell', '/usr/sbin/nologin', 'postgres']),
    () => run('adduser', ['-S', '-D', '-H', '-s', '/sbin/nologin', 'postgres']),
    // Some minimal images include neither program.
    appendAccount,
  ];
  const errors: unknown[] = [];
  for (const attempt of attempts) {
    try {
      attempt();
    } catch (error) {
      errors.push(error);
    }
    const account = findAccount('postgres');
    if (account) return account;
  }
  throw new EmbeddedPostgresError(
    'PostgreSQL refuses to run as root, and the user "postgres" could not be created. ' +
      'Create it (`useradd --system postgres`), run Quarry as an ordinary user, or set DATABASE_URL.',
    new AggregateError(errors),
  );
}

/** `initdb` looks up its user by id and fails if there is no entry, for example under `docker run --user 12345`. */
export function requireNamedUser(): void {
  try {
    userInfo();
  } catch (error) {
    throw new EmbeddedPostgresError(
      `The user with id ${process.getuid?.()} has no entry in /etc/passwd, which PostgreSQL needs to create a database. ` +
        'Run Quarry as a user that has one, or set DATABASE_URL.',
      error,
    );
  }
}

/** Whether `account` may traverse every directory from the root down to `directory`. */
export function canReach(account: Account, directory: string): boolean {
  for (let current = directory; ; current = dirname(current)) {
    const stat = statSync(current, { throwIfNoEntry: false });
    if (stat) {
      const shift = stat.uid === account.uid ? 6 : stat.gid === account.gid ? 3 : 0;
      if (((stat.mode >> shift) & 0o1) === 0) return false;
    }
    if (dirname(current) === current) return true;
  }
}

function findAccount(name: string): Account | undefined {
  for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
    const [user, , uid, gid] = line.split(':');
    if (user === name && Number(uid) > 0) return { uid: Number(uid), gid: Number(gid) };
  }
  return undefined;
}

function appendAccount(): void {
  const taken = new Set(
    ['/etc/passwd', '/etc/group'].flatMap((file) =>
      readFileSync(file, 'utf8')
        .split('\n')
        .map((line) => Number(line.split(':')[2])),
    ),
  );
  let id = 70;
  while (taken.has(id)) id += 1;
  appendFileSync('/etc/group', `postgres:x:${id}:\n`);
  appendFileSync('/etc/passwd', `postgres:x:${id}:${id}:PostgreSQL:/nonexistent:/usr/sbin/nologin\n`);
}

const accountTimeoutMs = 10_000;

function run(program: string, args: string[]): void {
  execFileSync(program, args, { stdio: 'pipe', timeout: accountTimeoutMs });
}
