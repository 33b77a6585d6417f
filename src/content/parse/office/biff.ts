import { decodeUtf16 } from '../format/utf16.ts';
import { decodeText } from '../text/charset.ts';
import type { NumberFormat } from './number-format.ts';

/** A record of an old workbook, and where it is in the stream. */
export type Record = { type: number; body: Buffer; at: number };
export type Sheet = { name: string; offset: number; hidden: boolean };
/** What the sheets of a workbook share. `wide`: strings are in BIFF8. */
export type Book = { sheets: Sheet[]; strings: string[]; formats: NumberFormat[]; from1904: boolean; wide: boolean };

/** A BIFF8 string with a length of one or two bytes. */
export function wideString(body: Buffer, at: number, lengthBytes: 1 | 2): string {
  const length = lengthBytes === 1 ? body.readUInt8(at) : body.readUInt16LE(at);
  const flags = body.readUInt8(at + lengthBytes);
  let start = at + lengthBytes + 1;
  if (flags & 8) start += 2;
  if (flags & 4) start += 4;
  return flags & 1 ? decodeUtf16(body, start, start + length * 2) : body.toString('latin1', start, start + length);
}

/** A string of BIFF5, in the usual code page. */
export function narrow(bytes: Buffer): string {
  return decodeText(bytes, 'windows-1252').text;
}

/** An RK value: an integer or the upper half of a double, perhaps times one hundred. */
export function compactNumber(value: number): number {
  let number: number;
  if (value & 2) number = value >> 2;
  else {
    const bytes = Buffer.alloc(8);
    bytes.writeInt32LE(value & ~3, 4);
    number = bytes.readDoubleLE(0);
  }
  return value & 1 ? number / 100 : number;
}

export function errorText(code: number): string {
  return (
    { 0: '#NULL!', 7: '#DIV/0!', 15: '#VALUE!', 23: '#REF!', 29: '#NAME?', 36: '#NUM!', 42: '#N/A' }[code] ?? '#ERROR'
  );
}
