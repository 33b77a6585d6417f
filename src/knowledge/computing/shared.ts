import { createSharedMemory, pageBytes, type ScannedBytes, scannedFrom } from '../../content/wide-scan.ts';

/** From this size on, codes are in memory that WebAssembly reads where they are. It takes at least 1 MiB. */
const scannedBytesMin = 4 * 1024 * 1024;
const scannedBytesMax = 4 * 1024 ** 3 - scannedFrom;

/** The same bytes where other threads can read them. */
export function shareBytes(bytes: Uint8Array): Uint8Array {
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  return shared;
}

/**
 * Codes with room for at least this many bytes. Those of a shared memory stay where they are, so that earlier views of
 * it stay valid and see what is added.
 */
export function withRoomFor(codes: ScannedBytes, bytes: number): ScannedBytes {
  if (codes.bytes.byteLength >= bytes) return codes;
  const memory = bytes < scannedBytesMin || bytes > scannedBytesMax ? undefined : scannedMemory(codes, bytes);
  if (memory === undefined) {
    const larger = new Uint8Array(new SharedArrayBuffer(bytes));
    larger.set(codes.bytes);
    return { bytes: larger };
  }
  const larger = new Uint8Array(memory.buffer, scannedFrom, bytes);
  if (codes.memory === undefined) larger.set(codes.bytes);
  return { bytes: larger, memory };
}

/**
 * The memory of these codes, or a new one, with room for so many bytes. Undefined if the process may not have the
 * addresses for it, of which each takes 8 GiB: scans then copy the codes block by block.
 */
function scannedMemory({ memory }: ScannedBytes, bytes: number): ScannedBytes['memory'] {
  try {
    if (memory === undefined) return createSharedMemory(bytes);
    const missing = scannedFrom + bytes - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / pageBytes));
    return memory;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
