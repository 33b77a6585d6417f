import { storableText } from '../../../lib/storable-text.ts';
import { compareLines } from '../../compare-lines.ts';
import type { PictureRequest } from '../../picture/picture.ts';
import { areCodecsWorn } from '../../picture/wear.ts';
import { type PrepareInput, type PrepareTerms, prepareText, titleOf } from '../../prepare.ts';
import { detectKind } from '../detect.ts';
import { looksLikeHtml } from '../html/detect-html.ts';
import { parsePage } from '../html/page.ts';
import { imageSize } from '../image-size.ts';
import { AttachmentReader, type PartEvent, type ResumePoint } from '../mail/attachments.ts';
import { parseDocument, readDocument } from '../parse.ts';
import type { WantedText } from '../pdf/locate.ts';
import { Reading, type ReadingTerms, Unfinished } from '../reading.ts';
import { samplePage } from '../sample-page.ts';
import { samplePdf } from '../sample-pdf.ts';
import { type ParseInput, requireTextSize } from '../types.ts';
import { bodyText } from '../web/body-text.ts';
import { decodeBody } from '../web/decode.ts';
import { parseFeed } from '../web/feed.ts';
import { menuLinks } from '../web/menu-script.ts';
import { parseRobots } from '../web/robots.ts';
import { parseSitemap } from '../web/sitemap.ts';
import { packPrepared } from './prepared.ts';
import { serve, type Task } from './worker-loop.ts';

/** What the task that reads a document also prepares, within the same deadline: a text of so many bytes, read so quickly. */
const preparedAtOnce = { bytesMax: 128 * 1024, readMsMax: 500 };

/** The tasks of a parser process. To add a task, add a line here and a name to the pool's TaskName. */
const tasks: Record<string, Task> = {
  parse: async (bytes, fields, onProgress, emit) => {
    const { terms, resume, prepare, ...input } = fields as Omit<ParseInput, 'bytes'> & {
      terms?: ReadingTerms;
      resume?: ResumePoint;
      prepare?: PrepareTerms;
    };
    const attachments = new AttachmentReader((event) => emit(...withoutText(event)), resume);
    const startedMs = performance.now();
    try {
      const reading = new Reading(terms, onProgress);
      const { markdown, ...described } = await readDocument({ ...input, bytes }, reading, attachments);
      if (attachments.isUsed) return { value: { apart: true } };
      requireTextSize(markdown.length);
      const text = new TextEncoder().encode(markdown);
      const isShort =
        text.length <= preparedAtOnce.bytesMax && performance.now() - startedMs <= preparedAtOnce.readMsMax;
      if (prepare === undefined || !isShort) return { value: described, blobs: [text] };
      const title = titleOf(prepare.title, described.title, input.filename);
      const prepared = packPrepared(prepareText({ ...prepare, title, text: storableText(markdown) }));
      return { value: { ...described, prepared: prepared.value }, blobs: [text, ...prepared.blobs] };
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
  menu: (bytes, fields) => ({ value: menuLinks(bytes, String(fields.url)) }),
  feed: (bytes, fields) => ({ value: parseFeed(bytes, String(fields.url), fields.isCut === true) }),
  body: (bytes, fields) => ({ value: bodyText(bytes, String(fields.contentType ?? '')) }),
  prepare: (bytes, fields) =>
    packPrepared(
      prepareText({
        ...(fields as Omit<PrepareInput, 'text'>),
        text: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(),
      }),
    ),
  picture: async (bytes, fields) => {
    const { makePicture } = await import('../../picture/picture.ts');
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
  locate: async (bytes, fields) => {
    const { locateTexts } = await import('../pdf/locate.ts');
    return { value: await locateTexts(bytes, fields.wanted as WantedText[]) };
  },
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

/**
 * Reads a small page and a small PDF, because the first documents of a process are slow: the first PDF takes five times as
 * long as the tenth, and the first page twenty times as long as the hundredth.
 */
async function warmUp(): Promise<boolean> {
  rounds += 1;
  parsePage({ bytes: samplePage(), contentType: 'text/html', url: 'https://sample.example/page' });
  await parseDocument({ bytes: samplePdf() });
  return rounds < warmUpRounds;
}

serve(Object.fromEntries(Object.entries(tasks).map(([name, task]) => [name, decodeTask(task)])), warmUp, areCodecsWorn);
