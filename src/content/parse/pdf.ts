import { escapeText } from './markdown.ts';
import type { ParsedWithScans } from './parse.ts';
import { openPdf } from './pdfium.ts';

/** A PDF. Throws ParseError with the plain reason: encrypted, cut short, only pictures. */
export async function parsePdf(bytes: Uint8Array, _ocr: boolean): Promise<ParsedWithScans> {
  const document = await openPdf(bytes);
  try {
    const pages: string[] = [];
    for (let index = 0; index < document.pageCount; index++) {
      const text = document.withPage(index, (page) => page.text());
      pages.push(escapeText(text.replaceAll('\r\n', '\n').replaceAll('\ufffe\n', '').replaceAll('\ufffe', '').trim()));
    }
    return {
      kind: 'pdf',
      pages: document.pageCount,
      markdown: pages.join('\n\n<!-- page break -->\n\n'),
      ...document.metadata(),
    };
  } finally {
    document.close();
  }
}
