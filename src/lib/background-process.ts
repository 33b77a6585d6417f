import type { ChildProcess } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { constants, getPriority, setPriority } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';

/**
 * Starts a child process that has the processors only when the server and its database need them less. Linux may divide
 * the processors among sessions first (`autogroup` in sched(7)), and a priority then counts only within its session:
 * PostgreSQL's processes, each in its own, would share the processors equally with a child of the server. So the child
 * gets a session, and the session a lower priority too.
 * @param start starts the process with these options
 */
export function startInBackground<Child extends ChildProcess>(start: (options: { detached: boolean }) => Child): Child {
  // Elsewhere, a session would change nothing, and on Windows it would open a window.
  const child = start({ detached: process.platform === 'linux' });
  // Loading its program should not delay the server either.
  if (child.pid !== undefined) lowerPriority(child.pid);
  return child;
}

function lowerPriority(pid: number): void {
  const priority = Math.min(constants.priority.PRIORITY_LOW, getPriority() + constants.priority.PRIORITY_BELOW_NORMAL);
  try {
    setPriority(pid, priority);
  } catch {
    // Not permitted, or it has ended: it runs at normal priority.
  }
  const ofSession = Math.min(constants.priority.PRIORITY_LOW, getPriority() + sessionDifference);
  if (process.platform === 'linux') void lowerSession(pid, ofSession);
}

/**
 * A session gets a fifth of what another one gets of the same processor: enough to read documents beside other programs
 * of the machine, and little enough not to delay the database. With the difference of the processes, it would be a ninth.
 */
const sessionDifference = 7;

const sessionAttempts = 20;
const sessionRetryMs = 100;
/**
 * The kernel accepts ten such changes of ordinary users a second, and none while a program that will run with other
 * rights is being started.
 */
const passingErrors = new Set(['EAGAIN', 'EACCES', 'EPERM']);

async function lowerSession(pid: number, priority: number): Promise<void> {
  for (let attempt = 1; attempt <= sessionAttempts; attempt++)
    try {
      return await writeFile(`/proc/${pid}/autogroup`, String(priority), { flag: 'r+' });
    } catch (error) {
      // Without the file, the system does not divide by session, or the child has ended.
      if (!passingErrors.has(String((error as NodeJS.ErrnoException).code))) return;
      await wait(sessionRetryMs, undefined, { ref: false });
    }
}
