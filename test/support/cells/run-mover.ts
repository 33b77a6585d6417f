import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { MoveTask } from './mover.ts';

/** Runs a moving process until it ends or kills itself. Returns the last step if it has ended. */
export async function runMover(task: MoveTask): Promise<string | undefined> {
  const file = fileURLToPath(new URL('./mover.ts', import.meta.url));
  const child = spawn(process.execPath, [file], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, MOVE_TASK: JSON.stringify(task) },
  });
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) =>
    child.once('close', (...ended) => resolve(ended)),
  );
  assert.ok(code === 0 || signal === 'SIGKILL', `the move ended with ${code ?? signal}`);
  return code === 0 ? output : undefined;
}
