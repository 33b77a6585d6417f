import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDocument } from '../../src/content/parse/parse.ts';
import type { Line, Segment } from '../../src/content/parse/pdf/lines.ts';
import { buildParagraphs } from '../../src/content/parse/pdf/paragraphs.ts';
import { structuredBlocks } from '../../src/content/parse/pdf/structure.ts';
import type { StructureElement } from '../../src/content/parse/pdf/structure-tree.ts';
import { WordList } from '../../src/content/parse/pdf/words.ts';
import { buildPdf } from '../../src/content/parse/sample-pdf.ts';

const line = (text: string, x: number, y: number): string => `BT /F1 10 Tf ${x} ${y} Td (${text}) Tj ET`;
const square = (x: number, y: number, size = 3.5): string => `${x} ${y} ${size} ${size} re f`;

async function read(...content: string[]): Promise<string> {
  return (await parseDocument({ bytes: buildPdf([content.join('\n')]) })).markdown.trim();
}

test('bullets that a browser draws as shapes start items, nested by their indent', async () => {
  const markdown = await read(
    line('The harbour has two kinds of berths:', 72, 700),
    ...[square(84, 686), line('Berths for ships that stay for more than a night, which are', 96, 684)],
    line('paid for by the day', 96, 672),
    ...[square(108, 662), line('with water', 120, 660)],
    ...[square(108, 650), line('without water', 120, 648)],
    ...[square(84, 638), line('Berths for loading', 96, 636)],
    line('Both are assigned by the harbour master, who keeps a list of them.', 72, 612),
  );
  assert.equal(
    markdown,
    [
      'The harbour has two kinds of berths:\n',
      '- Berths for ships that stay for more than a night, which are paid for by the day',
      '    - with water',
      '    - without water',
      '- Berths for loading\n',
      'Both are assigned by the harbour master, who keeps a list of them.',
    ].join('\n'),
  );
});

test('points of a drawing, and shapes between words or larger than letters, are not bullets', async () => {
  const markdown = await read(
    ...[square(100, 702), line('A', 108, 700), square(200, 652), line('P2', 208, 650)],
    ...[line('The first', 72, 600), square(116, 602), line('and the second', 124, 600)],
    ...[square(60, 549, 8), line('A box to tick', 72, 550)],
  );
  assert.doesNotMatch(markdown, /^\s*-|•/m);
});

test('lines of a cell in smaller type belong to one row, although the other cells are in larger type', async () => {
  const cell = (text: string, x: number, y: number, size = 10): string =>
    `BT /F1 ${size} Tf ${x} ${y} Td (${text}) Tj ET`;
  const markdown = await read(
    ...[cell('Berth', 72, 700), cell('Ships', 160, 700), cell('Names', 260, 700)],
    ...[cell('North', 72, 682), cell('2', 160, 682), cell('Alma, Berta and', 260, 682, 8), cell('Clara', 260, 670, 8)],
    ...[cell('South', 72, 652), cell('1', 160, 652), cell('Dora', 260, 652, 8)],
    ...[cell('West', 72, 634), cell('3', 160, 634), cell('Emma', 260, 634, 8)],
  );
  assert.match(markdown, /^\| North \| 2 \| Alma, Berta and Clara \|$/m);
});

const segment = (text: string, markedContent = -1): Segment => ({
  ...{ text, markedContent, left: 72, right: 200, top: 100, bottom: 110, baseline: 108 + markedContent * 12, size: 10 },
  ...{
    weight: 400,
    font: 'F',
    bold: false,
    italic: false,
    mono: false,
    colour: 0,
    smallCapitals: false,
    hyphenated: false,
    artifact: false,
  },
  ...{ turned: false, spaced: false, parts: [{ text, left: 72, right: 200 }] },
});

test('a list inside an item is nested, although the file has no body of the item around it', () => {
  const element = (role: string, ...children: StructureElement['children']): StructureElement => ({
    ...{ role, children, alternative: '', language: '', rows: 1, columns: 1 },
  });
  const inner = element('L', element('LI', element('Lbl', 2), element('NonStruct', 3)));
  const tree = element('L', element('LI', element('Lbl', 0), element('NonStruct', 1), inner));
  const segments = ['•', 'Berths', '•', 'with water'].map(segment);
  const blocks = structuredBlocks([tree], segments, new WordList()) ?? [];
  assert.deepEqual(
    blocks.map((block) => block.kind === 'text' && [block.text, block.role, block.left]),
    [
      ['Berths', 'LI', 0],
      ['with water', 'LI', 20],
    ],
  );
});

test('a list that continues in the next column keeps its depth', async () => {
  const column = (x: number, names: string[], y = 700): string[] =>
    names.map((name, at) => line(`\\225 ${name} is a berth for large ships`, x, y - at * 14));
  const names = Array.from({ length: 12 }, (_unused, at) => `Berth ${'ABCDEFGHIJKL'[at]}`);
  const markdown = await read(...column(72, names.slice(0, 6)), ...column(330, names.slice(6)));
  assert.equal(markdown, names.map((name) => `- ${name} is a berth for large ships`).join('\n'));
});

test('the asterisk of TeX starts an item if a word follows it', () => {
  const markerOf = (text: string): string | undefined => {
    const lines: Line[] = [{ ...segment(text), segments: [segment(text)] }];
    return buildParagraphs(lines, lines, new WordList())[0]?.marker;
  };
  assert.deepEqual(['∗ with water', '∗ σ1 ∗ γ2'].map(markerOf), ['∗', undefined]);
});

test('cells of a narrow table stand in their columns, although some are drawn closely together', async () => {
  const rows = ['Sector 2019 2021 2024', 'Households 12.4 12.1 11.9', 'Farms 24.8 26.0 29.3', 'Total 37.2 38.1 41.2'];
  const drawn = rows.flatMap((row, at) =>
    row.split(' ').map((text, column) => line(text, [72, 132, 163, 194][column] ?? 0, 700 - at * 12)),
  );
  const written = rows.map((row) => `| ${row.replaceAll(' ', ' | ')} |`);
  assert.equal(await read(...drawn), [written[0], '| --- | --- | --- | --- |', ...written.slice(1)].join('\n'));
});

test('bullets that are small pictures, as slides have them, start items', async () => {
  const picture = (x: number, y: number): string => `q 4 0 0 4 ${x} ${y} cm BI /W 1 /H 1 /BPC 8 /CS /G ID x EI Q`;
  const markdown = await read(
    ...[picture(84, 684), line('Berths for ships', 96, 684), picture(84, 664), line('Berths for loading', 96, 664)],
  );
  assert.equal(markdown, '- Berths for ships\n- Berths for loading');
});
