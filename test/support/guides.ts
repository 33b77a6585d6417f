import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { stripTypeScriptTypes } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { format } from 'node:util';
import { runInNewContext } from 'node:vm';
import { installClientPackage } from './client-packages.ts';
import { pythonModules, pythonPath } from './python.ts';
import { projectRoot, readProjectFile } from './source.ts';

/** A fenced block of a page. */
type Block = { language: string; text: string; heading: string; line: number };

/** A command or program, and the output that the page shows for it, if any. */
export type Step = Block & { output: string | undefined };

/** The fenced blocks of Markdown in order. */
export function readBlocks(markdown: string): Block[] {
  const blocks: Block[] = [];
  let heading = '';
  let open: Block | undefined;
  for (const [at, line] of markdown.split('\n').entries()) {
    const fence = /^```(\w*)/.exec(line);
    if (fence && open) {
      blocks.push(open);
      open = undefined;
    } else if (fence) open = { language: fence[1] ?? '', text: '', heading, line: at + 1 };
    else if (open) open.text += `${line}\n`;
    else if (line.startsWith('#')) heading = line.replace(/^#+ /, '');
  }
  return blocks;
}

const notRun = /^(?:#|\/\/) Not run by the tests: ./;

/**
 * The parts of a page that are run: `sh`, `ts` and `python` blocks, except those whose first line says why not. A `text` block
 * is the output of the block before it.
 */
export function stepsOf(blocks: Block[]): Step[] {
  return blocks.flatMap((block, at) => {
    if (!['sh', 'ts', 'python'].includes(block.language) || notRun.test(block.text)) return [];
    const next = blocks[at + 1];
    return [{ ...block, output: next?.language === 'text' ? next.text : undefined }];
  });
}

/**
 * Creates a directory like a clone of this project, with the credentials of one server in its `data`. Everything that
 * commands might remove or write is a separate link, so that no page can harm the project.
 */
export function createClone(directory: string, credentials: object): void {
  mkdirSync(join(directory, 'data', 'try'), { recursive: true });
  writeFileSync(join(directory, 'data', 'credentials.json'), JSON.stringify(credentials));
  for (const name of ['bin', 'clients', 'migrations', 'src'])
    symlinkSync(join(projectRoot, name), join(directory, name));
  // Without `bin`, and with the command where npx looks first: in a directory of links, npx would try to install the
  // clone itself.
  const { bin: _bin, ...manifest } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
  writeFileSync(join(directory, 'package.json'), JSON.stringify(manifest));
  linkAll(join(projectRoot, 'node_modules'), join(directory, 'node_modules'), '.bin');
  linkAll(join(projectRoot, 'node_modules', '.bin'), join(directory, 'node_modules', '.bin'), 'quarry');
  symlinkSync(join(projectRoot, 'bin', 'quarry.js'), join(directory, 'node_modules', '.bin', 'quarry'));
  for (const name of ['tools', 'typescript'] as const) installClientPackage(name, join(directory, 'node_modules'));
  const commands = join(directory, 'node_modules', quickCommands);
  mkdirSync(commands);
  writeFileSync(join(commands, 'npx'), quickNpx, { mode: 0o755 });
}

/**
 * npx and bin/quarry.js each start another Node before the command. With the address of a process that runs commands, none
 * is started: to load the code of a command takes most of its time.
 */
const quickCommands = '.quick';
const quickNpx = `#!/bin/sh
[ "$1" = quarry ] || exec "$(PATH="$SLOW_PATH" command -v npx)" "$@"
shift
[ -n "$COMMAND_URL" ] || exec node --max-semi-space-size=8 ${join(projectRoot, 'src', 'main.ts')} "$@"
output=$(mktemp)
code=$({ printf '%s\\0' "$PWD" "$output" "$#" "$@"; env -0; printf '\\0'; cat; } | curl -sf --data-binary @- "$COMMAND_URL")
cat "$output"
cat "$output.errors" >&2
rm -f "$output" "$output.errors"
exit "$code"
`;

/** Creates a directory of links to everything in another directory, except for one name. */
function linkAll(from: string, to: string, except: string): void {
  mkdirSync(to);
  for (const name of readdirSync(from)) if (name !== except) symlinkSync(join(from, name), join(to, name));
}

type PageResult = { code: number | null; errors: string; outputs: (string | undefined)[] };

/**
 * Runs the steps of a page one after another in one shell, after `before`. Stops at the first command that fails;
 * steps that did not begin have no output.
 * @param options.quick makes `pick` run without starting Node, and `quarry` too if it has an address for commands;
 * without it, both are those of the page
 */
export async function runSteps(
  directory: string,
  before: Step[],
  steps: Step[],
  { timeoutMs = pageTimeoutMs, quick }: { timeoutMs?: number; quick?: QuickCommands | undefined } = {},
): Promise<PageResult> {
  const outputOf = (at: number) => join(directory, `step-${at}.out`);
  const script = [
    'set -euo pipefail',
    ...before.map((step) => step.text),
    ...steps.map((step, at) => `{ :\n${commandsOf(directory, step, at)}\n} > ${outputOf(at)}`),
  ]
    .join('\n')
    .replace(plainPick, quick === undefined ? strictPick : quick.pick)
    .replace(plainQuarry, quick === undefined ? plainQuarry : quickQuarry);
  const file = join(directory, 'page.sh');
  writeFileSync(file, script);
  const path = `${join(projectRoot, 'node_modules', '.bin')}:${process.env.PATH}`;
  const child = spawn('bash', [file], {
    cwd: directory,
    timeout: timeoutMs,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: quick === undefined ? path : `${join(directory, 'node_modules', quickCommands)}:${path}`,
      SLOW_PATH: path,
      COMMAND_URL: quick?.commandUrl,
      HOME: join(directory, 'data'),
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      // Otherwise, npm asks the network whether a newer npm exists.
      npm_config_update_notifier: 'false',
      npm_config_offline: 'true',
    },
  });
  let errors = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      errors += String(chunk);
    });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  const outputs = steps.map((_, at) => {
    try {
      return readFileSync(outputOf(at), 'utf8');
    } catch {
      return undefined;
    }
  });
  return { code, errors, outputs };
}

/** The pages' own `quarry`, and one that does not start another Node before the command. */
const plainQuarry = 'node "$CLONE/bin/quarry.js"';
const quickQuarry = 'npx quarry';

/** The pages' way to read a member of a response, and a variant that fails if the member is missing. */
const plainPick = 'node -p "JSON.parse(fs.readFileSync(0)).$1"';
const strictPick =
  'node -e "const found = JSON.parse(fs.readFileSync(0)).$1; if (found === undefined) throw new Error(\'no $1\'); console.log(found)"';

/** What replaces the commands of the pages, where not each of them needs a process of its own. */
type QuickCommands = { pick: string; commandUrl?: string };

/** Does what `strictPick` does for `pick`, without starting Node for each member: the pages pick about a hundred. */
export async function startPickServer() {
  const server = createServer(async (request, response) => {
    try {
      const found: unknown = JSON.parse(await text(request));
      const member: unknown = runInNewContext(`found.${request.headers['x-member']}`, { found });
      if (member === undefined) throw new Error('not there');
      response.end(`${format(member)}\n`);
    } catch (error) {
      response.writeHead(422).end(String(error));
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    pick: `curl -sf --data-binary @- -H "x-member: $1" http://127.0.0.1:${port} || { echo "no $1" >&2; return 1; }`,
    async close() {
      server.close();
      await once(server, 'close');
    },
  };
}

