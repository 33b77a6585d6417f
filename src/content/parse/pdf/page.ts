import type { RgbaImage } from '../../picture/shrink.ts';
import type { GreyImage } from '../ocr/image.ts';
import { type Replacement, replaceGlyphs } from './actual-text.ts';
import { characterOf, weightOf } from './characters.ts';
import { placeBlanks } from './clusters.ts';
import { type Codes, createWordReader, hasClusters, hasRightToLeft, isOnePerPlace, isPlain, wordEnd } from './codes.ts';
import type { Glyph, Rule, TextStyle } from './glyph.ts';
import { eachObject, eachOwnObject, formObject, imageObject, pathObject } from './objects.ts';
import { callPdfium, type Pdfium } from './pdfium.ts';
import { readStructure, type StructureElement } from './structure-tree.ts';

type Face = Omit<TextStyle, 'size' | 'colour' | 'markedContent' | 'artifact'>;
type Run = { object: number; style: TextStyle; turn: number; baseline: number; isInserted: boolean };

type PlaceBox = (index: number, box: Rule) => void;
/** The run that draws the first character of a range, and the end of the run or of the range, whichever is first. */
type FindRun = (from: number, to: number) => { run: Run; until: number };

const emptyGlyph = {
  ...{ character: '', left: 0, right: 0, top: 0, bottom: 0, baseline: 0, turn: 0 },
  ...{ generated: false, hyphen: false },
};

const noStyle: TextStyle = {
  ...{ size: 0, font: '', weight: 400, italic: false, mono: false, symbols: false, colour: 0 },
  ...{ markedContent: -1, artifact: false },
};

const glyphsPerPageMax = 400_000;
/** A picture that may be the bullet of an item, in points. */
const smallPictureMax = 10;
/** FPDFBitmap_BGRA */
const bgraFormat = 4;

export class PdfPage {
  readonly #pdfium: Pdfium;
  readonly #calls: Pdfium['frequent'];
  readonly #page: number;
  readonly #text: number;
  readonly #replacements: ReadonlyMap<number, Replacement>;
  readonly width: number;
  readonly height: number;
  readonly #rotation: number;
  #originX = 0;
  #originY = 0;
  readonly #faces = new Map<number, Face>();
  /** The last style of each face, so that words that are drawn one by one share a style. */
  readonly #styles = new Map<Face, TextStyle>();

  /** `replacements` are of the page's text objects, which `text` was loaded without. */
  constructor(pdfium: Pdfium, page: number, text: number, replacements: ReadonlyMap<number, Replacement>) {
    this.#pdfium = pdfium;
    this.#calls = pdfium.frequent;
    this.#page = page;
    this.#text = text;
    this.#replacements = replacements;
    this.width = page === 0 ? 0 : this.#call('FPDF_GetPageWidthF', page);
    this.height = page === 0 ? 0 : this.#call('FPDF_GetPageHeightF', page);
    this.#rotation = page === 0 ? 0 : this.#call('FPDFPage_GetRotation', page) & 3;
    if (page === 0) return;
    this.#scratch(16, (address) => {
      if (this.#call('FPDF_GetPageBoundingBox', page, address) === 0) return;
      const view = new DataView(this.#pdfium.HEAPU8.buffer, address, 16);
      this.#originX = view.getFloat32(0, true);
      this.#originY = view.getFloat32(12, true);
    });
  }

