import { PDFiumLibrary } from '@hyzyla/pdfium';
import { failed, type ParsedDocument, parseLimits, unsupported } from './types.ts';

type Call = (...values: number[]) => number;
/** The part of the WebAssembly module that is used here; the wrapper class offers plain text only. */
type Pdfium = Record<string, Call> & { HEAPU8: Uint8Array };

const errorPassword = 4;
const errorSecurity = 5;
const infoTextBytesMax = 8_192;

let loading: Promise<Pdfium> | undefined;

/** Loads the engine once. Parser processes call it when they start, so that the first document does not wait. */
export function loadPdfium(): Promise<Pdfium> {
  loading ??= PDFiumLibrary.init().then((library) => (library as unknown as { module: Pdfium }).module);
  return loading;
}

/** Opens a PDF. The caller closes it. Throws ParseError. */
export async function openPdf(bytes: Uint8Array): Promise<PdfDocument> {
  const pdfium = await loadPdfium();
  const address = pdfium._malloc?.(bytes.byteLength) ?? 0;
  if (address === 0) throw failed('The PDF is too large to be read.');
  pdfium.HEAPU8.set(bytes, address);
  const handle = pdfium._FPDF_LoadMemDocument?.(address, bytes.byteLength, 0) ?? 0;
  if (handle === 0) {
    const code = pdfium._FPDF_GetLastError?.();
    pdfium._free?.(address);
    if (code === errorPassword) throw unsupported('The PDF is encrypted and needs a password to open.');
    if (code === errorSecurity) throw unsupported('The PDF is encrypted in a way that cannot be read.');
    throw failed('The PDF is damaged or cut short and cannot be opened.');
  }
  return new PdfDocument(pdfium, handle, address);
}

export class PdfDocument {
  readonly #pdfium: Pdfium;
  readonly #handle: number;
  readonly #address: number;
  readonly pageCount: number;

  constructor(pdfium: Pdfium, handle: number, address: number) {
    this.#pdfium = pdfium;
    this.#handle = handle;
    this.#address = address;
    this.pageCount = this.#call('_FPDF_GetPageCount', handle);
    if (this.pageCount <= parseLimits.pdfPagesMax) return;
    this.close();
    throw failed(`The PDF has ${this.pageCount} pages; at most ${parseLimits.pdfPagesMax} can be read.`);
  }

  close(): void {
    this.#call('_FPDF_CloseDocument', this.#handle);
    this.#call('_free', this.#address);
  }

  /** Opens a page for the length of `use`. A page that is damaged counts as empty (`undefined`). */
  withPage<T>(index: number, use: (page: PdfPage) => T): T {
    const page = this.#call('_FPDF_LoadPage', this.#handle, index);
    const text = page === 0 ? 0 : this.#call('_FPDFText_LoadPage', page);
    try {
      return use(new PdfPage(this.#pdfium, page, text));
    } finally {
      if (text !== 0) this.#call('_FPDFText_ClosePage', text);
      if (page !== 0) this.#call('_FPDF_ClosePage', page);
    }
  }

  metadata(): Omit<ParsedDocument, 'kind' | 'markdown'> {
    const title = this.#infoText('Title');
    const author = this.#infoText('Author');
    const created = pdfDate(this.#infoText('CreationDate'));
    const modified = pdfDate(this.#infoText('ModDate'));
    return {
      ...(title ? { title } : {}),
      ...(author ? { author } : {}),
      ...(created ? { created } : {}),
      ...(modified ? { modified } : {}),
    };
  }

  #infoText(name: string): string {
    const tag = allocateText(this.#pdfium, name);
    const buffer = this.#call('_malloc', infoTextBytesMax);
    try {
      const length = this.#call('_FPDF_GetMetaText', this.#handle, tag, buffer, infoTextBytesMax);
      const bytes = this.#pdfium.HEAPU8.slice(buffer, buffer + Math.min(infoTextBytesMax, Math.max(0, length - 2)));
      return new TextDecoder('utf-16le').decode(bytes).replaceAll('\0', '').trim();
    } finally {
      this.#call('_free', buffer);
      this.#call('_free', tag);
    }
  }

  #call(name: string, ...values: number[]): number {
    return callPdfium(this.#pdfium, name, values);
  }
}

export class PdfPage {
  readonly #pdfium: Pdfium;
  readonly #page: number;
  readonly #text: number;

  constructor(pdfium: Pdfium, page: number, text: number) {
    this.#pdfium = pdfium;
    this.#page = page;
    this.#text = text;
  }

  /** The page's text in the order of the engine. */
  text(): string {
    if (this.#text === 0) return '';
    const count = this.#call('_FPDFText_CountChars', this.#text);
    if (count <= 0) return '';
    const buffer = this.#call('_malloc', (count + 1) * 2);
    try {
      const written = this.#call('_FPDFText_GetText', this.#text, 0, count, buffer);
      return new TextDecoder('utf-16le').decode(
        this.#pdfium.HEAPU8.slice(buffer, buffer + Math.max(0, written - 1) * 2),
      );
    } finally {
      this.#call('_free', buffer);
    }
  }

  get empty(): boolean {
    return this.#page === 0;
  }

  #call(name: string, ...values: number[]): number {
    return callPdfium(this.#pdfium, name, values);
  }
}

function callPdfium(pdfium: Pdfium, name: string, values: number[]): number {
  const call = pdfium[name];
  if (!call) throw new Error(`pdfium has no ${name}`);
  return call(...values);
}

function allocateText(pdfium: Pdfium, text: string): number {
  const bytes = new TextEncoder().encode(`${text}\0`);
  const address = callPdfium(pdfium, '_malloc', [bytes.byteLength]);
  pdfium.HEAPU8.set(bytes, address);
  return address;
}

/** `D:20240131120000+01'00'` as ISO 8601. */
function pdfDate(value: string): string | undefined {
  const match = /^(?:D:)?(\d{4})(\d{2})?(\d{2})?(\d{2})?(\d{2})?(\d{2})?\s*(?:([+-])(\d{2})'?(\d{2})?'?|Z)?/.exec(
    value,
  );
  if (!match) return undefined;
  const [
    ,
    year,
    month = '01',
    day = '01',
    hour = '00',
    minute = '00',
    second = '00',
    sign,
    zoneHour = '00',
    zoneMinute = '00',
  ] = match;
  const zone = sign === undefined ? 'Z' : `${sign}${zoneHour}:${zoneMinute}`;
  const time = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}${zone}`);
  return Number.isNaN(time) ? undefined : new Date(time).toISOString();
}
