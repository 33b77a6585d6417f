import { parseLimits } from '../limits.ts';
import { failed, type ParsedDocument, unsupported } from '../types.ts';
import { takeReplacements } from './actual-text.ts';
import { PdfPage } from './page.ts';
import { callPdfium, loadPdfium, type Pdfium } from './pdfium.ts';

const errorPassword = 4;
const errorSecurity = 5;
const infoTextBytesMax = 8_192;
const annotationsMax = 500;
const freeTextAnnotation = 3;
const widgetAnnotation = 20;
const flattened = 1;

/** Opens a PDF. The caller closes it. Throws ParseError. */
export async function openPdf(bytes: Uint8Array): Promise<PdfDocument> {
  const pdfium = await loadPdfium();
  const address = pdfium.calls.malloc?.(bytes.byteLength) ?? 0;
  if (address === 0) throw failed('The PDF is too large.');
  pdfium.HEAPU8.set(bytes, address);
  const handle = pdfium.calls.FPDF_LoadMemDocument?.(address, bytes.byteLength, 0) ?? 0;
  if (handle === 0) {
    const code = pdfium.calls.FPDF_GetLastError?.();
    pdfium.calls.free?.(address);
    if (code === errorPassword) throw unsupported('The PDF is encrypted and needs a password to open.');
    if (code === errorSecurity) throw unsupported('The PDF uses an unsupported encryption.');
    throw failed('The PDF is damaged or truncated and cannot be opened.');
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
    this.pageCount = this.#call('FPDF_GetPageCount', handle);
    if (this.pageCount <= parseLimits.pdfPagesMax) return;
    this.close();
    throw failed(`The PDF has ${this.pageCount} pages; at most ${parseLimits.pdfPagesMax} can be read.`);
  }

  close(): void {
    this.#call('FPDF_CloseDocument', this.#handle);
    this.#call('free', this.#address);
  }

  /** Opens a page for the duration of `use`. A damaged page counts as empty (`undefined`). */
  withPage<T>(index: number, use: (page: PdfPage) => T): T {
    let page = this.#call('FPDF_LoadPage', this.#handle, index);
    if (page !== 0 && this.#hasFilledFields(page) && this.#call('FPDFPage_Flatten', page, 0) === flattened) {
      this.#call('FPDF_ClosePage', page);
      page = this.#call('FPDF_LoadPage', this.#handle, index);
    }
    const replacements = page === 0 ? new Map() : takeReplacements(this.#pdfium, page);
    const text = page === 0 ? 0 : this.#call('FPDFText_LoadPage', page);
    try {
      return use(new PdfPage(this.#pdfium, page, text, replacements));
    } finally {
      if (text !== 0) this.#call('FPDFText_ClosePage', text);
      if (page !== 0) this.#call('FPDF_ClosePage', page);
    }
  }

  /** Flattens form fields and free text annotations: only then is their text part of the page. */
  #hasFilledFields(page: number): boolean {
    const count = Math.min(annotationsMax, this.#call('FPDFPage_GetAnnotCount', page));
    for (let index = 0; index < count; index++) {
      const annotation = this.#call('FPDFPage_GetAnnot', page, index);
      if (annotation === 0) continue;
      const kind = this.#call('FPDFAnnot_GetSubtype', annotation);
      this.#call('FPDFPage_CloseAnnot', annotation);
      if (kind === freeTextAnnotation || kind === widgetAnnotation) return true;
    }
    return false;
  }

  metadata(): Omit<ParsedDocument, 'kind' | 'markdown'> {
    const title = ignoreDefaultTitle(this.#infoText('Title'));
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
    const buffer = this.#call('malloc', infoTextBytesMax);
    try {
      const length = this.#call('FPDF_GetMetaText', this.#handle, tag, buffer, infoTextBytesMax);
      const bytes = this.#pdfium.HEAPU8.slice(buffer, buffer + Math.min(infoTextBytesMax, Math.max(0, length - 2)));
      return new TextDecoder('utf-16le').decode(bytes).replaceAll('\0', '').trim();
    } finally {
      this.#call('free', buffer);
      this.#call('free', tag);
    }
  }

  #call(name: string, ...values: number[]): number {
    return callPdfium(this.#pdfium, name, values);
  }
}

function allocateText(pdfium: Pdfium, text: string): number {
  const bytes = new TextEncoder().encode(`${text}\0`);
  const address = callPdfium(pdfium, 'malloc', [bytes.byteLength]);
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

/** Default titles that programs write are ignored. */
function ignoreDefaultTitle(title: string): string {
  const bare = title.replace(/^Microsoft (?:Word|PowerPoint|Excel) - /i, '').trim();
  return /^(?:untitled.*|\(anonymous\)|(?:slide|page|document) ?\d*|\S+\.(?:docx?|pptx?|xlsx?|odt|indd|tex|dvi|ps|pdf|qxd|fm))$/i.test(
    bare,
  )
    ? ''
    : bare;
}
