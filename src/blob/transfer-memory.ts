import type { Readable } from 'node:stream';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/*
 * Every chunk that passes through is memory outside V8's heap. V8 answers its growth by marking the whole heap, every
 * 30 MB or so: 80 ms of work for a heap of 35 MB, so that a transfer spent most of its time there. The chunks are dead
 * long before, and a collection of the young generation frees them in 0.4 ms. Asking for one in time made transfers
 * three times as fast (bench/files.ts).
 */

const growthBytes = 24 * 1024 * 1024;
const lookMs = 10;

let transfers = 0;
let timer: NodeJS.Timeout | undefined;
let bytesBefore = 0;

/** Call when a transfer begins, and what it answers when it ends. */
export function watchTransferMemory(): () => void {
  transfers += 1;
  if (timer === undefined && collectYoung !== undefined) {
    bytesBefore = getHeapStatistics().external_memory;
    timer = setInterval(collectIfGrown, lookMs).unref();
  }
  let ended = false;
  return () => {
    if (ended) return;
    ended = true;
    transfers -= 1;
    if (transfers > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** The same for a stream that is read to its end or destroyed. */
export function watchStreamMemory<T extends Readable>(stream: T): T {
  stream.once('close', watchTransferMemory());
  return stream;
}

function collectIfGrown(): void {
  const bytes = getHeapStatistics().external_memory;
  if (bytes < bytesBefore) bytesBefore = bytes;
  if (bytes - bytesBefore < growthBytes) return;
  collectYoung?.();
  bytesBefore = getHeapStatistics().external_memory;
}

/** Undefined where V8 does not offer it: then transfers are only slower. */
const collectYoung = (() => {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('globalThis.gc');
  setFlagsFromString('--no-expose-gc');
  return typeof collect === 'function' ? () => void collect({ type: 'minor' }) : undefined;
})();
