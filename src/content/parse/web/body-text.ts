/**
 * Decodes the text of a response by its byte order mark, otherwise by the charset of its Content-Type, otherwise as
 * UTF-8.
 */
export function bodyText(bytes: Uint8Array, contentType: string): string {
  const marked =
    bytes[0] === 0xfe && bytes[1] === 0xff
      ? 'utf-16be'
      : bytes[0] === 0xff && bytes[1] === 0xfe
        ? 'utf-16le'
        : undefined;
  const label = marked ?? /charset\s*=\s*["']?([\w:.-]+)/i.exec(contentType)?.[1] ?? 'utf-8';
  try {
    return new TextDecoder(label).decode(bytes);
  } catch {
    // The charset is unknown.
    return new TextDecoder().decode(bytes);
  }
}
