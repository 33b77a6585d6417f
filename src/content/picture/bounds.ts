import { imageSize } from '../parse/image-size.ts';
import { failed } from '../parse/types.ts';

/**
 * Returns the file to decode: for a GIF only its first frame, because decoders reserve memory for every frame, and
 * each frame states its own size. Throws ParseError for a damaged picture or one with too many pixels.
 */
export function boundPicture(bytes: Uint8Array, pixelsMax: number): Uint8Array {
  const size = imageSize(bytes);
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isGif = /^GIF8[79]a/.test(file.toString('latin1', 0, 6));
  const frame = size && (isGif ? findFirstFrame(file) : { ...size, bytes });
  if (!size || !frame) throw failed('The picture is damaged or truncated.');
  if (Math.max(size.width * size.height, frame.width * frame.height) > pixelsMax)
    throw failed(`The picture has more than ${pixelsMax / 1_000_000} million pixels.`);
  return frame.bytes;
}

type Frame = { width: number; height: number; bytes: Uint8Array };

const extension = 0x21;
const imageDescriptor = 0x2c;
const trailer = Buffer.from([0x3b]);

/** The first frame of a GIF: its size, and the file without everything after the frame. */
function findFirstFrame(gif: Buffer): Frame | undefined {
  let at = 13 + paletteBytes(gif[10]);
  while (gif[at] === extension) at = endOfBlocks(gif, at + 2);
  if (gif[at] !== imageDescriptor || at + 10 > gif.length) return undefined;
  const end = endOfBlocks(gif, at + 11 + paletteBytes(gif[at + 9]));
  const bytes = Buffer.concat([gif.subarray(0, end), trailer]);
  return { width: gif.readUInt16LE(at + 5), height: gif.readUInt16LE(at + 7), bytes };
}

function paletteBytes(flags = 0): number {
  return flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0;
}

/** The position after a chain of blocks, each preceded by its length. The last block is empty. */
function endOfBlocks(gif: Buffer, start: number): number {
  let at = start;
  for (let length = gif[at]; length !== undefined && length > 0; length = gif[at]) at += length + 1;
  return at + 1;
}
