import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Runs benchmarks one after the other, each in a process of its own:
 *   node bench/run.ts                 all that need no data of yours
 *   node bench/run.ts kv files        these
 *   node bench/run.ts kv --seconds 5  one with its own options
 * Each file in this folder says what it measures and against what; docs/performance.md holds the figures.
 */
const folder = fileURLToPath(new URL('.', import.meta.url));
const helpers = new Set(['run', 'support']);
/** These score a collection with ground truth, whose directory is an argument. */
const needData = new Set(['extract-quality', 'retrieval']);

const all = readdirSync(folder)
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.slice(0, -'.ts'.length))
  .filter((name) => !helpers.has(name));
const [first, ...rest] = process.argv.slice(2);
const named = first === undefined ? all.filter((name) => !needData.has(name)) : [first, ...rest.filter(isName)];
const options = named.length === 1 ? rest : [];
const unknown = named.filter((name) => !all.includes(name));
if (unknown.length > 0) {
  console.error(`There is no benchmark ${unknown.join(', ')}. There are: ${all.join(', ')}.`);
  process.exit(2);
}
for (const name of named) {
  console.log(`\n# ${name}`);
  const code = await runBenchmark(name);
  if (code !== 0) process.exitCode = code;
}

function isName(text: string): boolean {
  return all.includes(text);
}

function runBenchmark(name: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(folder, `${name}.ts`), ...options], { stdio: 'inherit' });
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}
