import { openSync, writeSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';

/* Takes every free byte of a file system, including bytes freed later: see full-disk.ts. */

const file = openSync(workerData as string, 'w', 0o600);
const blocks = [1024 * 1024, 4_096, 1].map((size) => Buffer.alloc(size));

function fill(): void {
  for (const block of blocks) for (;;) if (!fits(block)) break;
}

function fits(block: Buffer): boolean {
  try {
    return writeSync(file, block) === block.length;
  } catch {
    return false;
  }
}

fill();
setInterval(fill, 2);
parentPort?.postMessage('full');
