import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';

/*
 * Tests end what they start. If their process is killed, another one does so for them: servers of crash tests survive
 * their clients by design, and PostgreSQL survives its server.
 */
const program = fileURLToPath(new URL('reaper.ts', import.meta.url));
let reaper: ChildProcess | undefined;

function tell(what: { started?: number; ended?: number; dataDir?: string }): void {
  if (reaper === undefined) {
    // In a group of its own: a signal to that of the tests does not reach it.
    reaper = spawn(process.execPath, [program], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    reaper.on('error', () => {});
    reaper.stdin?.on('error', () => {});
    reaper.unref();
    (reaper.stdin as Socket | null)?.unref();
  }
  reaper.stdin?.write(`${JSON.stringify(what)}\n`);
}

/** Kills the child if this process ends before it. */
export function endWithThisProcess<Child extends ChildProcess>(child: Child): Child {
  const { pid } = child;
  if (pid === undefined) return child;
  tell({ started: pid });
  child.once('exit', () => tell({ ended: pid }));
  return child;
}

/** Stops the PostgreSQL of this data directory if this process is killed. */
export function stopPostgresWithThisProcess(dataDir: string): void {
  tell({ dataDir });
}
