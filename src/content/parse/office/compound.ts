import { parseMsg } from '../mail/msg.ts';
import { failed, type ReadDocument, unsupported } from '../types.ts';
import { CompoundFile } from './cfb.ts';
import { parseDoc } from './doc.ts';
import { parsePpt } from './ppt.ts';
import { parseXls } from './xls.ts';

/** The document in a compound file: old Word, Excel or PowerPoint, an Outlook message, or an encrypted new document. Throws ParseError. */
export function parseCompound(bytes: Uint8Array): ReadDocument {
  const file = new CompoundFile(bytes);
  if (file.entries.size === 0) throw failed('The file is truncated or damaged: its container is empty.');
  const has = (path: string): boolean => file.entries.has(path.toLowerCase());
  if (has('EncryptedPackage') || has('EncryptionInfo')) throw unsupported('The document is protected by a password.');
  try {
    if (has('WordDocument')) return parseDoc(file);
    if (has('Workbook') || has('Book')) return parseXls(file);
    if (has('PowerPoint Document')) return parsePpt(file);
    if (has('__properties_version1.0')) return parseMsg(file);
  } catch (error) {
    if (error instanceof RangeError) throw failed('The file is damaged or truncated.', error);
    throw error;
  }
  throw unsupported(
    'The file is in an old Office container that contains no document, workbook, presentation or message.',
  );
}
