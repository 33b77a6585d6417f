/** The digests of a body that a client sent along, as raw bytes. */
export type ContentDigest = { sha256?: Buffer; sha512?: Buffer };

const digestBytes = { 'sha-256': 32, 'sha-512': 64 } as const;

/**
 * Reads a Content-Digest header (RFC 9530): a dictionary of algorithms, each with a byte sequence between colons
 * (RFC 8941). Algorithms that we do not check are passed over as long as one that we check is there. Undefined for
 * anything else.
 */
export function parseContentDigest(header: string): ContentDigest | undefined {
  const digest: ContentDigest = {};
  for (const member of header.split(',')) {
    const match = /^\s*([a-z0-9*][a-z0-9_.*-]*)=:([A-Za-z0-9+/]*={0,2}):\s*$/.exec(member);
    if (!match) return undefined;
    const [, algorithm, text = ''] = match;
    if (algorithm !== 'sha-256' && algorithm !== 'sha-512') continue;
    const bytes = Buffer.from(text, 'base64');
    if (bytes.length !== digestBytes[algorithm]) return undefined;
    if (algorithm === 'sha-256') digest.sha256 = bytes;
    else digest.sha512 = bytes;
  }
  return digest.sha256 === undefined && digest.sha512 === undefined ? undefined : digest;
}
