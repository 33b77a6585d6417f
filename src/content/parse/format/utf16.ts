/**
 * The text of UTF-16 in little-endian order, from byte `start` to before `end`; half a character at the end is left out.
 * Node 24.21 writes one byte beyond its memory when it decodes an odd number of bytes at an odd address.
 */
export function decodeUtf16(bytes: Buffer, start = 0, end = bytes.byteLength): string {
  const part = bytes.subarray(start, end);
  return part.toString('utf16le', 0, part.byteLength & ~1);
}
