import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { ThreadCommand } from './command-thread.ts';

const mainFile = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

const noProfile = fileURLToPath(new URL('no-profile.json', import.meta.url));

export type CommandResult = { code: number | null; stdout: string; stderr: string };

type CommandOptions = {
  /** Settings, in addition to the basic environment. */
  env?: Record<string, string>;
  /** Standard input: none by default; null is an input that never ends. */
  input?: string | Uint8Array | null;
  cwd?: string;
  /** Kills the process, as a crash would. */
  signal?: AbortSignal;
};

/** The environment that every process needs. Nothing else from the tests' own environment may leak into it. */
export function basicEnvironment() {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE };
}

/** Prevents a login of the person who runs the tests from taking effect. */
const environmentOf = (env: Record<string, string>) => ({ ...basicEnvironment(), QUARRY_PROFILE: noProfile, ...env });

/** Starts one `quarry` command in a separate process. */
export function startQuarry(args: string[], { env = {}, input, cwd, signal }: CommandOptions = {}) {
  const child = spawn(process.execPath, [mainFile, ...args], {
    env: environmentOf(env),
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

export type CallOptions = {
  env?: Record<string, string>;
  input?: string | Uint8Array;
  /** Whether a person types the input. */
  isTerminal?: boolean;
};

let thread: Worker | undefined;
let lastCall: Promise<unknown> = Promise.resolve();

/**
 * Runs one command to its end in a thread that loads the code once for all commands of a test file: a separate
 * process costs ten times as much. Commands that depend on the process, for example on signals or the working
 * directory, need `runQuarry`.
 */
export function callQuarry(
  args: string[],
  { env = {}, input = '', isTerminal = false }: CallOptions = {},
): Promise<CommandResult> {
  const call = lastCall.then(() => callThread({ args, env: environmentOf(env), input, isTerminal }));
  lastCall = call.catch(() => {});
  return call;
}

async function callThread(command: ThreadCommand): Promise<CommandResult> {
  thread ??= new Worker(new URL('command-thread.ts', import.meta.url));
  const { promise, resolve, reject } = Promise.withResolvers<CommandResult>();
  const ended = () => {
    thread = undefined;
    reject(new Error(`The thread ended while it ran: quarry ${command.args.join(' ')}`));
  };
  // The thread keeps the test's process alive only while a command runs.
  thread.ref();
  thread.once('message', resolve).once('error', reject).once('exit', ended);
  thread.postMessage(command);
  try {
    return await promise;
  } finally {
    thread.removeListener('error', reject).removeListener('exit', ended);
    thread.unref();
  }
}
