/** Whether a response with this Content-Type may be a web page. */
export function isPageType(contentType: string): boolean {
  const type = mediaTypeOf(contentType);
  return type === 'text/html' || type === 'application/xhtml+xml' || type === '' || type === 'application/octet-stream';
}

/** The media type of a Content-Type header, without its parameters. */
export function mediaTypeOf(contentType: string): string {
  return contentType.split(';')[0]?.trim().toLowerCase() ?? '';
}
