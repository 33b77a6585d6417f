import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';

/*
 * Compiles src/ into dist/, which is what the npm package and the image contain: Node runs no TypeScript below
 * node_modules. `npm pack` runs this; a clone runs its source and needs none of it.
 * With --without-site, what it compiles lacks the documentation site, whose compression takes longer than all else.
 * Types are checked by `npm run check`: checking them here as well would take ten times as long as compiling.
 */
const root = join(import.meta.dirname, '..');
const output = join(root, 'dist');
rmSync(output, { recursive: true, force: true });
const compile = (...options: string[]) =>
  execFileSync(process.execPath, [join(root, 'node_modules/.bin/tsc'), ...options], { cwd: root, stdio: 'inherit' });
compile('-p', 'tsconfig.build.json');
// Only what can be imported from outside needs its types, and it names those of no other file.
const types = ['--declaration', '--emitDeclarationOnly', '--isolatedDeclarations', '--noResolve', '--noCheck'];
const asHere = ['--target', 'esnext', '--module', 'nodenext', '--rootDir', 'src', '--outDir', 'dist'];
compile('--ignoreConfig', ...types, ...asHere, 'src/index.ts');
// The compiler copies no data.
copyFileSync(join(root, 'src/http/openapi/examples.json'), join(output, 'http/openapi/examples.json'));
// The documentation with its reference. Only its compressed form is shipped: the server decompresses for the few clients
// that need it.
const site = join(root, 'site/dist');
const isWithSite = !process.argv.includes('--without-site') && existsSync(site);
if (!isWithSite) console.log('The documentation site is left out. `npm run site` builds it.');
for (const name of !isWithSite ? [] : readdirSync(site, { recursive: true, encoding: 'utf8' })) {
  const target = join(output, 'http/openapi/site', name);
  if (statSync(join(site, name)).isDirectory()) continue;
  // Every server has its own.
  if (name === 'openapi.json') continue;
  mkdirSync(dirname(target), { recursive: true });
  if (name.endsWith('.png')) copyFileSync(join(site, name), target);
  else writeFileSync(`${target}.br`, brotliCompressSync(readFileSync(join(site, name))));
}
