import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

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
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin'];
  const candidates = [...folders.flatMap((folder) => names.map((name) => join(folder, name))), ...elsewhere];
  return candidates.find((path) => existsSync(path));
}

function install(): number {
  const isRoot = process.getuid?.() === 0;
  const asRoot = (...command: string[]) => {
    const [program = '', ...rest] = isRoot ? command : ['sudo', '-n', ...command];
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    return spawnSync(program, rest, { stdio: 'inherit', env }).status ?? 1;
  };
  if (!existsSync('/usr/bin/apt-get')) return 1;
  if (asRoot('apt-get', 'update') !== 0) return 1;
  return asRoot('apt-get', 'install', '-y', '--no-install-recommends', 'chromium');
}

if (import.meta.main) {
  const found = findBrowser();
  if (found !== undefined) console.log(`The browser tests use ${found}.`);
  else if (install() === 0 && findBrowser() !== undefined) console.log(`Installed ${findBrowser()}.`);
  else {
    console.error(
      'There is no Chromium here and it could not be installed by apt-get as root. Install Chromium or Chrome by hand, or name one: CHROMIUM=/path/to/chromium npm test',
    );
    process.exitCode = 1;
  }
}
