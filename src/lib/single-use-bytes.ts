/*
 * V8 counts the memory of buffers towards its heap until it collects them, and marks the whole heap for every 20 to
 * 30 MB of it: most of the time of a transfer (bench/files.ts). Code that knows the last use of bytes frees them there.
 */

const singleUse = new WeakSet<Uint8Array>();

/** Frees bytes that nothing reads again, unless they share their memory with others. */
export function freeBytes({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}

/** Lets the code that uses these bytes next free them. */
export function markSingleUse(bytes: Uint8Array): void {
  singleUse.add(bytes);
}

/** Frees bytes after their use, if they are marked. Others may be used again. */
export function freeSingleUse(bytes: Uint8Array): void {
  if (singleUse.delete(bytes)) freeBytes(bytes);
}

export function isFreed({ buffer }: Uint8Array): boolean {
  return buffer instanceof ArrayBuffer && buffer.detached;
}
