import { findProgram, installPackage } from './debian-package.ts';

/*
 * `npm run setup:python`: Python for the tests of the recipes in clients/python. Uses an existing one; otherwise installs
 * Debian's, if this is Debian and the user may.
 */

export function findPython(): string | undefined {
  return findProgram(['python3'], ['/usr/bin']);
}

if (import.meta.main) {
  const found = findPython() ?? (installPackage('python3') ? findPython() : undefined);
  if (found !== undefined) console.log(`The tests of the Python recipes use ${found}.`);
  else {
    console.error('Python is not here and could not be installed by apt-get as root. Install the package python3.');
    process.exitCode = 1;
  }
}
