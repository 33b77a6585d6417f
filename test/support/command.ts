import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export type CommandResult = { code: number | null; stdout: string; stderr: string };

/**
 * Runs one `quarry` command as a process of its own, to its end.
 * @param env settings, on top of nothing but PATH and HOME.
 * @param signal ends it at once, as a crash would.
 */
export function runQuarry(args: string[], env: Record<string, string>, signal?: AbortSignal): Promise<CommandResult> {
  const child = spawn(process.execPath, [mainFile, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
  });
  signal?.addEventListener('abort', () => child.kill('SIGKILL'));
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}

const mainFile = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
