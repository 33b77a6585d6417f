import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { signal } from './processes.ts';

/*
 * Ends what a killed process of tests or benchmarks has left running. That process writes what it starts to the input
 * of this program (`left-behind.ts`), which ends with it, however it ends.
 */
const pids = new Set<number>();
const dataDirs = new Set<string>();

for await (const line of createInterface({ input: process.stdin })) {
  const { started, ended, dataDir } = JSON.parse(line) as { started?: number; ended?: number; dataDir?: string };
  if (started !== undefined) pids.add(started);
  if (ended !== undefined) pids.delete(ended);
  if (dataDir !== undefined) dataDirs.add(dataDir);
}

for (const pid of pids) signal(pid, 'SIGKILL');
const left = [...dataDirs].filter((dataDir) => existsSync(dataDir));
if (left.length > 0) {
  const { killEmbeddedPostgres } = await import('../../src/db/embedded.ts');
  // Without the lock of the directory: its server may be a zombie, whose parent was killed.
  for (const dataDir of left) killEmbeddedPostgres(dataDir);
}
