/**
 * Decodes canonical base64url: no padding, no other characters, no spare bits; otherwise returns undefined. Used for
 * every proof, so that each proof has exactly one valid text.
 */
export function readBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}
