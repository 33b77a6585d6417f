import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ParserPool } from '../../src/content/parse/pool/pool.ts';
import { type ParsedDocument, ParseError } from '../../src/content/parse/types.ts';
import { createLogger } from '../../src/lib/log.ts';
import { openDocument } from '../support/documents.ts';
import { relations, zip } from '../support/office-parts.ts';
import { encodePng } from '../support/pictures.ts';
import { drawPicture } from '../support/scans.ts';

const log = createLogger('silent');
const sentence = 'The harbour master counts the ships that come and go with every tide.';
let pool: ParserPool;
let pages: Uint8Array[];

before(async () => {
  pool = new ParserPool({ workers: 1, memoryMb: 512, deadlineMs: 60_000, log });
  const draw = (title: string): string =>
    `BT /F1 20 Tf 60 740 Td (${title}) Tj ET BT /F1 11 Tf 60 700 Td (${sentence}) Tj ET`;
  const drawn = await Promise.all(['Harbour contract', 'Annex one'].map((title) => drawPicture(draw(title), 200)));
  pages = drawn.map(encodePng);
});

after(() => pool.close());

function parse(bytes: Uint8Array, filename: string): Promise<ParsedDocument> {
  return pool.parse({ bytes, filename });
}

const images: [string, string, string][] = [
  ['rId1', 'image', 'media/image1.png'],
  ['rId2', 'image', 'media/image2.png'],
];

function word(text: string, described = ''): Uint8Array {
  const shown = images.map(
    ([id]) =>
      `<w:p><w:r><w:drawing><wp:inline><wp:docPr descr="${described}"/><a:blip r:embed="${id}"/></wp:inline></w:drawing></w:r></w:p>`,
  );
  return zip({
    '_rels/.rels': relations([['rId1', 'officeDocument', 'word/document.xml']]),
    'word/_rels/document.xml.rels': relations(images),
    'word/document.xml': `<w:document xmlns:w="w" xmlns:wp="wp" xmlns:a="a" xmlns:r="r"><w:body>${shown.join('')}<w:p><w:r><w:t>${text}</w:t></w:r></w:p></w:body></w:document>`,
    'word/media/image1.png': pages[0] ?? '',
    'word/media/image2.png': pages[1] ?? '',
  });
}

const bothPages = new RegExp(`# Harbour contract\\s+${sentence}\\s+<!-- page 2 -->\\s+## Annex one\\s+${sentence}`);

test('the pages of a Word file that was scanned are recognised, in spite of their numbers and descriptions', async () => {
  const { markdown, ocr, kind } = await parse(word('2', 'A close-up of a document'), 'contract.docx');
  assert.equal(kind, 'docx');
  assert.match(markdown, bothPages);
  assert.deepEqual(ocr?.pages, [1, 2]);
});

test('pictures in a document that has text are not recognised', async () => {
  const { markdown, ocr } = await parse(word('The contract is in the pictures above.'), 'contract.docx');
  assert.equal(ocr, undefined);
  assert.equal(markdown, 'The contract is in the pictures above.\n');
});

test('slides that are pictures are recognised, each below its mark', async () => {
  const slide =
    '<p:sld xmlns:p="p" xmlns:a="a" xmlns:r="r"><p:cSld><p:spTree><p:pic><p:blipFill><a:blip r:embed="rId1"/></p:blipFill></p:pic></p:spTree></p:cSld></p:sld>';
  const deck = zip({
    '_rels/.rels': relations([['rId1', 'officeDocument', 'ppt/presentation.xml']]),
    'ppt/_rels/presentation.xml.rels': relations([
      ['rId1', 'slide', 'slides/slide1.xml'],
      ['rId2', 'slide', 'slides/slide2.xml'],
    ]),
    'ppt/presentation.xml':
      '<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst><p:sldId r:id="rId1"/><p:sldId r:id="rId2"/></p:sldIdLst></p:presentation>',
    'ppt/slides/slide1.xml': slide,
    'ppt/slides/slide2.xml': slide,
    'ppt/slides/_rels/slide1.xml.rels': relations([['rId1', 'image', '../media/image1.png']]),
    'ppt/slides/_rels/slide2.xml.rels': relations([['rId1', 'image', '../media/image2.png']]),
    'ppt/media/image1.png': pages[0] ?? '',
    'ppt/media/image2.png': pages[1] ?? '',
  });
  const { markdown, ocr } = await parse(deck, 'deck.pptx');
  assert.match(markdown, /# Harbour contract[^<]*<!-- slide 2 -->\s+# Annex one/);
  assert.deepEqual(ocr?.pages, [1, 2]);
});

const openTypes = {
  odt: ['text', /# Harbour contract[^<]*<!-- page 2 -->\s+## Annex one/],
  odp: ['presentation', /# Harbour contract[^<]*<!-- slide 2 -->\s+# Annex one/],
} as const;

for (const [extension, [type, expected]] of Object.entries(openTypes))
  test(`an ${extension.toUpperCase()} file that consists of pictures is recognised`, async () => {
    const frames = ['page1', 'page2'].map(
      (name) => `<draw:frame><draw:image xlink:href="Pictures/${name}.png"/></draw:frame>`,
    );
    const body =
      extension === 'odt'
        ? `<office:text>${frames.map((one) => `<text:p>${one}</text:p>`).join('')}</office:text>`
        : `<office:presentation>${frames.map((one) => `<draw:page>${one}</draw:page>`).join('')}</office:presentation>`;
    const [first = '', second = ''] = pages;
    const parts = { 'Pictures/page1.png': first, 'Pictures/page2.png': second };
    const file = openDocument(`application/vnd.oasis.opendocument.${type}`, body, parts);
    const { markdown, ocr } = await parse(file, `scan.${extension}`);
    assert.match(markdown, expected);
    assert.deepEqual(ocr?.pages, [1, 2]);
  });

test('a scanned Word file is refused with the reason where no language data is installed', async (t) => {
  const without = new ParserPool({
    ...{ workers: 1, memoryMb: 512, deadlineMs: 60_000, log },
    ocr: { languages: ['tlh'] },
  });
  t.after(() => without.close());
  await assert.rejects(without.parse({ bytes: word(''), filename: 'contract.docx' }), (error) => {
    assert.ok(error instanceof ParseError);
    assert.equal(error.reason, 'unsupported_content');
    assert.match(error.message, /its pages are pictures without text, and .*tlh/);
    return true;
  });
});
