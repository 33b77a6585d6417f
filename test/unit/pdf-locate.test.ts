import assert from 'node:assert/strict';
import { test } from 'node:test';
import { locateTexts } from '../../src/content/parse/pdf/locate.ts';
import { buildPdf } from '../../src/content/parse/sample-pdf.ts';

const line = (y: number, text: string) => `BT /F1 12 Tf 60 ${y} Td (${text}) Tj ET`;
const pages = [
  [line(740, 'Handbook'), line(700, 'Keep the receipt with you.'), line(600, 'Ask us. Keep the receipt with you.')],
  [line(740, 'Handbook'), line(700, 'Parcels leave on the next working day.')],
];
const pdf = buildPdf(pages.map((each) => each.join('\n')));
const locate = async (text: string, before = '', startPage = 1, endPage = startPage) => {
  const [boxes = []] = await locateTexts(pdf, [{ text, before, startPage, endPage }]);
  return boxes.map(({ page, top }) => [page, Math.round(top / 100) * 100]);
};

test('a text that continues on the next page has a rectangle on each', async () => {
  const text = 'receipt with you.\n\n<!-- page 2 -->\n\nParcels leave on';
  assert.deepEqual(await locate(text, 'Ask us. Keep the', 1, 2), [
    [1, 200],
    [2, 100],
  ]);
});

test('of two equal texts, the one after the same words is found', async () => {
  assert.deepEqual(await locate('Keep the receipt', 'Handbook'), [[1, 100]]);
  assert.deepEqual(await locate('Keep the receipt', 'with you. Ask us.'), [[1, 200]]);
});

test('a text that is not there as a whole has no rectangles', async () => {
  assert.deepEqual(await locate('Keep the receipt with us.'), []);
  assert.deepEqual(await locate('Parcels leave', '', 1), []);
  assert.deepEqual(await locate('Parcels leave', '', 7), []);
});
