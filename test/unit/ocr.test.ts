import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ParserPool } from '../../src/content/parse/pool/pool.ts';
import { type ParsedDocument, ParseError } from '../../src/content/parse/types.ts';
import { createLogger } from '../../src/lib/log.ts';
import { fixture } from '../support/documents.ts';
import { encodeBmp, encodePng, encodeTiff, gifOfLargeFrame } from '../support/pictures.ts';
import { bookOf, drawPicture, makeScan, noisy } from '../support/scans.ts';

const log = createLogger('silent');
const deadlineMs = 60_000;
let pool: ParserPool;

before(() => {
  pool = new ParserPool({ workers: 2, memoryMb: 512, deadlineMs, log });
});

after(() => pool.close());

function line(text: string, y: number, size = 11, x = 60): string {
  return `BT /F1 ${size} Tf ${x} ${y} Td (${text}) Tj ET`;
}

const sentence = 'The harbour master counts the ships that come and go with every tide.';
const letter = [line('Harbour report', 740, 20), line(sentence, 705), line(sentence, 690)].join('\n');

function parse(bytes: Uint8Array, filename = 'scan.pdf'): Promise<ParsedDocument> {
  return pool.parse({ bytes, filename });
}

async function failureOf(parsing: Promise<unknown>): Promise<ParseError> {
  const error = await parsing.then(
    () => assert.fail('the document was read'),
    (failure: unknown) => failure,
  );
  assert.ok(error instanceof ParseError, String(error));
  return error;
}

