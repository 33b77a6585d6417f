import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Programs that Quarry is measured against and does not depend on. Each is installed into a directory of its own outside
 * the repository, once; PEERS_DIR names another place for these directories.
 */
type Installed = {
  directory: string;
  /** The installed version of one of the packages. */
  version(name: string): string;
  /** Imports a module of the packages as a program in that directory would. */
  load<T>(name: string): Promise<T>;
};

const place = process.env.PEERS_DIR ?? join(tmpdir(), 'quarry-bench-peers');
const loader = 'export default (name) => import(name);\n';

/** @param packages names with versions, as `npm install` takes them */
export function installPackages(name: string, packages: string[]): Installed {
  const directory = join(place, name);
  const wanted = JSON.stringify(packages);
  const installedFile = join(directory, 'installed.json');
  if (!existsSync(installedFile) || readFileSync(installedFile, 'utf8') !== wanted) {
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'package.json'), '{"private":true}');
    writeFileSync(join(directory, 'load.mjs'), loader);
    execFileSync('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...packages], {
      cwd: directory,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    writeFileSync(installedFile, wanted);
  }
  return {
    directory,
    version: (one) => JSON.parse(readFileSync(join(directory, 'node_modules', one, 'package.json'), 'utf8')).version,
    load: async (one) => (await import(join(directory, 'load.mjs'))).default(one),
  };
}

/** Unpacks a package of this Debian without installing it. Returns the path of its program and the version. */
export function unpackDebian(name: string, program: string): { path: string; version: string } {
  const directory = join(place, name);
  const path = join(directory, program);
  if (!existsSync(path)) {
    mkdirSync(directory, { recursive: true });
    execFileSync('apt-get', ['download', name], { cwd: directory, stdio: 'ignore' });
    execFileSync('dpkg', ['-x', archiveIn(directory), '.'], { cwd: directory });
  }
  return { path, version: archiveIn(directory).split('_')[1]?.replace(/-.*/, '') ?? '' };
}

function archiveIn(directory: string): string {
  const archive = readdirSync(directory).find((file) => file.endsWith('.deb'));
  if (archive === undefined) throw new Error(`There is no package in ${directory}.`);
  return archive;
}
