import type { Knowledge } from '../knowledge/domain.ts';
import { parseId } from '../lib/ids.ts';
import type { Caller } from '../tenancy/caller.ts';

type Place = { start_byte: number; end_byte: number; start_page?: number; end_page?: number };
type Quote = { document?: string; places?: Place[] };

/** Returns the quotes with the rectangles of their places on the pages of the PDFs that their documents come from. */
export async function withBoxes<Q extends Quote>(
  { boxes }: Pick<Knowledge, 'boxes'>,
  caller: Caller,
  quotes: readonly Q[],
  signal?: AbortSignal,
): Promise<Q[]> {
  const located = [...quotes];
  for (const [document, own] of Map.groupBy(located.keys(), (at) => quotes[at]?.document)) {
    const id = document === undefined ? undefined : parseId('document', document);
    if (id === undefined) continue;
    const places = own.flatMap((at) => quotes[at]?.places ?? []);
    const found = await boxes.locate(caller, id, places.map(placeOf), signal);
    let next = 0;
    for (const at of own) {
      const quote = quotes[at];
      if (quote?.places === undefined) continue;
      const shown = quote.places.map((place) => ({ ...place, boxes: (found[next++] ?? []).map(presentBox) }));
      located[at] = { ...quote, places: shown };
    }
  }
  return located;
}

function placeOf({ start_byte: startByte, end_byte: endByte, start_page: startPage, end_page: endPage }: Place) {
  return { startByte, endByte, startPage, endPage };
}

type Box = Awaited<ReturnType<Knowledge['boxes']['locate']>>[number][number];

function presentBox({ page, left, top, right, bottom, pageWidth, pageHeight }: Box) {
  const [page_width, page_height] = [rounded(pageWidth), rounded(pageHeight)];
  return {
    ...{ page, left: rounded(left), top: rounded(top), right: rounded(right), bottom: rounded(bottom) },
    ...{ page_width, page_height },
  };
}

const rounded = (points: number) => Math.round(points * 100) / 100;