test('a scan without a text layer is read out of the box, with its heading, and says so', async () => {
  const { markdown, ocr, pages } = await parse(bookOf([await drawPicture(letter)]));
  assert.match(markdown, /^# Harbour report$/m);
  assert.ok(markdown.includes(`${sentence} ${sentence}`), markdown);
  assert.equal(pages, 1);
  assert.deepEqual(ocr?.pages, [1]);
  assert.ok(ocr.confidence > 0.8 && ocr.confidence <= 1, String(ocr.confidence));
});

test('only pages without a text layer are recognised, each in its place', async () => {
  const book = bookOf([letter.replace('report', 'letter'), await drawPicture(letter), letter]);
  const { markdown, ocr } = await parse(book);
  assert.deepEqual(ocr?.pages, [2]);
  assert.match(markdown, /# Harbour letter[\s\S]*<!-- page 2 -->[\s\S]*# Harbour report[\s\S]*<!-- page 3 -->/);
});

test('a crooked, grainy and blurred scan is read', async () => {
  const paragraphs = [...Array(12).keys()].map((row) => line(sentence, 700 - row * 15));
  const { markdown } = await parse(await makeScan(bookOf([paragraphs.join('\n')]), noisy, 3));
  const words = markdown.replaceAll(/\s+/g, ' ').split(sentence).length - 1;
  assert.ok(words >= 10, markdown);
});

test('a ruled table of a scan is a table', async () => {
  const rows = [
    ['Ship', 'Port', 'Tons'],
    ['Aurora', 'Bergen', '1200'],
    ['Boreas', 'Stavanger', '900'],
    ['Cygnus', 'Trondheim', '450'],
  ];
  const content = [line(sentence, 740)];
  rows.forEach((cells, row) => {
    cells.forEach((cell, column) => {
      content.push(line(cell, 680 - row * 24, 11, 80 + column * 140));
    });
  });
  for (let row = 0; row <= rows.length; row++) content.push(`70 ${696 - row * 24} m 490 ${696 - row * 24} l S`);
  for (let column = 0; column <= 3; column++) content.push(`${70 + column * 140} 696 m ${70 + column * 140} 600 l S`);
  const { markdown } = await parse(bookOf([await drawPicture(content.join('\n'))]));
  for (const cells of rows) assert.ok(markdown.includes(`| ${cells.join(' | ')} |`), markdown);
});

/** Drawing operations of a table: the rules, and the texts close to them. */
function narrowTable(rows: string[][], top: number): string {
  const height = 14;
  const edges = [70];
  for (const width of [26, 76, 46, 40]) edges.push((edges.at(-1) ?? 0) + width);
  const bottom = top - rows.length * height;
  return [
    ...rows.flatMap((cells, row) =>
      cells.map((cell, column) => line(cell, top - (row + 1) * height + 3.5, 10, (edges[column] ?? 0) + 3)),
    ),
    ...Array.from(
      { length: rows.length + 1 },
      (_, row) => `70 ${top - row * height} m ${edges.at(-1)} ${top - row * height} l S`,
    ),
    ...edges.map((x) => `${x} ${top} m ${x} ${bottom} l S`),
  ].join('\n');
}

const parts = [
  ['No.', 'Item', 'Date', 'Code'],
  ['16', 'Returned hinge', '10/22/23', 'K45/74'],
  ['64', 'Pending south', '12/28/24', 'X02/58'],
  ['11', 'Harbour valve', '9/23/21', 'A80/02'],
];

function assertRows(markdown: string, rows: string[][]): void {
  for (const cells of rows) assert.ok(markdown.includes(`| ${cells.join(' | ')} |`), markdown);
}

test('the cells of a scanned table whose texts almost touch its rules keep their slashes', async () => {
  const table = bookOf([`${line(sentence, 740)}\n${narrowTable(parts, 690)}`]);
  const clean = await parse(await makeScan(table, undefined, 1));
  assertRows(clean.markdown, parts);
  assert.ok(clean.markdown.includes(sentence), clean.markdown);
  assertRows((await parse(await makeScan(table, noisy, 1))).markdown, [parts[2] ?? []]);
});

test('white text in the dark header of a scanned table is read', async () => {
  const dark = '0.2 g 70 676 188 14 re f 0 g';
  const head = `1 g\n${narrowTable(parts, 690).split('\n').slice(0, 4).join('\n')}\n0 g`;
  const table = [line(sentence, 740), dark, narrowTable(parts, 690), head].join('\n');
  const { markdown } = await parse(bookOf([await drawPicture(table)]));
  assertRows(markdown, parts);
});

test('a scanned table whose cells have boxes of their own is a table', async () => {
  const boxes = parts.flatMap((cells, row) =>
    cells.map((cell, column) => {
      const [x, y] = [70 + column * 95, 660 - row * 18];
      return `${line(cell, y + 4, 10, x + 3)}\n${x} ${y} 93.5 16.5 re S`;
    }),
  );
  const { markdown } = await parse(bookOf([await drawPicture(`${line(sentence, 740)}\n${boxes.join('\n')}`)]));
  assertRows(markdown, parts);
});

test('a scanned table with dashed or double rules is a table, and none of its words is lost', async () => {
  const rows = ['Aurora Bergen 1200', 'Boreas Stavanger 900', 'Castor Trondheim 450', 'Dorado Tromso 730']
    .map((row) => row.split(' '))
    .map(([ship = '', port = '', tons = '']) => [ship, port, tons]);
  const texts = rows.flatMap((cells, row) => cells.map((cell, at) => line(cell, 680 - row * 18, 11, 80 + at * 140)));
  const rules = [0, 1, 2, 3, 4]
    .map((row) => `70 ${694 - row * 18} m 490 ${694 - row * 18} l S`)
    .concat([0, 1, 2, 3].map((column) => `${70 + column * 140} 694 m ${70 + column * 140} 622 l S`));
  const doubled = rules.flatMap((rule) => [
    '1 w',
    `q 1 0 0 1 -0.9 -0.9 cm ${rule} Q`,
    `q 1 0 0 1 0.9 0.9 cm ${rule} Q`,
  ]);
  for (const drawn of [['[2.25 2.25] 0 d 0.75 w', ...rules], doubled]) {
    const content = [line(sentence, 740), ...texts, ...drawn].join('\n');
    for (const spoiling of [undefined, noisy]) {
      const { markdown } = await parse(await makeScan(bookOf([content]), spoiling, 1));
      assertRows(markdown, rows);
    }
  }
});

test('the text around a large table of a grainy scan is read', async () => {
  const rows = [...Array(22).keys()];
  const texts = rows.flatMap((row) =>
    [`Ship ${row}`, 'Bergen', `${1200 + row}`].map((cell, at) => line(cell, 680 - row * 20, 9, 80 + at * 140)),
  );
  const rules = [
    ...[...rows, rows.length].map((row) => `70 ${694 - row * 20} m 490 ${694 - row * 20} l S`),
    ...[0, 1, 2, 3].map((column) => `${70 + column * 140} 694 m ${70 + column * 140} 254 l S`),
  ];
  const around = [740, 725, 224, 209, 194, 179].map((y) => line(sentence, y, 9));
  const page = [...around, ...texts, ...rules].join('\n');
  const { markdown } = await parse(await makeScan(bookOf([page]), noisy, 1));
  assert.equal(markdown.replaceAll(/\s+/g, ' ').split(sentence).length - 1, around.length, markdown);
});

test('pictures of every common format are documents of one page', async () => {
  const picture = await drawPicture(letter, 130);
  const files: [string, Uint8Array][] = [
    ['a.png', encodePng(picture)],
    ['a.bmp', encodeBmp(picture)],
    ['a.tiff', encodeTiff(picture)],
    ...['sample.jpg', 'sample.webp', 'sample.gif'].map((name): [string, Uint8Array] => [name, fixture(name)]),
  ];
  for (const [name, bytes] of files) {
    const { markdown, kind, pages, ocr } = await parse(bytes, name);
    assert.match(markdown, /Harbour report/, name);
    assert.deepEqual([kind, pages, ocr?.pages], ['image', 1, [1]], name);
  }
});

test('a picture that a camera turned is read upright', async () => {
  const { markdown } = await parse(fixture('turned.jpg'), 'turned.jpg');
  assert.match(markdown, /Harbour report/);
});

test('a picture of too many pixels is refused by its header, and a truncated one is damaged', async () => {
  const picture = encodePng(await drawPicture(letter, 130));
  const huge = Buffer.from(picture);
  huge.writeUInt32BE(60_000, 16);
  huge.writeUInt32BE(60_000, 20);
  const tooLarge = await failureOf(parse(huge, 'huge.png'));
  assert.match(tooLarge.message, /more than 40 million pixels/);
  assert.match((await failureOf(parse(gifOfLargeFrame(), 'huge.gif'))).message, /more than 40 million pixels/);
  const cut = await failureOf(parse(picture.subarray(0, 200), 'cut.png'));
  assert.equal(cut.reason, 'extraction_failed');
});

test('a picture without any text says so', async () => {
  const { reason, message } = await failureOf(parse(encodePng(await drawPicture('', 100)), 'blank.png'));
  assert.deepEqual([reason, /No text could be recognised/.test(message)], ['extraction_failed', true]);
});

test('recognition reports its progress and ends when it is cancelled', async () => {
  const page = await drawPicture(letter);
  const cancel = new AbortController();
  const seen: [number, number][] = [];
  const parsing = pool.parse(
    { bytes: bookOf(Array.from({ length: 30 }, () => page)), filename: 'scan.pdf' },
    {
      signal: cancel.signal,
      onProgress(done, total) {
        seen.push([done, total]);
        cancel.abort(new Error('no longer wanted'));
      },
    },
  );
  await assert.rejects(parsing, /no longer wanted/);
  assert.ok(seen.length > 0 && seen.every(([done, total]) => done > 0 && done < total && total === 30));
  assert.match((await parse(Buffer.from('still here'), 'a.txt')).markdown, /still here/);
});

test('where no data of a language is installed, the error names the package', async () => {
  const poor = new ParserPool({ workers: 1, memoryMb: 512, deadlineMs, log, ocr: { languages: ['eng', 'xyz'] } });
  try {
    const scan = bookOf([await drawPicture(letter)]);
    for (const [bytes, filename] of [
      [scan, 'scan.pdf'],
      [encodePng(await drawPicture(letter, 130)), 'a.png'],
    ] as const) {
      const { reason, message } = await failureOf(poor.parse({ bytes, filename }));
      assert.equal(reason, 'unsupported_content');
      assert.match(message, /no OCR data is installed for xyz\. Install @tesseract\.js-data\/xyz to read it\./);
    }
    const mixed = await poor.parse({ bytes: bookOf([letter, await drawPicture(letter)]) });
    assert.match(mixed.markdown, /# Harbour report[\s\S]*page 2 is a picture without text/);
  } finally {
    await poor.close();
  }
});