/** Starts the process that runs the commands of a shell. */
export async function startCommandProcess() {
  const program = join(projectRoot, 'test', 'support', 'command-process.ts');
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  return {
    commandUrl: `http://127.0.0.1:${String(port).trim()}`,
    async close() {
      child.kill();
      await once(child, 'close');
    },
  };
}

const pageTimeoutMs = 600_000;

/** Strips the types of a program here, because Node would load its compiler for each of them. */
function commandsOf(directory: string, { language, text: shown }: Step, at: number): string {
  if (language === 'sh') return shown;
  if (language === 'python') {
    const program = join(directory, `step-${at}.py`);
    writeFileSync(program, shown);
    return `PYTHONPATH=${pythonModules.join(':')} PYTHONDONTWRITEBYTECODE=1 ${pythonPath()} ${program}`;
  }
  const name = `step-${at}.js`;
  writeFileSync(join(directory, name), stripTypeScriptTypes(shown));
  return `node ${join(directory, name)}`;
}

/** Whether an output matches what the page shows. `…` stands for anything. */
export function matchesShown(output: string, shown: string): boolean {
  const pattern = shown
    .trim()
    .split('…')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('[\\s\\S]*?');
  return new RegExp(`^${pattern}$`).test(output.trim());
}

export function readPage(path: string): Block[] {
  return readBlocks(readProjectFile(path));
}
