import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/*
 * Compiles src/ into dist/, which is what the npm package and the image contain: Node runs no TypeScript below
 * node_modules. `npm pack` runs this; a clone runs its source and needs none of it.
 */
const root = join(import.meta.dirname, '..');
const output = join(root, 'dist');
rmSync(output, { recursive: true, force: true });
execFileSync(process.execPath, [join(root, 'node_modules/.bin/tsc'), '-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
});
// Only what can be imported from outside needs its types.
for (const name of readdirSync(output, { recursive: true, encoding: 'utf8' }))
  if (name.endsWith('.d.ts') && name !== 'index.d.ts') rmSync(join(output, name));
// The compiler copies no data.
copyFileSync(join(root, 'src/http/openapi-examples.json'), join(output, 'http/openapi-examples.json'));
// Of Swagger UI, the reference needs only these files, not the package with its dependencies.
const reference = join(output, 'http/reference');
mkdirSync(reference);
for (const name of ['swagger-ui-bundle.js', 'swagger-ui-standalone-preset.js', 'swagger-ui.css'])
  copyFileSync(join(root, 'node_modules/@fastify/swagger-ui/static', name), join(reference, name));
