import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/*
 * `npm run setup`: the programs that `npm test` needs. Uses those that are installed; otherwise installs Debian's, if
 * this is Debian and the user may. CHROMIUM names another browser.
 */

type Program = {
  names: string[];
  places?: string[];
  /** What a Python has to know. */
  modules?: string[];
  debianPackages: string[];
  use: string;
};

const programs = {
  browser: {
    names: ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'],
    places: [
      '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
      '/Applications/Chromium.app/Contents/MacOS/Chromium',
    ],
    debianPackages: ['chromium'],
    use: 'the tests of the console and of pages that need a browser',
  },
  pgbouncer: { names: ['pgbouncer'], debianPackages: ['pgbouncer'], use: 'the tests behind a connection pooler' },
  python: {
    names: ['python3'],
    modules: ['httpx', 'mypy', 'setuptools', 'wheel'],
    debianPackages: ['python3', 'python3-httpx', 'mypy', 'python3-setuptools', 'python3-wheel'],
    use: 'the tests of the Python client',
  },
  curl: { names: ['curl'], debianPackages: ['curl'], use: 'the guides, which run as tests' },
  git: { names: ['git'], debianPackages: ['git'], use: 'the test that the guides leave no files behind' },
  ip: { names: ['ip'], debianPackages: ['iproute2'], use: 'the test of a bundle without a network' },
  ps: { names: ['ps'], debianPackages: ['procps'], use: 'the tests that kill processes' },
} satisfies Record<string, Program>;

/** The path of a program, or undefined if it is not installed. */
function findProgram(name: keyof typeof programs): string | undefined {
  if (name === 'browser' && process.env.CHROMIUM) return process.env.CHROMIUM;
  const { names, places = [], modules }: Program = programs[name];
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin', '/usr/sbin'];
  const paths = folders.flatMap((folder) => names.map((program) => join(folder, program)));
  return [...paths, ...places].find((path) => existsSync(path) && (modules === undefined || imports(path, modules)));
}

/** Whether a Python has the modules: a machine may have several, of which Debian's gets Debian's packages. */
function imports(python: string, modules: string[]): boolean {
  return spawnSync(python, ['-c', `import ${modules.join(', ')}`], { stdio: 'ignore' }).status === 0;
}

/** The path of a program that a test needs. */
export function requireProgram(name: keyof typeof programs): string {
  const path = findProgram(name);
  if (path === undefined) throw new Error(`${programs[name].names[0]} is not installed: run \`npm run setup\`.`);
  return path;
}

/** Installs packages of Debian, if this is Debian and the user may. */
function installPackages(packages: string[]): void {
  const prefix = process.getuid?.() === 0 ? [] : ['sudo', '-n'];
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const runAsRoot = (...command: string[]) => {
    const [program = '', ...rest] = [...prefix, ...command];
    return spawnSync(program, rest, { stdio: 'inherit', env }).status === 0;
  };
  if (existsSync('/usr/bin/apt-get') && runAsRoot('apt-get', 'update'))
    runAsRoot('apt-get', 'install', '-y', '--no-install-recommends', ...packages);
}

if (import.meta.main) {
  const names = Object.keys(programs) as (keyof typeof programs)[];
  const isMissing = (name: keyof typeof programs) => findProgram(name) === undefined;
  const wanted = names.filter(isMissing).flatMap((name) => programs[name].debianPackages);
  if (wanted.length > 0) installPackages(wanted);
  for (const name of names) {
    const { use, debianPackages } = programs[name];
    if (!isMissing(name)) console.log(`${findProgram(name)}: for ${use}`);
    else
      console.error(
        `Missing: ${debianPackages.join(', ')}, for ${use}. Debian's could not be installed; install it by hand.`,
      );
  }
  if (names.some(isMissing)) process.exitCode = 1;
}
