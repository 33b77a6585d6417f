import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const mainFile = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

export type Ran = { code: number | null; out: string; err: string };

export type RunOptions = {
  /** Settings, on top of nothing but PATH: what the tests' own environment holds must not leak in. */
  env?: Record<string, string>;
  /** Standard input; none unless given, and one that never ends when it is null. */
  input?: string | Uint8Array | null;
  cwd?: string;
};

/** Runs the real program as a process of its own. */
export function startQuarry(args: string[], { env = {}, input, cwd }: RunOptions = {}) {
  const child = spawn(process.execPath, [mainFile, ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(cwd === undefined ? {} : { cwd }),
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk) => {
    out += String(chunk);
  });
  child.stderr.on('data', (chunk) => {
    err += String(chunk);
  });
  child.stdin.on('error', () => {});
  if (input !== null) child.stdin.end(input);
  const ended = new Promise<Ran>((resolve) => child.once('close', (code) => resolve({ code, out, err })));
  return { child, ended, output: () => out, errors: () => err };
}

/** Runs it to its end. */
export function runQuarry(args: string[], options: RunOptions = {}): Promise<Ran> {
  return startQuarry(args, options).ended;
}
