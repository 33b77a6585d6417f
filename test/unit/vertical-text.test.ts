import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDocument } from '../../src/content/parse/parse.ts';
import { verticalPdf } from '../support/vertical-pdf.ts';

const sentence =
  '朝、汽船は港を出ました。船長は天気を書きました。風は弱く、波は低く、カモメが「まだ遠い」と鳴いています。夕方、汽船は次の港に着きました。';

function columnsOf(text: string, length = 20): string[] {
  return Array.from({ length: Math.ceil(text.length / length) }, (_unused, at) =>
    text.slice(at * length, (at + 1) * length),
  );
}

async function read(bytes: Uint8Array): Promise<string> {
  return (await parseDocument({ bytes })).markdown.trim();
}

test('a page of vertical Japanese is read from right to left, its columns joined into paragraphs', async () => {
  const text = sentence.repeat(3);
  assert.equal(await read(verticalPdf(columnsOf(text))), text);
});

test('a line from left to right on a vertical page stays one', async () => {
  const parts = (await read(verticalPdf(columnsOf(sentence), { horizontal: '三月の航海 12' }))).split('\n\n');
  assert.deepEqual(parts, [sentence, '三月の航海 12']);
});

test('a page of horizontal Japanese is not a vertical one', async () => {
  assert.equal(await read(verticalPdf([], { horizontal: columnsOf(sentence)[0] ?? '' })), sentence.slice(0, 20));
});
