import { existsSync } from 'node:fs';
import { findProgram, installPackage } from './debian-package.ts';

/*
 * `npm run setup:browser`: a Chromium for the browser tests. Uses an existing one; otherwise installs Debian's, if this
 * is Debian and the user may. CHROMIUM names another one.
 */

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const elsewhere = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

/** Common paths of Chromium. */
export function findBrowser(): string | undefined {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  return findProgram(names, ['/usr/bin']) ?? elsewhere.find((path) => existsSync(path));
}

if (import.meta.main) {
  const found = findBrowser();
  if (found !== undefined) console.log(`The browser tests use ${found}.`);
  else if (installPackage('chromium') && findBrowser() !== undefined) console.log(`Installed ${findBrowser()}.`);
  else {
    console.error(
      'There is no Chromium here and it could not be installed by apt-get as root. Install Chromium or Chrome by hand, or name one: CHROMIUM=/path/to/chromium npm test',
    );
    process.exitCode = 1;
  }
}
