import { findProgram, installPackage } from './debian-package.ts';

/*
 * `npm run setup:pgbouncer`: PgBouncer for the tests behind a pooler. Uses an existing one; otherwise installs Debian's,
 * if this is Debian and the user may. Nothing is started.
 */

export function findPgbouncer(): string | undefined {
  return findProgram(['pgbouncer'], ['/usr/sbin', '/usr/bin']);
}

if (import.meta.main) {
  const found = findPgbouncer() ?? (installPackage('pgbouncer') ? findPgbouncer() : undefined);
  if (found !== undefined) console.log(`The tests behind a pooler use ${found}.`);
  else {
    console.error(
      'PgBouncer is not here and could not be installed by apt-get as root. Install the package pgbouncer.',
    );
    process.exitCode = 1;
  }
}
