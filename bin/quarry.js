#!/usr/bin/env node
// Runs `quarry` on the Node that the project brings when the one that was found is too old for it.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const majorNeeded = 24;
const node = findNode();
// A young generation of 8 MiB: with V8's 16 a long crawl keeps 60 MiB more, at the same speed.
const child = spawn(node, ['--max-semi-space-size=8', join(root, 'src', 'main.ts'), ...process.argv.slice(2)], {
  stdio: 'inherit',
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
  const name = process.platform === 'win32' ? 'node.cmd' : 'node';
  const own = join(root, 'node_modules', '.bin', name);
  if (existsSync(own)) return own;
  console.error(
    `Quarry needs Node ${majorNeeded}. This is ${process.versions.node}, and ${own} is not there: run \`npm ci\` without --omit=optional.`,
  );
  process.exit(1);
}
