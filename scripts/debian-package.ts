import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Installs a package of Debian, if this is Debian and the user may. */
export function installPackage(name: string): boolean {
  const isRoot = process.getuid?.() === 0;
  const runAsRoot = (...command: string[]) => {
    const [program = '', ...rest] = isRoot ? command : ['sudo', '-n', ...command];
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    return spawnSync(program, rest, { stdio: 'inherit', env }).status === 0;
  };
  if (!existsSync('/usr/bin/apt-get') || !runAsRoot('apt-get', 'update')) return false;
  return runAsRoot('apt-get', 'install', '-y', '--no-install-recommends', name);
}

/** The first of these programs in the folders of PATH or in these ones. */
export function findProgram(names: string[], folders: string[]): string | undefined {
  const places = [...(process.env.PATH ?? '').split(delimiter), ...folders];
  return places.flatMap((place) => names.map((name) => join(place, name))).find((path) => existsSync(path));
}
