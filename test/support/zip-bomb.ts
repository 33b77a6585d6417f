import { constants, crc32, deflateRawSync } from 'node:zlib';
import { Zip, ZipPassThrough } from 'fflate';

/**
 * A ZIP with one additional entry of this many MiB of spaces. The first MiB is compressed, and its bytes are
 * repeated.
 */
export function zipBomb(entries: Record<string, Uint8Array>, filename: string, mib: number): Uint8Array {
  const chunks: Uint8Array[] = [];
  const archive = new Zip((error, chunk) => {
    if (error) throw error;
    chunks.push(chunk);
  });
  for (const [name, bytes] of Object.entries(entries)) {
    const entry = new ZipPassThrough(name);
    archive.add(entry);
    entry.push(bytes, true);
  }
  const spaces = Buffer.alloc(1024 * 1024, ' ');
  const block = deflateRawSync(spaces, { finishFlush: constants.Z_FULL_FLUSH });
  let crc = 0;
  for (let at = 0; at < mib; at++) crc = crc32(spaces, crc);
  const bomb = { filename, compression: 8, size: mib * spaces.length, crc };
  const entry: typeof bomb & Pick<ZipPassThrough, 'ondata'> = { ...bomb, ondata: () => {} };
  archive.add(entry);
  for (let at = 0; at < mib; at++) entry.ondata(null, block, false);
  entry.ondata(null, deflateRawSync(Buffer.alloc(0)), true);
  archive.end();
  return Buffer.concat(chunks);
}
