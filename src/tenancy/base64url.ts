/**
 * The bytes of base64url text; undefined unless it is the one spelling that encoding gives: no padding, no stray
 * characters, no spare bits. Whatever proves something is read by this, so that no second text proves it too.
 */
export function readBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}
