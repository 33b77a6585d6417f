/**
 * Decodes canonical base64url; undefined for padding, other characters or unused bits that are set. All signatures and
 * tokens are read with it, so that each has exactly one valid text.
 */
export function readBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}
