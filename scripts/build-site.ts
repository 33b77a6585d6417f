import { execFileSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/*
 * Builds the documentation site into site/dist, and first installs its packages unless they are those of its lock file.
 * With --if-changed, it builds only what is older than its sources.
 */
const root = join(import.meta.dirname, '..');
const site = join(root, 'site');
const run = (command: string, ...args: string[]) => execFileSync(command, args, { cwd: site, stdio: 'inherit' });
const sources = ['docs', 'skills', 'site/.vitepress/theme', 'site/reference', 'site/.vitepress/config.ts'];
const files = ['openapi.json', 'package.json', 'site/package-lock.json'];

if (
  !process.argv.includes('--if-changed') ||
  changedAt(...sources, ...files, ...ownCode()) > changedAt('site/dist/index.html')
) {
  if (changedAt('site/package-lock.json') > changedAt('site/node_modules/.package-lock.json'))
    run('npm', 'ci', '--prefer-offline');
  run(process.execPath, 'prepare.ts');
  run(process.execPath, 'node_modules/vitepress/bin/vitepress.js', 'build', '.');
}

function ownCode(): string[] {
  return readdirSync(site)
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join('site', name));
}

/** When the newest of the files, or of those in the folders, was changed; 0 if there is none. */
function changedAt(...paths: string[]): number {
  const times = paths.flatMap((path) => {
    const entry = statSync(join(root, path), { throwIfNoEntry: false });
    if (!entry?.isDirectory()) return [entry?.mtimeMs ?? 0];
    const inside = readdirSync(join(root, path), { recursive: true, encoding: 'utf8' });
    return inside.map((name) => statSync(join(root, path, name)).mtimeMs);
  });
  return Math.max(...times);
}
