/** The page without what is never read: styles, the contents of scripts, and the paths of drawings. */
export function compactPage(html: string): string {
  return html
    .replaceAll(/<style\b[^>]*>[\s\S]*?<\/style>/gi, '')
    .replaceAll(/(<script\b[^>]*>)[\s\S]*?(<\/script>)/gi, (all, open: string, close: string) =>
      /type=["']?(?:math|application\/ld\+json)/.test(open) ? all : open + close,
    )
    .replaceAll(/(<svg\b[^>]*>)[\s\S]*?(<\/svg>)/gi, '$1$2')
    .replaceAll(/<link\b[^>]*rel="(?:modulepreload|preload|prefetch|preconnect)"[^>]*>/gi, '');
}
