import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projectRoot } from './source.ts';

/** The packages of `clients`, by directory and name. */
const packages = { tools: '@quarry/tools', typescript: '@quarry/client' } as const;
type ClientPackage = keyof typeof packages;

const built = new Map<ClientPackage, string>();

/** Installs a package of `clients` into a directory of packages, compiled as `npm pack` compiles it. */
export function installClientPackage(name: ClientPackage, modules: string): void {
  const target = join(modules, packages[name]);
  mkdirSync(target, { recursive: true });
  cpSync(buildClientPackage(name), join(target, 'dist'), { recursive: true });
  copyFileSync(join(projectRoot, 'clients', name, 'package.json'), join(target, 'package.json'));
}

/** Builds a package once in this process and returns the directory. `npm run check` checks its types. */
function buildClientPackage(name: ClientPackage): string {
  const known = built.get(name);
  if (known !== undefined) return known;
  const directory = mkdtempSync(join(tmpdir(), `quarry-${name}-`));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  const tsc = join(projectRoot, 'node_modules/.bin/tsc');
  const config = join(projectRoot, 'clients', name, 'tsconfig.build.json');
  execFileSync(tsc, ['-p', config, '--noCheck', '--outDir', directory], { stdio: 'inherit' });
  built.set(name, directory);
  return directory;
}
