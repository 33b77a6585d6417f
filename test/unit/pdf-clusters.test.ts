import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parseDocument } from '../../src/content/parse/parse.ts';
import { orderClusters } from '../../src/content/parse/pdf/clusters.ts';

/** PDFs that Chromium printed from one sentence each. It marks clusters and ligatures with the text they stand for. */
async function read(name: string): Promise<string> {
  const bytes = readFileSync(new URL(`../fixtures/documents/${name}.pdf`, import.meta.url));
  return (await parseDocument({ bytes })).markdown.replaceAll(/\s+/g, ' ').trim();
}

test('Hindi clusters of a PDF are read as the text that they stand for, and words keep their spaces', async () => {
  const text = 'छोटा बंदरगाह द्वीप के उत्तरी किनारे पर स्थित है और यात्री टिकट ख़रीदते हैं।';
  assert.equal(await read('clusters-hindi'), text);
});

test('Thai letters of a PDF have each mark once, and no spaces within a phrase', async () => {
  const text = await read('clusters-thai');
  for (const phrase of ['ท่าเรือเล็กตั้งอยู่ทางทิศเหนือของเกาะ', 'แรกออกเวลา 6:30 น.'])
    assert.ok(text.includes(phrase), `${phrase} is not in ${text}`);
});

test('words with ligatures stay whole', async () => {
  assert.equal(await read('ligatures'), 'The office offers coffee after five; the waffles differ.');
});

test('vowels listed as they are drawn are put after their consonants', () => {
  assert.equal(orderClusters('िकनारे िस्थत जहाज़ाें आेर'), 'किनारे स्थित जहाज़ों ओर');
  assert.equal(orderClusters('ลํา นํ้า น้ํา'), 'ลำ น้ำ น้ำ');
  assert.equal(orderClusters('किनारे स्थित ओर ลำ น้ำ'), 'किनारे स्थित ओर ลำ น้ำ');
});
