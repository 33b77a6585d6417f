import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const mainFile = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

const noProfile = fileURLToPath(new URL('no-profile.json', import.meta.url));

export type CommandResult = { code: number | null; stdout: string; stderr: string };

export type CommandOptions = {
  /** Settings, in addition to the basic environment. */
  env?: Record<string, string>;
  /** Standard input; none unless given, and one that never ends when it is null. */
  input?: string | Uint8Array | null;
  cwd?: string;
  /** Kills the process, as a crash would. */
  signal?: AbortSignal;
};

/** What every process needs. Nothing else of the tests' own environment may leak into one. */
export function basicEnvironment() {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE };
}

/** Starts one `quarry` command as a process of its own. */
export function startQuarry(args: string[], { env = {}, input, cwd, signal }: CommandOptions = {}) {
  const child = spawn(process.execPath, [mainFile, ...args], {
    // The person who runs the tests may be logged in somewhere.
    env: { ...basicEnvironment(), QUARRY_PROFILE: noProfile, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(cwd === undefined ? {} : { cwd }),
  });
  signal?.addEventListener('abort', () => child.kill('SIGKILL'));
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += String(chunk);
  });
  child.stderr.on('data', (chunk) => {
    stderr += String(chunk);
  });
  child.stdin.on('error', () => {});
  if (input !== null) child.stdin.end(input);
  const ended = new Promise<CommandResult>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
  return { child, ended, output: () => stdout, errors: () => stderr };
}

/** Runs one command to its end. */
export function runQuarry(args: string[], options: CommandOptions = {}): Promise<CommandResult> {
  return startQuarry(args, options).ended;
}
