import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDocument } from '../../src/content/parse/parse.ts';
import { buildPdf } from '../../src/content/parse/sample-pdf.ts';
import { handbookPdf } from '../support/handbook-pdf.ts';

const line = (text: string, x: number, y: number): string => `BT /F1 10 Tf ${x} ${y} Td (${text}) Tj ET`;

async function read(...content: string[]): Promise<string> {
  return (await parseDocument({ bytes: buildPdf([content.join('\n')]) })).markdown.trim();
}

test('cells with several lines form a table without rules if white space sets off its rows', async () => {
  const markdown = await read(
    line('The harbour has three berths, which differ in their depth and in what they are for.', 72, 700),
    ...[line('Berth', 72, 676), line('For whom', 172, 676), line('Where it is', 322, 676)],
    ...[line('North', 72, 646), line('ships that stay for more', 172, 652), line('than a night', 172, 640)],
    line('beside the old crane', 322, 646),
    ...[line('South quay', 72, 622), line('and pier', 72, 610), line('ferries', 172, 616)],
    ...[line('at the end of the road', 322, 622), line('to the station', 322, 610)],
    ...[line('East', 72, 586), line('boats', 172, 586), line('behind the breakwater', 322, 586)],
    line('All of them are assigned by the harbour master, who keeps a list of the ships that come.', 72, 560),
    line('It can be read by everyone at the office, on all days of the week and in every season.', 72, 548),
  );
  assert.equal(
    markdown,
    [
      'The harbour has three berths, which differ in their depth and in what they are for.\n',
      '| Berth | For whom | Where it is |',
      '| --- | --- | --- |',
      '| North | ships that stay for more than a night | beside the old crane |',
      '| South quay and pier | ferries | at the end of the road to the station |',
      '| East | boats | behind the breakwater |\n',
      'All of them are assigned by the harbour master, who keeps a list of the ships that come. It can be read by everyone at the office, on all days of the week and in every season.',
    ].join('\n'),
  );
});

test('numbered paragraphs that are set off and columns of prose are no tables', async () => {
  const items = [1, 2, 3, 4].flatMap((number) => [
    line(`${number}.`, 72, 700 - number * 40),
    line('A ship that wants to stay tells the harbour master when it comes', 100, 700 - number * 40),
    line('and when it goes', 100, 688 - number * 40),
  ]);
  assert.doesNotMatch(await read(...items), /\|/);
  const column = (x: number): string[] =>
    [0, 1, 2, 3].flatMap((paragraph) => [
      line('Ships came and went as long as the', x, 700 - paragraph * 40),
      line('ice allowed it, and nobody minded.', x, 688 - paragraph * 40),
    ]);
  assert.doesNotMatch(await read(...column(72), ...column(322)), /\|/);
});

test('the boxes of a slide around its title, its text and its footer are no table', async () => {
  const boxes = ['0 0 612 792 re f', '0 720 612 72 re f', '0 0 204 20 re f', '204 0 204 20 re f', '408 0 204 20 re f'];
  const text = [0, 1, 2, 3, 4, 5, 6, 7].map((row) => line(`Line ${row} of what the slide says`, 72, 640 - row * 30));
  const markdown = await read(
    ...boxes.map((box) => `0.9 g ${box} 0 g`),
    ...[line('What is kept', 40, 750), ...text],
    ...[line('A. Pilot', 60, 6), line('Harbour report', 260, 6), line('6 / 16', 480, 6)],
  );
  assert.doesNotMatch(markdown, /\|/);
  assert.match(markdown, /What is kept\n\n.*Line 0 of what the slide says\n\nLine 1/);
});

const harvests = [
  ['2011-2012', '1,087,948', '1,022,490', '292,652'],
  ['2013-2014', '2,586,688', '2,568,738', '647,701'],
  ['2015-2016', '3,867,692', '3,576,723', '935,862'],
];

test('rows of numbers in a typewriter face are a table; lines of code with gaps are none', async () => {
  const drawn = (rows: string[][]) =>
    rows.flatMap((cells, row) =>
      cells.map((text, at) => ({ text, x: 72 + at * 110, y: 700 - row * 13, font: 'code' as const })),
    );
  const table = (await parseDocument({ bytes: handbookPdf([drawn(harvests)]) })).markdown;
  for (const cells of harvests) assert.ok(table.includes(`| ${cells.join(' | ')} |`), table);
  const code = [
    ['let total = 0;', '// tons', 'number'],
    ['for (ship of all)', '// each', 'Ship'],
    ['total += tons;', '// sum', 'number'],
  ];
  assert.doesNotMatch((await parseDocument({ bytes: handbookPdf([drawn(code)]) })).markdown, /\|/);
});

test('a rule that is drawn in pieces, one below each cell, sets off a table like a whole one', async () => {
  const rows = [
    ['Variable', 'Assumption for the years to come'],
    ...['North', 'South'].map((name) => [`${name} quay`, 'The tonnage of ships grows by a tenth each year']),
  ];
  const texts = rows.flatMap((cells, row) => cells.map((cell, at) => line(cell, 72 + at * 160, 700 - row * 14)));
  const rules = [711, 696, 668].flatMap((y) => [`70 ${y} 150 0.7 re f`, `220 ${y} 250 0.7 re f`]);
  const markdown = await read(...texts, ...rules);
  for (const cells of rows) assert.ok(markdown.includes(`| ${cells.join(' | ')} |`), markdown);
});

test('text above the page or left of it is left out, and what does not fit on the page is kept', async () => {
  const proofs = [line('To be removed before printing', 100, 820), line('Plate 3', -90, 600)];
  const text = [line('The harbour has three berths.', 72, 600), line('They are full in summer.', 72, -20)];
  assert.equal(await read(...proofs, ...text), 'The harbour has three berths.\n\nThey are full in summer.');
});
