import { parseDictionary } from 'structured-headers';
import { defined } from '../../lib/defined.ts';

/** The digests that a client sent with a body, as raw bytes. */
type ContentDigest = { sha256?: Buffer; sha512?: Buffer };

const digestBytes = { 'sha-256': 32, 'sha-512': 64 } as const;

/**
 * Parses a Content-Digest header (RFC 9530): a dictionary of algorithms, each with a byte sequence. Ignores unknown
 * algorithms if a known one is present. Returns undefined for any other header.
 */
export function parseContentDigest(header: string): ContentDigest | undefined {
  const members = readDictionary(header);
  const sha256 = members?.get('sha-256');
  const sha512 = members?.get('sha-512');
  if (members === undefined || (sha256 === undefined && sha512 === undefined)) return undefined;
  if (sha256 !== undefined && sha256.length !== digestBytes['sha-256']) return undefined;
  if (sha512 !== undefined && sha512.length !== digestBytes['sha-512']) return undefined;
  return { ...defined({ sha256, sha512 }) };
}

/** The members of a structured dictionary (RFC 9651), or undefined unless all of them are byte sequences. */
function readDictionary(header: string): Map<string, Buffer> | undefined {
  try {
    const members = new Map<string, Buffer>();
    for (const [name, [value]] of parseDictionary(header)) {
      if (!(value instanceof ArrayBuffer)) return undefined;
      members.set(name, Buffer.from(value));
    }
    return members;
  } catch {
    return undefined;
  }
}
