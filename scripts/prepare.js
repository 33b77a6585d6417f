// Builds the web console after `npm ci` in a clone, unless it is built from these files already. The published package
// contains it, so nobody who installs that runs this. Plain JavaScript, because an older Node may run it.
import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const sources = ['package-lock.json', 'scripts/build-console.js', 'console/src', 'console/public'];
const settings = ['console/index.html', 'console/vite.config.js'];

if (!existsSync(join(root, 'node_modules', 'vite'))) console.log('console: not built, because vite is not installed');
else if (builtAt() < changedAt()) await import('./build-console.js');

function builtAt() {
  return modifiedAt('console/dist/index.html');
}

function changedAt() {
  const paths = [...sources, ...settings].flatMap((path) =>
    statSync(join(root, path)).isDirectory()
      ? readdirSync(join(root, path), { recursive: true }).map((name) => join(path, name))
      : [path],
  );
  return Math.max(...paths.map(modifiedAt));
}

function modifiedAt(path) {
  return statSync(join(root, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
