import type { Attached, ParsedDocument, ParsedPart, ParseInput } from '../types.ts';
import { ParseError, parseLimits } from '../types.ts';

/** What all attachments of one mail, and of the mails attached to it, may still use. */
type PartsLeft = { files: number; bytes: number; depth: number };

export function partsLeft(): PartsLeft {
  const { attachmentsMax, attachmentBytesMax, attachmentDepthMax } = parseLimits;
  return { files: attachmentsMax, bytes: attachmentBytesMax, depth: attachmentDepthMax };
}

/** Reads the attachments of a mail. One that cannot be read has an error; what is not a ParseError ends the mail. */
export async function readParts(
  attached: readonly Attached[],
  left: PartsLeft,
  parse: (input: ParseInput) => Promise<ParsedDocument>,
): Promise<{ parts: ParsedPart[]; truncated: string[] }> {
  const parts: ParsedPart[] = [];
  let leftOut = 0;
  for (const { name, contentType, bytes } of attached) {
    if (left.files === 0 || bytes.byteLength > left.bytes) {
      leftOut += 1;
      continue;
    }
    left.files -= 1;
    left.bytes -= bytes.byteLength;
    if (left.depth < 0) {
      parts.push({ name, error: { code: 'extraction_failed', message: 'The attachment is nested too deeply.' } });
      continue;
    }
    try {
      const { parts: inner = [], ...document } = await parse({ bytes, contentType, filename: name });
      parts.push({ name, document }, ...inner.map((part) => ({ ...part, name: `${name}/${part.name}` })));
    } catch (error) {
      if (!(error instanceof ParseError)) throw error;
      parts.push({ name, error: { code: error.code, message: error.message } });
    }
  }
  return {
    parts,
    truncated: leftOut === 0 ? [] : [`${leftOut} attachments: there are too many, or they are too large`],
  };
}
