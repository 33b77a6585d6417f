import { compareLines } from '../../compare-lines.ts';
import { makePicture, type PictureRequest } from '../../picture/picture.ts';
import { areCodecsWorn } from '../../picture/wear.ts';
import { type PrepareInput, prepareText } from '../../prepare.ts';
import { detectKind } from '../detect.ts';
import { looksLikeHtml } from '../html/detect-html.ts';
import { parsePage } from '../html/page.ts';
import { imageSize } from '../image-size.ts';
import { AttachmentReader, type PartEvent, type ResumePoint } from '../mail/attachments.ts';
import { parseDocument, readDocument } from '../parse.ts';
import { locateTexts, type WantedText } from '../pdf/locate.ts';
import { loadPdfium } from '../pdf/pdfium.ts';
import { Reading, type ReadingTerms, Unfinished } from '../reading.ts';
import { samplePdf } from '../sample-pdf.ts';
import { type ParseInput, requireTextSize } from '../types.ts';
import { bodyText } from '../web/body-text.ts';
import { decodeBody } from '../web/decode.ts';
import { parseFeed } from '../web/feed.ts';
import { parseRobots } from '../web/robots.ts';
import { parseSitemap } from '../web/sitemap.ts';
import { serve, type Task } from './worker-loop.ts';

/** The tasks of a parser process. To add a task, add a line here and a name to the pool's TaskName. */
const tasks: Record<string, Task> = {
  parse: async (bytes, fields, onProgress, emit) => {
    const { terms, resume, ...input } = fields as Omit<ParseInput, 'bytes'> & {
      terms?: ReadingTerms;
      resume?: ResumePoint;
    };
    const attachments = new AttachmentReader((event) => emit(...withoutText(event)), resume);
    try {
      const reading = new Reading(terms, onProgress);
      const { markdown, ...described } = await readDocument({ ...input, bytes }, reading, attachments);
      if (attachments.isUsed) return { value: { apart: true } };
      requireTextSize(markdown.length);
      return { value: described, blobs: [new TextEncoder().encode(markdown)] };
    } catch (error) {
      if (error instanceof Unfinished) return { value: { unfinished: error.why } };
      throw error;
    }
  },
  kind: async (bytes, fields) => ({ value: await detectKind({ ...(fields as Omit<ParseInput, 'bytes'>), bytes }) }),
  page: (bytes, fields) => {
    const contentType = String(fields.contentType ?? '');
    const isHtml = looksLikeHtml(contentType, bytes);
    return { value: isHtml ? parsePage({ bytes, contentType, url: String(fields.url) }) : null };
  },
  robots: (bytes, fields) => ({ value: parseRobots(bytes, String(fields.agent)) }),
  sitemap: async (bytes, fields) => ({ value: await parseSitemap(bytes, Number(fields.entriesMax)) }),
  feed: (bytes, fields) => ({ value: parseFeed(bytes, String(fields.url), fields.isCut === true) }),
  body: (bytes, fields) => ({ value: bodyText(bytes, String(fields.contentType ?? '')) }),
  prepare: (bytes, fields) => {
    const { bundles, vectors, ...value } = prepareText({
      ...(fields as Omit<PrepareInput, 'text'>),
      text: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(),
    });
    const hashes = vectors.map(([hash]) => hash);
    const bundleChunks = bundles.map(({ chunkCount }) => chunkCount);
    return {
      value: { ...value, hashes, bundleChunks },
      blobs: [
        ...bundles.map(({ content }) => content),
        Buffer.concat(vectors.map(([, { vector }]) => vector)),
        Buffer.concat(vectors.map(([, { code }]) => code)),
      ],
    };
  },
  picture: async (bytes, fields) => {
    const { bytes: small, ...value } = await makePicture(bytes, fields as PictureRequest);
    return { value, blobs: [small] };
  },
  'image-size': (bytes) => ({ value: imageSize(bytes) ?? null }),
  // The bytes are two texts, the second one from `split` on.
  compare: (bytes, fields) => {
    const decode = (part: Uint8Array) => new TextDecoder().decode(part);
    const split = Number(fields.split);
    return { value: compareLines(decode(bytes.subarray(0, split)), decode(bytes.subarray(split))) };
  },
  locate: async (bytes, fields) => ({ value: await locateTexts(bytes, fields.wanted as WantedText[]) }),
};

/** The text of a document is sent as bytes. */
function withoutText(event: PartEvent): [PartEvent, Uint8Array[]] {
  if (event.what !== 'read') return [event, []];
  const { document } = event;
  return [{ ...event, document: { ...document, markdown: '' } }, [new TextEncoder().encode(document.markdown)]];
}

/** A fetched body arrives as it was sent. Its Content-Encoding is decoded here. */
function decodeTask(task: Task): Task {
  return async (bytes, fields, onProgress, emit) => {
    const { contentEncoding, decodedBytesMax, cutBody } = fields;
    if (contentEncoding === undefined) return task(bytes, fields, onProgress, emit);
    const options = {
      contentEncoding: String(contentEncoding),
      bytesMax: Number(decodedBytesMax),
      cut: cutBody === true,
    };
    return task(await decodeBody(bytes, options), fields, onProgress, emit);
  };
}

const warmUpRounds = 12;
let rounds = 0;

/** Reads a small sample PDF: in a cold process, the first document takes five times as long as the tenth. */
async function warmUp(): Promise<boolean> {
  rounds += 1;
  await parseDocument({ bytes: samplePdf() });
  return rounds < warmUpRounds;
}

await loadPdfium();
serve(Object.fromEntries(Object.entries(tasks).map(([name, task]) => [name, decodeTask(task)])), warmUp, areCodecsWorn);
