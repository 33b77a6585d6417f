import { callPdfium, type Pdfium } from './pdfium.ts';

export const textObject = 1;
export const pathObject = 2;
export const imageObject = 3;
export const formObject = 5;

const objectsPerPageMax = 100_000;

/** Visits what the page itself draws, forms as a whole. */
export function eachOwnObject(pdfium: Pdfium, page: number, visit: (object: number, kind: number) => void): void {
  const calls = pdfium.frequent;
  const count = Math.min(objectsPerPageMax, callPdfium(pdfium, 'FPDFPage_CountObjects', [page]));
  for (let index = 0; index < count; index++) {
    const object = calls.FPDFPage_GetObject(page, index);
    visit(object, calls.FPDFPageObj_GetType(object));
  }
}

/** Visits the objects of a page in drawing order, including those inside forms. */
export function eachObject(pdfium: Pdfium, page: number, visit: (object: number, kind: number) => void): void {
  const calls = pdfium.frequent;
  const count = Math.min(objectsPerPageMax, callPdfium(pdfium, 'FPDFPage_CountObjects', [page]));
  let left = objectsPerPageMax;
  const inside = (object: number, depth: number): void => {
    const kind = calls.FPDFPageObj_GetType(object);
    left -= 1;
    if (kind !== formObject || depth > 5) {
      visit(object, kind);
      return;
    }
    const inner = calls.FPDFFormObj_CountObjects(object);
    for (let index = 0; index < inner && left > 0; index++)
      inside(calls.FPDFFormObj_GetObject(object, index), depth + 1);
  };
  for (let index = 0; index < count && left > 0; index++) inside(calls.FPDFPage_GetObject(page, index), 0);
}
