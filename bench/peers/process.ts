import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { endWithThisProcess } from '../../test/support/left-behind.ts';

/** Starts a server with a new directory and free ports, and waits until `isReady`. */
export async function startProcess(
  command: string,
  argumentsFor: (directory: string, ports: [number, number]) => string[],
  isReady: (port: number) => Promise<boolean>,
): Promise<{ pid: number; port: number; stop(): Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), 'quarry-bench-peer-'));
  const ports: [number, number] = [await freePort(), await freePort()];
  const child = endWithThisProcess(spawn(command, argumentsFor(directory, ports), { stdio: 'ignore', cwd: directory }));
  process.once('exit', () => child.kill());
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async () => {
    child.kill();
    await ended;
    rmSync(directory, { recursive: true, force: true });
  };
  for (let tries = 0; !(await isReady(ports[0]).catch(() => false)); tries++) {
    if (tries >= 200 || hasEnded(child)) {
      await stop();
      throw new Error(`${command} did not start.`);
    }
    await setTimeout(50);
  }
  return { pid: child.pid ?? 0, port: ports[0], stop };
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}