  /** Every character in drawing order, with the edges of its ink. */
  glyphs(): Glyph[] {
    const codes = this.#codes();
    const glyphs: Glyph[] = [];
    const replacements: (Replacement | undefined)[] = [];
    this.#scratch(32, (address) => {
      this.#withRuns((runAt, placeBox) => {
        codes.forEach((code, index) => {
          const { run } = runAt(index, index + 1);
          const replacement = this.#replacements.get(run.object);
          if (code === 0 && !replacement) return;
          const glyph: Glyph = { ...emptyGlyph, style: run.style };
          // When the engine reverses a line, it no longer reports which blanks it inserted.
          describe(glyph, code, run, this.#isGenerated(code, index) || run.isInserted);
          placeBox(index, glyph);
          this.#placeInk(index, glyph, address);
          glyphs.push(glyph);
          replacements.push(replacement);
        });
      });
    });
    const shown = this.#replacements.size === 0 ? glyphs : replaceGlyphs(glyphs, replacements);
    const misplaced = this.#replacements.size > 0 || hasClusters(codes);
    return misplaced && !hasRightToLeft(codes) ? placeBlanks(shown) : shown;
  }

  #placeInk(index: number, glyph: Glyph, address: number): void {
    if (this.#calls.FPDFText_GetCharBox(this.#text, index, address, address + 8, address + 16, address + 24) === 0)
      return;
    const view = new DataView(this.#pdfium.HEAPU8.buffer, address, 32);
    const [a] = this.#place(view.getFloat64(0, true), view.getFloat64(16, true));
    const [b] = this.#place(view.getFloat64(8, true), view.getFloat64(24, true));
    glyph.inkLeft = Math.min(a, b);
    glyph.inkRight = Math.max(a, b);
  }

  /**
   * Visits the text in drawing order. The characters of a word that are drawn in one operation are one glyph, for which
   * only the boxes of the first and last character are read. The glyph is the same object each time: separate ones would
   * be most of what a long document allocates. Returns the number of characters, or undefined without visiting any if the
   * page needs `glyphs`: for the order of a right-to-left script, or because other text replaces a part of what it draws.
   */
  eachWord(visit: (glyph: Glyph) => void, atBlank: (isLineEnd: boolean) => void): number | undefined {
    const codes = this.#codes();
    if (this.#replacements.size > 0 || hasClusters(codes) || hasRightToLeft(codes)) return undefined;
    const textOf = createWordReader(codes);
    const glyph: Glyph = { ...emptyGlyph, style: noStyle };
    const end = { left: 0, right: 0, top: 0, bottom: 0 };
    let count = 0;
    this.#withRuns((runAt, placeBox) => {
      for (let at = 0; at < codes.length; ) {
        const code = codes[at] ?? 0;
        if (code === 0) at += 1;
        else if (code === 0x20 || code === 0x0d || code === 0x0a) {
          count += 1;
          at += 1;
          atBlank(code !== 0x20);
        } else {
          const next = isPlain(code) ? wordEnd(codes, at) : at + 1;
          const { run, until } = runAt(at, next);
          placeBox(at, glyph);
          if (until - at === 1) describe(glyph, code, run, false);
          else {
            placeBox(until - 1, end);
            glyph.left = Math.min(glyph.left, end.left);
            glyph.right = Math.max(glyph.right, end.right);
            glyph.top = Math.min(glyph.top, end.top);
            glyph.bottom = Math.max(glyph.bottom, end.bottom);
            placeOnRun(glyph, run);
            glyph.character = textOf(at, until);
            glyph.hyphen = codes[until - 1] === 0x2d;
          }
          count += until - at;
          at = until;
          visit(glyph);
        }
      }
    });
    return count;
  }

  /** The code point of every character; 0 for a character without one. */
  #codes(): Codes {
    if (this.#text === 0) return new Uint16Array();
    const count = Math.min(glyphsPerPageMax, this.#call('FPDFText_CountChars', this.#text));
    const codes = this.#textAsCodes(count);
    if (codes) return codes;
    const unicodeAt = this.#calls.FPDFText_GetUnicode;
    return Uint32Array.from({ length: count }, (_unused, index) => unicodeAt(this.#text, index));
  }

  /** Reads the page's text in one call; undefined when its code units do not correspond to the characters one to one. */
  #textAsCodes(count: number): Uint16Array | undefined {
    let codes: Uint16Array | undefined;
    this.#scratch(2 * count + 2, (address) => {
      const written = this.#call('FPDFText_GetText', this.#text, 0, count, address);
      if (written === count + 1) codes = new Uint16Array(this.#pdfium.HEAPU8.buffer, address, count).slice();
    });
    return codes && isOnePerPlace(codes) ? codes : undefined;
  }

  /** Calls `use` with functions that find the run of a character and its box. They share memory that is freed afterwards. */
  #withRuns(use: (runAt: FindRun, placeBox: PlaceBox) => void): void {
    if (this.#text === 0) return;
    const text = this.#text;
    const objectAt = this.#calls.FPDFText_GetTextObject;
    const boxAt = this.#calls.FPDFText_GetLooseCharBox;
    this.#scratch(64, (address) => {
      let heap = this.#pdfium.HEAPU8;
      let view = new DataView(heap.buffer, address, 64);
      const viewNow = (): DataView => {
        if (heap.length > 0) return view;
        heap = this.#pdfium.HEAPU8; // the memory has grown, which empties the arrays over the one before
        view = new DataView(heap.buffer, address, 64);
        return view;
      };
      const placeBox: PlaceBox = (index, box) => {
        boxAt(text, index, address);
        this.#placeBox(viewNow(), box);
      };
      const found: { run?: Run; until: number } = { until: 0 };
      let runObject = -1;
      use((from, to) => {
        // The characters of an object are consecutive: if the last one belongs to the run, so do those before it.
        let object = objectAt(text, to - 1);
        found.until = to;
        if (object !== runObject || !found.run) {
          if (to - from > 1 && objectAt(text, from) !== object) {
            object = objectAt(text, from);
            found.until = from + 1;
            while (objectAt(text, found.until) === object) found.until += 1;
          }
          runObject = object;
          found.run = this.#run(object, from, address, viewNow());
        }
        if (found.run.style.symbols) found.until = from + 1;
        return found as { run: Run; until: number };
      }, placeBox);
    });
  }

  #isGenerated(code: number, index: number): boolean {
    if (code === 0x0d || code === 0x0a) return true;
    return code === 0x20 && this.#calls.FPDFText_IsGenerated(this.#text, index) === 1;
  }

  /** Lines and thin bars on the page, and pictures as small as bullets. */
  rules(): Rule[] {
    if (this.#page === 0) return [];
    const rules: Rule[] = [];
    this.#scratch(16, (address) => {
      const boxOf = (object: number): Rule | undefined => {
        if (this.#calls.FPDFPageObj_GetBounds(object, address, address + 4, address + 8, address + 12) === 0) return;
        const rule = { left: 0, right: 0, top: 0, bottom: 0 };
        this.#placeBox(new DataView(this.#pdfium.HEAPU8.buffer, address, 16), rule);
        return rule;
      };
      eachObject(this.#pdfium, this.#page, (object, kind) => {
        const box = kind === pathObject ? boxOf(object) : undefined;
        if (box) rules.push(box);
      });
      eachOwnObject(this.#pdfium, this.#page, (object, kind) => {
        const box = kind === formObject || kind === imageObject ? boxOf(object) : undefined;
        if (box && box.right - box.left < smallPictureMax && box.bottom - box.top < smallPictureMax) rules.push(box);
      });
    });
    return rules;
  }

  /** The share of the page that pictures cover, from 0 to 1. */
  imageShare(): number {
    if (this.#page === 0) return 0;
    let area = 0;
    this.#scratch(16, (address) => {
      eachObject(this.#pdfium, this.#page, (object, kind) => {
        if (kind !== imageObject && kind !== formObject) return;
        if (this.#calls.FPDFPageObj_GetBounds(object, address, address + 4, address + 8, address + 12) === 0) return;
        const view = new DataView(this.#pdfium.HEAPU8.buffer, address, 16);
        area +=
          Math.abs(view.getFloat32(8, true) - view.getFloat32(0, true)) *
          Math.abs(view.getFloat32(12, true) - view.getFloat32(4, true));
      });
    });
    return Math.min(1, area / Math.max(1, this.width * this.height));
  }

  /** The page's part of the logical structure; empty when the file has none. */
  structure(): StructureElement[] {
    return this.#page === 0 ? [] : readStructure(this.#pdfium, this.#page);
  }

  /** Renders the page in grey for OCR, at this resolution or, for a large page, a lower one; undefined if it cannot. */
  renderGrey(dotsPerInchMax: number, pixelsMax: number): { picture: GreyImage; dotsPerInch: number } | undefined {
    if (this.#page === 0) return undefined;
    const scale = Math.min(dotsPerInchMax / 72, Math.sqrt(pixelsMax / Math.max(1, this.width * this.height)));
    const width = Math.max(1, Math.floor(this.width * scale));
    const height = Math.max(1, Math.floor(this.height * scale));
    if (width * height > pixelsMax) return undefined; // an extremely narrow page
    const bitmap = this.#call('FPDFBitmap_CreateEx', width, height, 1, 0, 0);
    if (bitmap === 0) return undefined;
    try {
      this.#call('FPDFBitmap_FillRect', bitmap, 0, 0, width, height, 0xffffffff);
      this.#call('FPDF_RenderPageBitmap', bitmap, this.#page, 0, 0, width, height, 0, 0x08);
      const buffer = this.#call('FPDFBitmap_GetBuffer', bitmap);
      const stride = this.#call('FPDFBitmap_GetStride', bitmap);
      const pixels = new Uint8Array(width * height);
      for (let row = 0; row < height; row++) {
        const from = buffer + row * stride;
        pixels.set(this.#pdfium.HEAPU8.subarray(from, from + width), row * width);
      }
      return { picture: { width, height, pixels }, dotsPerInch: Math.round(scale * 72) };
    } finally {
      this.#call('FPDFBitmap_Destroy', bitmap);
    }
  }

  /** Renders the page on white with this width in pixels; undefined if it is damaged or too tall. */
  renderColour(width: number, pixelsMax: number): RgbaImage | undefined {
    if (this.#page === 0 || this.width <= 0) return undefined;
    const height = Math.max(1, Math.round((this.height * width) / this.width));
    if (width * height > pixelsMax) return undefined;
    const bitmap = this.#call('FPDFBitmap_CreateEx', width, height, bgraFormat, 0, 0);
    if (bitmap === 0) return undefined;
    try {
      this.#call('FPDFBitmap_FillRect', bitmap, 0, 0, width, height, 0xffffffff);
      this.#call('FPDF_RenderPageBitmap', bitmap, this.#page, 0, 0, width, height, 0, 0x01);
      const buffer = this.#call('FPDFBitmap_GetBuffer', bitmap);
      const stride = this.#call('FPDFBitmap_GetStride', bitmap);
      const data = new Uint8ClampedArray(width * height * 4);
      for (let row = 0; row < height; row++) {
        const from = buffer + row * stride;
        data.set(this.#pdfium.HEAPU8.subarray(from, from + width * 4), row * width * 4);
      }
      for (let i = 0; i < data.length; i += 4) {
        [data[i], data[i + 2]] = [data[i + 2] ?? 0, data[i] ?? 0];
        data[i + 3] = 255;
      }
      return { width, height, data };
    } finally {
      this.#call('FPDFBitmap_Destroy', bitmap);
    }
  }

  /** The common properties of all characters of a text object. */
  #run(object: number, index: number, address: number, view: DataView): Run {
    const hasMatrix = this.#calls.FPDFText_GetMatrix(this.#text, index, address) === 1;
    const turn = object !== 0 && hasMatrix ? toQuarterTurns(view.getFloat32(0, true), view.getFloat32(4, true)) : 0;
    const scale = hasMatrix ? length(view.getFloat32(8, true), view.getFloat32(12, true)) || 1 : 1;
    this.#calls.FPDFText_GetCharOrigin(this.#text, index, address, address + 8);
    const [x, y] = this.#place(view.getFloat64(0, true), view.getFloat64(8, true));
    const style = this.#style(object, index, scale, address);
    const turnShown = (turn + 4 - this.#rotation) & 3;
    return {
      object,
      style,
      turn: turnShown,
      baseline: turnShown & 1 ? x : y,
      isInserted: object === 0,
    };
  }

  #style(object: number, index: number, scale: number, address: number): TextStyle {
    const size = this.#calls.FPDFText_GetFontSize(this.#text, index) * scale;
    const font = object === 0 ? 0 : this.#calls.FPDFTextObj_GetFont(object);
    const isMarked = object !== 0 && this.#calls.FPDFPageObj_CountMarks(object) > 0;
    const markedContent = isMarked ? this.#calls.FPDFPageObj_GetMarkedContentID(object) : -1;
    const artifact = isMarked && this.#isArtifact(object, address);
    let face = this.#faces.get(font);
    if (!face) {
      face = this.#face(font, index, address);
      this.#faces.set(font, face);
    }
    const colour = object === 0 ? 0 : this.#colour(object, address);
    const last = this.#styles.get(face);
    if (
      last?.size === size &&
      last.colour === colour &&
      last.markedContent === markedContent &&
      last.artifact === artifact
    )
      return last;
    const style = { ...face, size, colour, markedContent, artifact };
    this.#styles.set(face, style);
    return style;
  }

  #colour(object: number, address: number): number {
    if (this.#calls.FPDFPageObj_GetFillColor(object, address, address + 4, address + 8, address + 12) === 0) return 0;
    const heap = this.#pdfium.HEAPU8;
    return ((heap[address] ?? 0) << 16) | ((heap[address + 4] ?? 0) << 8) | (heap[address + 8] ?? 0);
  }

  #face(font: number, index: number, address: number): Face {
    const name = font === 0 ? '' : this.#fontName(font, address);
    const flags = font === 0 ? 0 : this.#call('FPDFFont_GetFlags', font);
    const weight = this.#call('FPDFText_GetFontWeight', this.#text, index);
    return {
      font: name,
      weight: Math.max(weightOf(name), weight >= 600 && weight <= 1000 ? weight : 0, (flags & 0x40000) !== 0 ? 700 : 0),
      italic: /italic|oblique|\bcmti|slanted|-it\b/i.test(name),
      mono: (flags & 1) !== 0 || /mono|courier|consol|typewriter|menlo|\bcmtt/i.test(name),
      symbols: /wingdings|webdings/i.test(name),
    };
  }

  #fontName(font: number, address: number): string {
    const length = Math.min(60, this.#call('FPDFFont_GetBaseFontName', font, address, 60));
    return latin1(this.#pdfium.HEAPU8, address, Math.max(0, length - 1)).replace(/^[A-Z]{6}\+/, '');
  }

  #isArtifact(object: number, address: number): boolean {
    const count = Math.min(8, this.#calls.FPDFPageObj_CountMarks(object));
    for (let index = 0; index < count; index++) {
      const mark = this.#calls.FPDFPageObj_GetMark(object, index);
      if (mark === 0 || this.#calls.FPDFPageObjMark_GetName(mark, address, 40, address + 48) === 0) continue;
      const length = new DataView(this.#pdfium.HEAPU8.buffer, address + 48, 4).getUint32(0, true);
      if (length === 18 && latin1(this.#pdfium.HEAPU8, address, 16).replaceAll('\0', '') === 'Artifact') return true;
    }
    return false;
  }

  /** Writes a box of four floats (left, one end, right, the other end) as displayed. */
  #placeBox(view: DataView, box: Rule): void {
    const x0 = view.getFloat32(0, true) - this.#originX;
    const y0 = view.getFloat32(4, true) - this.#originY;
    const x1 = view.getFloat32(8, true) - this.#originX;
    const y1 = view.getFloat32(12, true) - this.#originY;
    if (this.#rotation === 0) {
      box.left = Math.min(x0, x1);
      box.right = Math.max(x0, x1);
      box.top = this.height - Math.max(y0, y1);
      box.bottom = this.height - Math.min(y0, y1);
      return;
    }
    const [a, b] = this.#place(x0 + this.#originX, y0 + this.#originY);
    const [c, d] = this.#place(x1 + this.#originX, y1 + this.#originY);
    box.left = Math.min(a, c);
    box.right = Math.max(a, c);
    box.top = Math.min(b, d);
    box.bottom = Math.max(b, d);
  }

  /** A point of the file as displayed: from the upper left, with the page's rotation applied. */
  #place(pageX: number, pageY: number): [number, number] {
    const x = pageX - this.#originX;
    const y = pageY - this.#originY;
    switch (this.#rotation) {
      case 1:
        return [y, x];
      case 2:
        return [this.width - x, y];
      case 3:
        return [this.width - y, this.height - x];
      default:
        return [x, this.height - y];
    }
  }

  #scratch(bytes: number, use: (address: number) => void): void {
    const address = this.#call('malloc', bytes);
    try {
      use(address);
    } finally {
      this.#call('free', address);
    }
  }

  #call(name: string, ...values: number[]): number {
    return callPdfium(this.#pdfium, name, values);
  }
}

/** The direction of a line of text, in quarter turns anticlockwise. */
function toQuarterTurns(x: number, y: number): number {
  if (y === 0) return x < 0 ? 2 : 0;
  return (Math.round(Math.atan2(y, x) / (Math.PI / 2)) + 4) & 3;
}

function length(x: number, y: number): number {
  return x === 0 ? Math.abs(y) : Math.hypot(x, y);
}

function describe(glyph: Glyph, code: number, run: Run, generated: boolean): void {
  const isHyphen = code === 2 || code === 0xfffe || code === 0xad;
  glyph.character = isHyphen ? '-' : characterOf(code, run.style.symbols);
  placeOnRun(glyph, run);
  glyph.generated = generated;
  glyph.hyphen = isHyphen || code === 0x2d || code === 0x2010;
}

function placeOnRun(glyph: Glyph, run: Run): void {
  glyph.baseline = run.baseline;
  glyph.turn = run.turn;
  glyph.style = run.style;
}

function latin1(heap: Uint8Array, from: number, length: number): string {
  let text = '';
  for (let index = from; index < from + length; index++) text += String.fromCharCode(heap[index] ?? 0);
  return text;
}
