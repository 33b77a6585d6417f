import type { ZipArchive } from '../format/zip.ts';
import { imageSize } from '../image-size.ts';
import { loadOcrEngine, type TesseractEngine } from '../ocr/engine.ts';
import { recogniseFile } from '../ocr/picture.ts';
import { buildPage, type Page, writePages } from '../pdf/write-pages.ts';
import { type Reading, Unfinished } from '../reading.ts';
import { ParseError, unsupported } from '../types.ts';
import { type Block, writeMarkdown } from '../write-markdown.ts';

/** A file of the archive, and the page or slide that shows it. */
export type PagePicture = { part: string; page: number };
type Pictures = { zip: ZipArchive; pictures: PagePicture[] };

/** Drawings (EMF, WMF, SVG) have no pixels to recognise. */
const pixelFile = /\.(?:png|jpe?g|gif|webp|bmp|tiff?)$/i;
/** Logos and icons are smaller, in pixels. */
const shorterSideMin = 300;
/** A page number or a label beside each picture, in letters and digits. PDF pages have the same limit. */
const strayCharactersMax = 8;
/** Texts that are longer in any case contain more than descriptions, and are not searched for them. */
const strayMarkdownMax = 200_000;

/**
 * The recognised text of a document that consists of pictures, such as a contract that was scanned into a Word file. No
 * blocks if the document has other text, or its pictures have none. Throws ParseError or Unfinished.
 */
export async function pageBlocks(text: Block[], pictures: Pictures, reading: Reading): Promise<Block[]> {
  const pages = await recognisePages(text, pictures, reading);
  return pages.length === 0 ? [] : [rawBlock(pages)];
}

/** The slides of a presentation with a mark before each. If it consists of pictures, with what they say. Throws like `pageBlocks`. */
export async function slideBlocks(slides: Block[][], pictures: Pictures, reading: Reading): Promise<Block[]> {
  const pages = await recognisePages(slides.flat(), pictures, reading);
  const pagesOfSlides = Map.groupBy(pages, ({ number }) => number);
  return slides.flatMap((slide, index): Block[] => [
    ...(index === 0 ? [] : [{ type: 'comment' as const, text: `slide ${index + 1}` }]),
    ...slide,
    ...(pagesOfSlides.get(index + 1) ?? []).map((page) => rawBlock([page])),
  ]);
}

function rawBlock(pages: Page[]): Block {
  return { type: 'raw', text: writePages(pages).trimEnd() };
}

async function recognisePages(text: Block[], { zip, pictures }: Pictures, reading: Reading): Promise<Page[]> {
  const shown = pictures.filter(({ part }) => pixelFile.test(part) && zip.has(part));
  // A background that all slides share is read once, where it is first shown.
  const files = [...new Map(shown.toReversed().map((one) => [one.part, one])).values()].toReversed();
  if (files.length === 0) return [];
  const characters = countText(writeMarkdown(text));
  if (characters > strayCharactersMax * files.length) return [];
  const { ocr, ocrProblem } = reading.terms;
  const pages: Page[] = [];
  let engine: TesseractEngine | undefined;
  for (const [index, { part, page }] of files.entries()) {
    if (reading.enough(index, files.length)) break;
    const bytes = zip.read(part);
    if (bytes === undefined || !isPage(bytes)) continue;
    if (ocr === 'later') throw new Unfinished('pictures');
    if (ocr !== undefined) {
      engine ??= await loadOcrEngine(ocr);
      pages.push(recognisePage(engine, bytes, page, reading));
    } else if (characters === 0)
      throw unsupported(`The document is a scan: its pages are pictures without text, and ${ocrProblem}.`);
  }
  return pages.some(({ unread }) => !unread) ? pages : [];
}

/** Letters and digits, without descriptions of pictures. */
function countText(markdown: string): number {
  if (markdown.length > strayMarkdownMax) return markdown.length;
  const text = markdown.replaceAll(/!\[(?:[^\\\]]|\\.){0,1000}\]\(image\)/g, '');
  return text.match(/[\p{L}\p{N}]/gu)?.length ?? 0;
}

function isPage(bytes: Uint8Array): boolean {
  const size = imageSize(bytes);
  return size !== undefined && Math.min(size.width, size.height) >= shorterSideMin;
}

/** A damaged picture, like one without text, leaves a mark in its place. */
function recognisePage(engine: TesseractEngine, bytes: Uint8Array, page: number, reading: Reading): Page {
  const unread = buildPage(page, { width: 1, height: 1, segments: [], rules: [], tree: [] }, true);
  try {
    const drawn = recogniseFile(engine, bytes);
    if (drawn.characters === 0) return unread;
    reading.recognised.push({ page, confidence: drawn.confidence, characters: drawn.characters });
    return buildPage(page, { ...drawn, tree: [] }, false);
  } catch (error) {
    if (error instanceof ParseError) return unread;
    throw error;
  }
}
