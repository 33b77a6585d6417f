import type { Readable } from 'node:stream';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/*
 * For transfers with S3, whose client keeps chunks for a time that nothing tells; others free each chunk after its use
 * (single-use-bytes.ts). Every chunk is memory outside V8's heap. As this memory grows, V8 marks the whole heap about
 * every 30 MB. A minor collection that starts earlier frees the chunks, but V8 often marks the whole heap instead.
 */

const growthBytes = 24 * 1024 * 1024;
const lookMs = 10;

let transfers = 0;
let timer: NodeJS.Timeout | undefined;
let bytesBefore = 0;

/** Limits the memory of transfers. Call it when a transfer begins, and the returned function when the transfer ends. */
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

/** Does the same for a stream, until it is read or destroyed. */
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

/** Undefined where V8 does not expose it: transfers are then slower. */
const collectYoung = (() => {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('globalThis.gc');
  setFlagsFromString('--no-expose-gc');
  return typeof collect === 'function' ? () => void collect({ type: 'minor' }) : undefined;
})();
