import { cpSync, existsSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createDirectories } from '../../lib/directories.ts';
import { UsageError } from '../errors.ts';

export type InitOptions = { language: 'typescript' | 'python' };

/** `examples/starter` of the clone or the package. */
const templates = fileURLToPath(new URL('../../../examples/starter/', import.meta.url));

/** The program itself: `npx quarry` would look for it in the new directory, then in npm's registry. */
const program = fileURLToPath(new URL('../../../bin/quarry.js', import.meta.url));

/** The clients, which a clone has and the package has not. */
const clients = fileURLToPath(new URL('../../../clients/', import.meta.url));

/** Files whose names npm would change or leave out. */
const names: { [template: string]: string } = { gitignore: '.gitignore', env: '.env' };

/** `quarry init [directory]`: writes a small app that works. Files that exist are never overwritten. Returns the exit code. */
export function init(directory: string, { language }: InitOptions): number {
  const files = ['common', language].flatMap((part) => listFiles(join(templates, part)));
  const targets = files.map(({ path, name }) => ({ path, target: join(directory, name) }));
  const taken = targets.find(({ target }) => existsSync(target));
  if (taken) throw new UsageError(`${taken.target} exists. Name a directory without it: nothing was written.`);
  createDirectories(directory);
  for (const { path, target } of targets) cpSync(path, target);
  process.stdout.write(nextSteps(directory, language));
  return 0;
}

function listFiles(root: string): { path: string; name: string }[] {
  return readdirSync(root, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && !/__pycache__/.test(entry.parentPath))
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return { path, name: names[relative(root, path)] ?? relative(root, path) };
    });
}

function nextSteps(directory: string, language: string): string {
  const client = language === 'python' ? 'docs/python.md#install' : 'docs/typescript.md#install';
  const install =
    language === 'python'
      ? `pip install "${clients}python"   # best in an environment: python3 -m venv .venv && . .venv/bin/activate`
      : `npm install "$(npm pack --silent '${clients}typescript')"`;
  const runtime = language === 'python' ? 'Python 3.9 or newer' : 'Node 22.18 or newer';
  const ask = language === 'python' ? 'python3 main.py' : 'npm run ask';
  return [
    `Wrote a starter to ${directory === '.' ? 'this directory' : directory}: its README.md says what is where. Next:`,
    ...(directory === '.' ? [] : [`  cd ${directory}`]),
    ...(existsSync(clients) ? [`  ${install}`] : []),
    `  quarry dev            # runs a server that follows app/`,
    `  ${ask.padEnd(20)}  # in a second terminal, with ${runtime} and the client (${client})`,
    `If your shell does not find quarry, write ${program}.`,
    '',
  ].join('\n');
}
