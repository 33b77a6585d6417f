import { rightToLeft } from '../pdf/characters.ts';
import type { Glyph, Rule, TextStyle } from '../pdf/glyph.ts';
import { buildSegments, type Segment } from '../pdf/lines.ts';
import { splitByCells, takeTables } from './cells.ts';
import type { OcrLine, TesseractEngine } from './engine.ts';
import { type GreyImage, prepareForRecognition } from './image.ts';
import { darkOnLight, evenLight } from './light.ts';
import { findRules } from './rules.ts';
import { levelLines, standUp } from './upright.ts';

/** A recognised page in the form that the layout analysis of PDF pages reads, in points. */
export type RecognisedPage = {
  width: number;
  height: number;
  segments: Segment[];
  rules: Rule[];
  /** The engine's mean confidence in the characters, from 0 to 1; 0 without any text. */
  confidence: number;
  characters: number;
};

/** Words with less confidence are specks and parts of drawings. */
const wordConfidenceMin = 25;
/** The x-height of common fonts as a share of the font size. */
const xHeightShare = 0.47;
const ascentShare = 0.8;

/** A page that is read with less confidence may be upside down. */
const uprightConfidenceMin = 0.7;

/** Reads the text of a picture, whichever way up it is, in shade or light, dark on light or light on dark. */
export function readPicture(engine: TesseractEngine, picture: GreyImage, dotsPerInch: number): RecognisedPage {
  const image = levelLines(engine, darkOnLight(evenLight(picture)), dotsPerInch);
  const page = readLevel(engine, image, dotsPerInch);
  if (page.confidence >= uprightConfidenceMin) return page;
  const turned = standUp(engine, image, dotsPerInch);
  return turned ? readLevel(engine, turned, dotsPerInch) : page;
}

function readLevel(engine: TesseractEngine, picture: GreyImage, dotsPerInch: number): RecognisedPage {
  const image = prepareForRecognition(picture);
  const scale = 72 / dotsPerInch;
  const drawn = findRules(image);
  const tables = takeTables(engine, image, drawn, dotsPerInch);
  const around = readable(engine.recognise(image, dotsPerInch));
  const parts = [around, ...splitByCells(readable(tables.lines), tables.cells)];
  const lines = parts.flat();
  const rules = [
    ...drawn.solid.filter((rule) => tables.rules.has(rule) || !lines.some((line) => isPartOfText(rule, line))),
    ...drawn.dashed.filter((rule) => tables.rules.has(rule)),
  ];
  const sizes = evenSizes(lines.map((line) => [sizeOf(line) * scale, charactersOf(line)]));
  const glyphs = new Map(lines.map((line, index) => [line, lineGlyphs(line, sizes[index] ?? 10, scale)]));
  const words = lines.flatMap((line) => line.words);
  const characters = lines.reduce((sum, line) => sum + charactersOf(line), 0);
  const certain = words.reduce((sum, word) => sum + word.confidence * word.text.length, 0);
  return {
    width: image.width * scale,
    height: image.height * scale,
    segments: parts.flatMap((part) => buildSegments(part.flatMap((line) => glyphs.get(line) ?? []))),
    rules: rules.map((rule) => ({
      left: rule.left * scale,
      right: rule.right * scale,
      top: rule.top * scale,
      bottom: rule.bottom * scale,
    })),
    confidence: characters === 0 ? 0 : certain / characters / 100,
    characters,
  };
}

function readable(lines: OcrLine[]): OcrLine[] {
  return lines.map((line) => ({ ...line, words: line.words.filter(isText) })).filter((line) => line.words.length > 0);
}

function isText(word: OcrLine['words'][number]): boolean {
  return word.text.trim() !== '' && word.confidence >= wordConfidenceMin;
}

function charactersOf(line: OcrLine): number {
  return line.words.reduce((sum, word) => sum + word.text.length, 0);
}

function isPartOfText(rule: Rule, line: OcrLine): boolean {
  return line.words.some(
    ({ bbox }) =>
      rule.left < bbox.x1 &&
      rule.right > bbox.x0 &&
      rule.top > bbox.y0 - 2 &&
      rule.bottom < bbox.y1 - (bbox.y1 - bbox.y0) * 0.1,
  );
}

function sizeOf({ rowAttributes }: OcrLine): number {
  const { rowHeight, ascenders, descenders } = rowAttributes;
  return (rowHeight - Math.abs(ascenders) - Math.abs(descenders)) / xHeightShare;
}

/** Measured sizes vary by a pixel. Those close to the most frequent size are set to it. */
function evenSizes(lines: [size: number, characters: number][]): number[] {
  const sorted = [...lines].sort((a, b) => a[0] - b[0]);
  const half = sorted.reduce((sum, [, characters]) => sum + characters, 0) / 2;
  let seen = 0;
  let usual = 10;
  for (const [size, characters] of sorted) {
    usual = size;
    seen += characters;
    if (seen >= half) break;
  }
  return lines.map(([size]) => (size > usual * 0.85 && size < usual * 1.18 ? usual : size));
}

/** Spreads the characters of a line over the boxes of their words, with a space between words and a line end. */
function lineGlyphs(line: OcrLine, size: number, scale: number): Glyph[] {
  const style: TextStyle = {
    size,
    font: 'scan',
    weight: 400,
    italic: false,
    colour: 0,
    mono: false,
    symbols: false,
    markedContent: -1,
    artifact: false,
  };
  const baseline = ((line.baseline.y0 + line.baseline.y1) / 2) * scale;
  const box = { top: baseline - size * ascentShare, bottom: baseline + size * (1 - ascentShare), baseline };
  const common = { ...box, turn: 0, style, generated: false, hyphen: false };
  const glyphs: Glyph[] = [];
  for (const { bbox, text } of line.words) {
    const characters = charactersFromLeft(text.trim());
    const width = (bbox.x1 - bbox.x0) / characters.length;
    const blank = (isReversed(text) ? bbox.x1 : bbox.x0) * scale;
    if (glyphs.length > 0) glyphs.push({ ...common, character: ' ', left: blank, right: blank });
    let left = bbox.x0;
    for (const character of characters) {
      const isHyphen = character === '-' || character === '\u2010';
      glyphs.push({ ...common, character, left: left * scale, right: (left + width) * scale, hyphen: isHyphen });
      left += width;
    }
  }
  const end = line.bbox.x1 * scale;
  glyphs.push({ ...common, character: '\n', left: end, right: end, generated: true });
  return glyphs;
}

function isReversed(word: string): boolean {
  return rightToLeft.test(word);
}

/**
 * The characters of a word in the order of the picture: Hebrew and Arabic from the last one, with marks beside their
 * letters.
 */
function charactersFromLeft(word: string): string[] {
  if (!isReversed(word)) return [...word];
  const runs = word.match(/\p{Nd}[\p{Nd}.,:/]*|[A-Za-z]+|.\p{M}*/gu) ?? [];
  return runs.toReversed().flatMap((run) => (/^[\p{Nd}A-Za-z]/u.test(run) ? [...run] : [run]));
}
