import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { basicEnvironment } from './command.ts';
import { endWithThisProcess } from './left-behind.ts';
import type { TestServer } from './server.ts';

const workerFile = fileURLToPath(new URL('automation-worker.ts', import.meta.url));

/** Starts a process that runs the jobs of the server's database, and waits until it does. The caller kills it. */
export async function startAutomationWorker(
  { services, dataDir }: TestServer,
  settings: Record<string, string> = {},
): Promise<ChildProcess> {
  const worker = endWithThisProcess(
    spawn(process.execPath, [workerFile, JSON.stringify(services.target)], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...basicEnvironment(),
        ...{ PORT: '0', QUARRY_PARSE_WORKERS: '1' },
        ...{ QUARRY_DATA_DIR: dataDir, QUARRY_SECRET: services.config.secret ?? '' },
        ...settings,
      },
    }),
  );
  await Promise.race([
    once(worker.stdout, 'data'),
    once(worker, 'exit').then(([code]) => assert.fail(`a worker ended with ${code}`)),
  ]);
  return worker;
}
