import { join, resolve } from 'node:path';
import { findAddOnDirectory, findPackage, isPartOfProgram, isReadable } from '../../../lib/add-ons.ts';

/** The languages that recognition reads, and where the engine and their data are. */
export type OcrSettings = {
  languages: string[];
  /** Data of languages that is not in an installed package. */
  dataDirectory?: string;
  /** The directory of the add-on, unless the engine is part of the program. */
  addOnDirectory?: string;
};

export function ocrSettings(config: {
  dataDir: string;
  ocrLanguages: string[];
  ocrDataDir: string | undefined;
}): OcrSettings {
  const { dataDir, ocrLanguages: languages, ocrDataDir } = config;
  const addOnDirectory = isPartOfProgram('ocr') ? undefined : findAddOnDirectory('ocr', dataDir);
  return {
    languages,
    ...(ocrDataDir === undefined ? {} : { dataDirectory: resolve(ocrDataDir) }),
    ...(addOnDirectory === undefined ? {} : { addOnDirectory }),
  };
}

type OcrEngine = { programFile: string; wasmFile: string };

/** The engine, if it is installed. */
export function findOcrEngine({ addOnDirectory }: Pick<OcrSettings, 'addOnDirectory'>): OcrEngine | undefined {
  const directory = findPackage('tesseract.js-core', addOnDirectory);
  if (directory === undefined) return undefined;
  // Plain SIMD, not "relaxed": the same page must give the same text on every processor.
  const programFile = join(directory, 'tesseract-core-simd-lstm.js');
  const wasmFile = join(directory, 'tesseract-core-simd-lstm.wasm');
  return isReadable(programFile) && isReadable(wasmFile) ? { programFile, wasmFile } : undefined;
}

/** The data file of a language, from the configured directory, the add-on or an installed package. */
export function findLanguage(
  language: string,
  { dataDirectory, addOnDirectory }: Omit<OcrSettings, 'languages'>,
): string | undefined {
  const name = `@tesseract.js-data/${language}`;
  const packages = [findPackage(name, addOnDirectory), findPackage(name)].filter((each) => each !== undefined);
  const places = packages.flatMap((directory) => [join(directory, '4.0.0_best_int'), join(directory, '4.0.0')]);
  return [...(dataDirectory === undefined ? [] : [dataDirectory]), ...places]
    .flatMap((place) => ['.traineddata', '.traineddata.gz'].map((end) => join(place, `${language}${end}`)))
    .find((file) => isReadable(file));
}

export type OcrProblem = { reason: string; fix: string };

/** Why scans and pictures cannot be read, and what to do about it. Undefined if they can be read. */
export function findOcrProblem(settings: OcrSettings): OcrProblem | undefined {
  if (!findOcrEngine(settings))
    return { reason: 'the add-on "ocr" is not installed', fix: 'Run `quarry add ocr` and restart the server' };
  const missing = settings.languages.filter((language) => findLanguage(language, settings) === undefined);
  if (missing.length === 0) return undefined;
  const packages = missing.map((language) => `@tesseract.js-data/${language}`).join(', ');
  return { reason: `no OCR data is installed for ${missing.join(', ')}`, fix: `Install ${packages}` };
}
