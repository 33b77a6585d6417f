import { PDFiumLibrary } from '@hyzyla/pdfium';

type Call = (...values: number[]) => number;
/** Functions called for every word or object of a page. Looking one up by name takes longer than most of these calls. */
const frequentCalls = [
  'FPDFFormObj_CountObjects',
  'FPDFFormObj_GetObject',
  'FPDFPageObjMark_GetName',
  'FPDFPageObjMark_GetParamBlobValue',
  'FPDFPageObj_CountMarks',
  'FPDFPageObj_GetBounds',
  'FPDFPageObj_GetFillColor',
  'FPDFPageObj_GetMark',
  'FPDFPageObj_GetMarkedContentID',
  'FPDFPageObj_GetType',
  'FPDFPage_GetObject',
  'FPDFTextObj_GetFont',
  'FPDFText_GetCharBox',
  'FPDFText_GetCharOrigin',
  'FPDFText_GetFontSize',
  'FPDFText_GetLooseCharBox',
  'FPDFText_GetMatrix',
  'FPDFText_GetTextObject',
  'FPDFText_GetUnicode',
  'FPDFText_IsGenerated',
] as const;

/** The functions of the WebAssembly module that are used here; the wrapper class offers plain text only. */
export type Pdfium = {
  calls: Record<string, Call>;
  frequent: Record<(typeof frequentCalls)[number], Call>;
  readonly HEAPU8: Uint8Array;
};
type EmscriptenModule = { wasmExports: Record<string, Call>; HEAPU8: Uint8Array };

let loading: Promise<Pdfium> | undefined;

/** Loads the engine once. Parser processes call it at startup, so that the first document does not wait. */
export function loadPdfium(): Promise<Pdfium> {
  loading ??= PDFiumLibrary.init().then((library) => {
    const { module } = library as unknown as { module: EmscriptenModule };
    const calls = module.wasmExports;
    return {
      frequent: Object.fromEntries(frequentCalls.map((name) => [name, find(calls, name)])) as Pdfium['frequent'],
      calls, // without the module's checks around each call, which cost more than the call
      get HEAPU8(): Uint8Array {
        return module.HEAPU8; // a new array whenever its memory grows
      },
    };
  });
  return loading;
}

/** Calls a function of the engine by name. Throws if it has no such function. */
export function callPdfium(pdfium: Pdfium, name: string, values: number[]): number {
  return find(pdfium.calls, name)(...values);
}

function find(calls: Record<string, Call>, name: string): Call {
  const found = calls[name];
  if (!found) throw new Error(`pdfium has no ${name}`);
  return found;
}
