// Builds the web console into console/dist; `npm ci` runs it. Plain JavaScript, because it may be the first script that
// an older Node runs here.
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'vite';
import config from '../console/vite.config.js';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', 'console');
// A server that runs finds the former files until the new ones are complete.
const output = join(root, 'dist-next');
const served = join(root, 'dist');
const startedMs = Date.now();
rmSync(output, { recursive: true, force: true });
const options = { ...config.build, outDir: output };
await build({ ...config, build: options, root, configFile: false, logLevel: 'warn' });

let bytes = 0;
for (const name of readdirSync(output, { recursive: true, encoding: 'utf8' })) {
  if (!/\.(html|js|css|svg)$/.test(name)) continue;
  const file = join(output, name);
  const content = readFileSync(file);
  const zipped = gzipSync(content, { level: 9 });
  writeFileSync(`${file}.gz`, zipped);
  writeFileSync(`${file}.br`, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }));
  bytes += zipped.length;
}
rmSync(served, { recursive: true, force: true });
renameSync(output, served);
console.log(`console: ${Math.round(bytes / 1024)} KiB compressed, built in ${Date.now() - startedMs} ms`);
