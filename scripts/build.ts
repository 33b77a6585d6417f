import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/*
 * Compiles src/ into dist/, which is what the npm package and the image contain: Node runs no TypeScript below
 * node_modules. `npm pack` runs this; a clone runs its source and needs none of it.
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
// Of Swagger UI, the reference needs only these files, not the package with its dependencies.
const reference = join(output, 'http/openapi/reference');
mkdirSync(reference);
for (const name of ['swagger-ui-bundle.js', 'swagger-ui-standalone-preset.js', 'swagger-ui.css'])
  copyFileSync(join(root, 'node_modules/@fastify/swagger-ui/static', name), join(reference, name));
