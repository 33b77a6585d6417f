import { boundPicture } from '../../picture/bounds.ts';
import { parseLimits } from '../limits.ts';
import { buildPage, writePages } from '../pdf/write-pages.ts';
import { type Reading, Unfinished } from '../reading.ts';
import { failed, type ParsedDocument, unsupported } from '../types.ts';
import { loadOcrEngine, type TesseractEngine } from './engine.ts';
import { scaleDown, scaleUp } from './image.ts';
import { type RecognisedPage, readPicture } from './read-picture.ts';

/** Recognition takes time in proportion to the pixels, and more pixels do not improve it. */
const recognisedPixelsMax = 12_000_000;
/** Assumed, because the resolution that pictures state seldom matches the size of the text on paper. */
const assumedDotsPerInch = 150;

/** The type of screens and thumbnails is too small for the engine. Pictures whose shorter side is below this are doubled. */
const smallSideMax = 1_200;

/** Reads a picture (PNG, JPEG, GIF, WebP, BMP, TIFF) as a document of one page. Throws ParseError. */
export async function parsePicture(bytes: Uint8Array, reading: Reading): Promise<ParsedDocument> {
  const { ocr, ocrProblem } = reading.terms;
  if (ocr === undefined) throw unsupported(`The file is a picture, and ${ocrProblem}.`);
  const bounded = boundPicture(bytes, parseLimits.imagePixelsMax);
  if (ocr === 'later') throw new Unfinished('pictures');
  const drawn = recogniseBounded(await loadOcrEngine(ocr), bounded);
  if (drawn.characters === 0) throw failed('No text could be recognised in the picture.');
  reading.recognised.push({ page: 1, confidence: drawn.confidence, characters: drawn.characters });
  const markdown = writePages([buildPage(1, { ...drawn, tree: [] }, false)]);
  return { kind: 'image', pages: 1, markdown, ...reading.report() };
}

/** Recognises the text of a picture file. Throws ParseError if it is damaged or has too many pixels. */
export function recogniseFile(engine: TesseractEngine, bytes: Uint8Array): RecognisedPage {
  return recogniseBounded(engine, boundPicture(bytes, parseLimits.imagePixelsMax));
}

function recogniseBounded(engine: TesseractEngine, bytes: Uint8Array): RecognisedPage {
  const picture = scaleDown(engine.decode(bytes), recognisedPixelsMax);
  const isSmall =
    Math.min(picture.width, picture.height) < smallSideMax && picture.width * picture.height * 4 <= recognisedPixelsMax;
  return isSmall
    ? readPicture(engine, scaleUp(picture), 2 * assumedDotsPerInch)
    : readPicture(engine, picture, assumedDotsPerInch);
}
