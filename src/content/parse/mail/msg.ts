import { decodeUtf16 } from '../format/utf16.ts';
import type { CompoundFile } from '../office/cfb.ts';
import { parseRtf } from '../office/rtf.ts';
import { decodeText } from '../text/charset.ts';
import { type Attached, failed, type ReadDocument } from '../types.ts';
import { attachmentName, mailDocument } from './mail.ts';

const rtfBytesMax = 64 * 1024 * 1024;

/**
 * Parses an Outlook message, or the one attached to it at `place`. Property streams are named by tag and type ([MS-OXMSG]). Throws
 * ParseError.
 */
export function parseMsg(file: CompoundFile, place = ''): ReadDocument {
  const text = (tag: string, folder = place): string => {
    const wide = file.read(`${folder}__substg1.0_${tag}001F`);
    if (wide) return decodeUtf16(wide).replaceAll('\0', '');
    const narrow = file.read(`${folder}__substg1.0_${tag}001E`);
    return narrow ? decodeText(narrow, 'windows-1252').text.replaceAll('\0', '') : '';
  };
  const html = file.read(`${place}__substg1.0_10130102`);
  const htmlText = html ? decodeText(html).text : text('1013');
  const sender = text('0C1A');
  const address = text('5D01') || text('0C1F');
  const files = attachments(file, place, text);
  const document = mailDocument('msg', {
    subject: text('0037'),
    from: address.includes('@') && address !== sender ? `${sender} <${address}>` : sender || address,
    to: text('0E04'),
    cc: text('0E03'),
    date: sentDate(file, place, text('007D')),
    html: htmlText === '' ? undefined : htmlText,
    text: text('1000'),
    attachments: files.map(({ name }) => name),
  });
  const attached = files.flatMap(({ content }) => content ?? []);
  if (htmlText !== '' || text('1000') !== '') return { ...document, attached };
  const packed = file.read(`${place}__substg1.0_10090102`);
  if (!packed) return { ...document, attached };
  return { ...document, attached, markdown: `${document.markdown}\n${parseRtf(unpackRtf(packed)).markdown}` };
}

type Attachment = { name: string; content: Attached | undefined };

/** The attachments of a message. An attached message is a folder of streams. */
function attachments(file: CompoundFile, place: string, text: (tag: string, folder: string) => string): Attachment[] {
  const found: Attachment[] = [];
  for (const { isStorage, path } of file.entries.values()) {
    if (!isStorage || !isAttachmentOf(place, path)) continue;
    const folder = `${path}/`;
    const shown = text('3707', folder) || text('3704', folder) || text('3001', folder) || 'unnamed';
    found.push({ name: shown, content: contentOf(file, folder, attachmentName(shown), text('370E', folder)) });
  }
  return found;
}

function isAttachmentOf(place: string, path: string): boolean {
  return (
    path.slice(0, place.length).toLowerCase() === place.toLowerCase() &&
    /^__attach_version1\.0_#[0-9a-f]+$/i.test(path.slice(place.length))
  );
}

function contentOf(file: CompoundFile, folder: string, name: string, contentType: string): Attached | undefined {
  const bytes = file.read(`${folder}__substg1.0_37010102`);
  if (bytes) return { name, contentType, bytes, byteLength: bytes.byteLength };
  const inner = `${folder}__substg1.0_3701000D`;
  if (!file.entries.get(inner.toLowerCase())?.isStorage) return undefined;
  return { name, byteLength: file.lengthOf(`${inner}/`), read: () => parseMsg(file, `${inner}/`) };
}

/** The submit time of the fixed properties, else the Date line of the transport headers. */
function sentDate(file: CompoundFile, place: string, headers: string): string | undefined {
  const properties = file.read(`${place}__properties_version1.0`);
  for (let at = place === '' ? 32 : 24; properties && at + 16 <= properties.byteLength; at += 16) {
    const tag = properties.readUInt32LE(at);
    if (tag !== 0x00390040 && tag !== 0x0e060040) continue;
    const ticks = properties.readBigUInt64LE(at + 8);
    const time = Number(ticks / 10_000n - 11_644_473_600_000n);
    if (Math.abs(time) < 8.6e15) return new Date(time).toISOString();
  }
  return /^Date:[ \t]*(.+)$/im.exec(headers)?.[1];
}

const preset =
  '{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx';

/** Compressed RTF ([MS-OXRTFCP]): references into a ring of 4,096 bytes that starts with a known text. */
function unpackRtf(packed: Buffer): Buffer {
  if (packed.byteLength < 16) throw failed('The message is damaged: its text is truncated.');
  const size = Math.min(rtfBytesMax, packed.readUInt32LE(4));
  if (packed.readUInt32LE(8) === 0x414c454d) return packed.subarray(16, 16 + size);
  const ring = Buffer.alloc(4096, 0x20);
  ring.write(preset, 'latin1');
  let write = preset.length;
  const out: number[] = [];
  let at = 16;
  while (at < packed.byteLength && out.length < size) {
    const control = packed.readUInt8(at);
    at += 1;
    for (let bit = 0; bit < 8 && at < packed.byteLength && out.length < size; bit++) {
      if ((control & (1 << bit)) === 0) {
        const byte = packed.readUInt8(at);
        at += 1;
        out.push(byte);
        ring[write] = byte;
        write = (write + 1) & 4095;
        continue;
      }
      if (at + 1 >= packed.byteLength) return Buffer.from(out);
      const token = packed.readUInt16BE(at);
      at += 2;
      const offset = token >>> 4;
      if (offset === write) return Buffer.from(out);
      for (let step = 0; step < (token & 15) + 2; step++) {
        const byte = ring[(offset + step) & 4095] ?? 0;
        out.push(byte);
        ring[write] = byte;
        write = (write + 1) & 4095;
      }
    }
  }
  return Buffer.from(out);
}
