import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';

const require = createRequire(import.meta.url);

/** The languages that recognition reads, and where their data is if it is not in an installed package. */
export type OcrSettings = { languages: string[]; dataDirectory?: string };

export function ocrSettings(config: { ocrLanguages: string[]; ocrDataDir: string | undefined }): OcrSettings {
  const { ocrLanguages: languages, ocrDataDir } = config;
  return ocrDataDir === undefined ? { languages } : { languages, dataDirectory: resolve(ocrDataDir) };
}

type OcrEngine = { programFile: string; wasmFile: string };

/** The engine, if it is installed: it is an optional dependency. */
export function findOcrEngine(): OcrEngine | undefined {
  const directory = findPackage('tesseract.js-core');
  if (directory === undefined) return undefined;
  // Plain SIMD, not "relaxed": the same page must give the same text on every processor.
  const programFile = join(directory, 'tesseract-core-simd-lstm.js');
  const wasmFile = join(directory, 'tesseract-core-simd-lstm.wasm');
  return existsSync(programFile) && existsSync(wasmFile) ? { programFile, wasmFile } : undefined;
}

/** The data file of a language, from the configured directory or an installed package. */
export function findLanguage(language: string, dataDirectory: string | undefined): string | undefined {
  const places: string[] = [];
  if (dataDirectory !== undefined) places.push(dataDirectory);
  const directory = findPackage(`@tesseract.js-data/${language}`);
  if (directory !== undefined) places.push(join(directory, '4.0.0_best_int'), join(directory, '4.0.0'));
  return places
    .flatMap((place) => ['.traineddata', '.traineddata.gz'].map((end) => join(place, `${language}${end}`)))
    .find((file) => existsSync(file));
}

export type OcrProblem = { reason: string; fix: string };

/** Why scans and pictures cannot be read, and what to do about it. Undefined if they can be read. */
export function findOcrProblem({ languages, dataDirectory }: OcrSettings): OcrProblem | undefined {
  if (!findOcrEngine()) return { reason: 'no OCR engine is installed', fix: 'Install the package tesseract.js-core' };
  const missing = languages.filter((language) => findLanguage(language, dataDirectory) === undefined);
  if (missing.length === 0) return undefined;
  const packages = missing.map((language) => `@tesseract.js-data/${language}`).join(', ');
  return { reason: `no OCR data is installed for ${missing.join(', ')}`, fix: `Install ${packages}` };
}

function findPackage(name: string): string | undefined {
  try {
    return dirname(require.resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
}
