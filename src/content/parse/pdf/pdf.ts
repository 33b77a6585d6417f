import { defined } from '../../../lib/defined.ts';
import { loadOcrEngine, type TesseractEngine } from '../ocr/engine.ts';
import { readPicture } from '../ocr/read-picture.ts';
import { type Reading, Unfinished } from '../reading.ts';
import { failed, type ParsedDocument, unsupported } from '../types.ts';
import { openPdf, type PdfDocument } from './document.ts';
import { buildSegments, type Segment, SegmentCutter } from './lines.ts';
import type { PdfPage } from './page.ts';
import { DirectionCount, turnGlyphs, turnRule } from './vertical.ts';
import { buildPage, type Page, writePages } from './write-pages.ts';

const charactersMax = 16 * 1024 * 1024;
const scanCharactersMax = 8;
const scanImageShare = 0.3;
const scanDotsPerInch = 200;
const scanPixelsMax = 12_000_000;

/**
 * A PDF: text in reading order, headings, lists, tables, words joined across line ends, running heads and feet removed.
 * Pages that are only pictures are recognised. Throws ParseError with the reason.
 */
export async function parsePdf(bytes: Uint8Array, reading: Reading): Promise<ParsedDocument> {
  const document = await openPdf(bytes);
  try {
    const pages = await readPages(document, reading);
    requireText(pages, reading);
    const language = pages.flatMap((page) => page.tree.map((element) => element.language)).find((one) => one !== '');
    return {
      kind: 'pdf',
      pages: document.pageCount,
      markdown: writePages(pages),
      ...document.metadata(),
      ...defined({ language }),
      ...reading.report(),
    };
  } finally {
    document.close();
  }
}

async function readPages(document: PdfDocument, reading: Reading): Promise<Page[]> {
  const pages: Page[] = [];
  let characters = 0;
  let engine: TesseractEngine | undefined;
  const { ocr } = reading.terms;
  for (let index = 0; index < document.pageCount; index++) {
    if (reading.enough(index, document.pageCount)) break;
    const { page, isScan, count } = document.withPage(index, (one) => readPage(one, index + 1));
    characters += count;
    if (characters > charactersMax) throw failed('The PDF contains more text than the limit.');
    if (isScan && ocr === 'later') throw new Unfinished('pictures');
    if (!isScan || ocr === undefined || ocr === 'later') {
      pages.push(page);
      continue;
    }
    engine ??= await loadOcrEngine(ocr);
    pages.push(recognisePage(document, engine, index, reading) ?? page);
  }
  return pages;
}

function readPage(page: PdfPage, number: number): { page: Page; isScan: boolean; count: number } {
  const tree = page.structure();
  const { segments, count, isTurned } = readSegments(page, tree.length > 0);
  const isScan = count <= scanCharactersMax && page.imageShare() > scanImageShare;
  const { width, height } = page;
  const rules = page.rules();
  const shape = isTurned
    ? { width: height, height: width, rules: rules.map((rule) => turnRule(rule, width)) }
    : { width, height, rules };
  return { page: buildPage(number, { ...shape, segments, tree }, isScan), isScan, count };
}

type PageText = { segments: Segment[]; count: number; isTurned: boolean };

function readSegments(page: PdfPage, byContent: boolean): PageText {
  const cutter = new SegmentCutter(byContent);
  const direction = new DirectionCount();
  const count = page.eachWord(
    (glyph) => {
      direction.add(glyph);
      cutter.add(glyph);
    },
    (isLineEnd) => {
      direction.interrupt();
      if (!isLineEnd) cutter.addSpace(); // line ends are found by position
    },
  );
  const isTurned = count !== undefined && direction.isVertical;
  if (count !== undefined && !isTurned) return { segments: cutter.finish(), count, isTurned };
  const glyphs = page.glyphs();
  const segments = buildSegments(isTurned ? turnGlyphs(glyphs, page.width) : glyphs, byContent);
  return { segments, count: glyphs.length, isTurned };
}

/** Recognises the text of a page from its picture (OCR); undefined when there is none. */
function recognisePage(
  document: PdfDocument,
  engine: TesseractEngine,
  index: number,
  reading: Reading,
): Page | undefined {
  const image = document.withPage(index, (page) => page.renderGrey(scanDotsPerInch, scanPixelsMax));
  if (!image) return undefined;
  const drawn = readPicture(engine, image.picture, image.dotsPerInch);
  if (drawn.characters === 0) return undefined;
  reading.recognised.push({ page: index + 1, confidence: drawn.confidence, characters: drawn.characters });
  return buildPage(index + 1, { ...drawn, tree: [] }, false);
}

/** Without an OCR engine, a file of nothing but pictures is refused. */
function requireText(pages: Page[], { terms }: Reading): void {
  if (pages.some((page) => page.lines.length > 0 || page.turned.length > 0)) return;
  if (!pages.some((page) => page.unread)) throw failed('The PDF contains no text.');
  if (terms.ocr !== undefined) throw failed('The PDF is a scan in which no text could be recognised.');
  throw unsupported(`The PDF is a scan: its pages are pictures without text, and ${terms.ocrProblem}.`);
}
