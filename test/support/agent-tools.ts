import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projectRoot } from './source.ts';

const source = join(projectRoot, 'clients/tools');
let built: string | undefined;

/** Installs the package of clients/tools into a directory of packages, compiled as `npm pack` compiles it. */
export function installAgentTools(modules: string): void {
  built ??= build();
  const target = join(modules, '@quarry', 'tools');
  mkdirSync(target, { recursive: true });
  cpSync(built, join(target, 'dist'), { recursive: true });
  copyFileSync(join(source, 'package.json'), join(target, 'package.json'));
}

/** Builds the package once in this process. `npm run check` checks its types. */
function build(): string {
  const directory = mkdtempSync(join(tmpdir(), 'quarry-agent-tools-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  const tsc = join(projectRoot, 'node_modules/.bin/tsc');
  execFileSync(tsc, ['-p', join(source, 'tsconfig.build.json'), '--noCheck', '--outDir', directory], {
    stdio: 'inherit',
  });
  return directory;
}
