import { PDFiumLibrary } from '@hyzyla/pdfium';

type Call = (...values: number[]) => number;
/** The functions of the WebAssembly module that are used here; the wrapper class offers plain text only. */
export type Pdfium = { calls: Record<string, Call>; readonly HEAPU8: Uint8Array };
type EmscriptenModule = { wasmExports: Record<string, Call>; HEAPU8: Uint8Array };

let loading: Promise<Pdfium> | undefined;

/** Loads the engine once. Parser processes call it at startup, so that the first document does not wait. */
export function loadPdfium(): Promise<Pdfium> {
  loading ??= PDFiumLibrary.init().then((library) => {
    const { module } = library as unknown as { module: EmscriptenModule };
    return {
      calls: module.wasmExports, // without the module's checks around each call, which cost more than the call
      get HEAPU8(): Uint8Array {
        return module.HEAPU8; // a new array whenever its memory grows
      },
    };
  });
  return loading;
}

export function pdfiumFunction(pdfium: Pdfium, name: string): Call {
  const found = pdfium.calls[name];
  if (!found) throw new Error(`pdfium has no ${name}`);
  return found;
}

export function callPdfium(pdfium: Pdfium, name: string, values: number[]): number {
  return pdfiumFunction(pdfium, name)(...values);
}
