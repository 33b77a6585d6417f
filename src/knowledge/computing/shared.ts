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
  if (bytes < scannedBytesMin || bytes > scannedBytesMax) {
    const larger = new Uint8Array(new SharedArrayBuffer(bytes));
    larger.set(codes.bytes);
    return { bytes: larger };
  }
  const memory = codes.memory ?? createSharedMemory(bytes);
  const missing = scannedFrom + bytes - memory.buffer.byteLength;
  if (missing > 0) memory.grow(Math.ceil(missing / pageBytes));
  const larger = new Uint8Array(memory.buffer, scannedFrom, bytes);
  if (codes.memory === undefined) larger.set(codes.bytes);
  return { bytes: larger, memory };
}
