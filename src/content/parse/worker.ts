import { imageSize } from './image-size.ts';
import { parsePage } from './page.ts';
import { parseDocument } from './parse.ts';
import { loadPdfium } from './pdfium.ts';
import { failed, type ParseInput, parseLimits } from './types.ts';
import { serve, type Task } from './worker-loop.ts';

/** The program of a parser process. A new task is a new line here and a name in the pool's TaskName. */
const tasks: Record<string, Task> = {
  parse: async (bytes, fields) => {
    const { markdown, scans, ...value } = await parseDocument(
      { ...(fields as Omit<ParseInput, 'bytes'>), bytes },
      fields.ocr === true,
    );
    if (markdown.length > parseLimits.markdownCharactersMax)
      throw failed('The document gives more than 32 million characters of text.');
    const pages = scans?.map(({ image: _image, ...page }) => page);
    return {
      value: pages === undefined ? value : { ...value, scans: pages },
      blobs: [new TextEncoder().encode(markdown), ...(scans ?? []).map((scan) => scan.image)],
    };
  },
  page: (bytes, fields) => ({
    value: parsePage({ bytes, contentType: String(fields.contentType ?? ''), url: String(fields.url) }),
  }),
  'image-size': (bytes) => ({ value: imageSize(bytes) ?? null }),
};

await loadPdfium();
serve(tasks);
