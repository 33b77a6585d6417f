import { callPdfium, type Pdfium } from './pdfium.ts';

/** An element of the page's logical structure. */
export type StructureElement = {
  role: string;
  alternative: string;
  /** BCP 47, on the outermost elements only. */
  language: string;
  /** Columns and rows that a table cell spans. */
  columns: number;
  rows: number;
  children: (StructureElement | number)[];
};

const structureDepthMax = 60;
const elementsMax = 200_000;

/** A page's part of the logical structure; empty when the file has none. */
export function readStructure(pdfium: Pdfium, page: number): StructureElement[] {
  const tree = callPdfium(pdfium, 'FPDF_StructTree_GetForPage', [page]);
  if (tree === 0) return [];
  const reader = new StructureReader(pdfium);
  try {
    return reader.read(tree);
  } finally {
    reader.close();
    callPdfium(pdfium, 'FPDF_StructTree_Close', [tree]);
  }
}

const textBytesMax = 1024;

class StructureReader {
  readonly #pdfium: Pdfium;
  readonly #address: number;
  #left = elementsMax;

  constructor(pdfium: Pdfium) {
    this.#pdfium = pdfium;
    this.#address = this.#call('malloc', textBytesMax);
  }

  close(): void {
    this.#call('free', this.#address);
  }

  read(tree: number): StructureElement[] {
    const count = this.#call('FPDF_StructTree_CountChildren', tree);
    const elements: StructureElement[] = [];
    for (let index = 0; index < count; index++) {
      const child = this.#call('FPDF_StructTree_GetChildAtIndex', tree, index);
      if (child !== 0) elements.push(this.#element(child, 0));
    }
    return elements;
  }

  #element(handle: number, depth: number): StructureElement {
    const element: StructureElement = {
      role: this.#text('FPDF_StructElement_GetType', handle),
      alternative: this.#text('FPDF_StructElement_GetAltText', handle),
      language: depth === 0 ? this.#text('FPDF_StructElement_GetLang', handle) : '',
      columns: 1,
      rows: 1,
      children: [],
    };
    if (/^t[dh]$/i.test(element.role)) {
      element.columns = this.#span(handle, 'ColSpan');
      element.rows = this.#span(handle, 'RowSpan');
    }
    const count = this.#call('FPDF_StructElement_CountChildren', handle);
    for (let index = 0; index < count && this.#left > 0; index++) {
      this.#left -= 1;
      const child = this.#call('FPDF_StructElement_GetChildAtIndex', handle, index);
      if (child !== 0) {
        if (depth < structureDepthMax) element.children.push(this.#element(child, depth + 1));
        continue;
      }
      const content = this.#call('FPDF_StructElement_GetChildMarkedContentID', handle, index);
      if (content >= 0) element.children.push(content);
    }
    return element;
  }

  #span(handle: number, name: string): number {
    const address = this.#address;
    this.#pdfium.HEAPU8.set(new TextEncoder().encode(`${name}\0`), address);
    let span = 1;
    const count = Math.min(8, this.#call('FPDF_StructElement_GetAttributeCount', handle));
    for (let index = 0; index < count; index++) {
      const attribute = this.#call('FPDF_StructElement_GetAttributeAtIndex', handle, index);
      const value = attribute === 0 ? 0 : this.#call('FPDF_StructElement_Attr_GetValue', attribute, address);
      if (value === 0 || this.#call('FPDF_StructElement_Attr_GetNumberValue', value, address + 16) === 0) continue;
      span = new DataView(this.#pdfium.HEAPU8.buffer, address + 16, 4).getFloat32(0, true);
    }
    return Math.min(50, Math.max(1, Math.round(span) || 1));
  }

  #text(name: string, handle: number): string {
    const length = Math.min(textBytesMax, this.#call(name, handle, this.#address, textBytesMax));
    if (length <= 2) return '';
    return new TextDecoder('utf-16le').decode(this.#pdfium.HEAPU8.slice(this.#address, this.#address + length - 2));
  }

  #call(name: string, ...values: number[]): number {
    return callPdfium(this.#pdfium, name, values);
  }
}
