import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

const rangeFile = '/proc/sys/net/ipv4/ip_local_port_range';
const lowest = 10_000;
const width = 2_000;

/**
 * A port for a program that cannot choose one itself. It is below those that the system gives to others, so that none
 * of them gets it before the program listens.
 */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(lowest, Math.max(lowest + width, firstGiven()));
    if (await isFree(port)) return port;
  }
}

/** The first port that the system gives to connections and to servers that name none. */
function firstGiven(): number {
  try {
    return Number(readFileSync(rangeFile, 'utf8').split(/\s+/)[0]);
  } catch {
    return 32_768;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
