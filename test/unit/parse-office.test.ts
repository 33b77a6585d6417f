import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeUtf16 } from '../../src/content/parse/format/utf16.ts';
import { parseDocument } from '../../src/content/parse/parse.ts';
import { ParseError } from '../../src/content/parse/types.ts';
import { compoundFile } from '../support/compound-file.ts';
import { docxBody, editedPpt, fixture, openDocument, pptWithTable } from '../support/documents.ts';
import { relations, zip } from '../support/office-parts.ts';
import { cell, double, integer, record, wide, xlsb } from '../support/xlsb.ts';

async function markdownOf(bytes: Uint8Array): Promise<string> {
  return (await parseDocument({ bytes })).markdown;
}

const odtType = 'application/vnd.oasis.opendocument.text';

test('a chart in a Word document gives its title, its kind and the table of its series', async () => {
  const points = (values: string[]): string =>
    values.map((value, index) => `<c:pt idx="${index}"><c:v>${value}</c:v></c:pt>`).join('');
  const bytes = zip({
    '_rels/.rels': relations([['rId1', 'officeDocument', 'word/document.xml']]),
    'word/_rels/document.xml.rels': relations([['rId7', 'chart', 'charts/chart1.xml']]),
    'word/document.xml': `<w:document xmlns:w="w" xmlns:c="c" xmlns:r="r"><w:body>${docxBody}<w:p><w:r><w:drawing><c:chart r:id="rId7"/></w:drawing></w:r></w:p></w:body></w:document>`,
    'word/charts/chart1.xml': `<c:chartSpace xmlns:c="c" xmlns:a="a"><c:chart><c:title><a:t>Ships by year</a:t></c:title><c:plotArea><c:barChart><c:ser><c:tx>${points(['Ferries'])}</c:tx><c:cat>${points(['2022', '2023'])}</c:cat><c:val>${points(['900', '1250'])}</c:val></c:ser></c:barChart></c:plotArea></c:chart></c:chartSpace>`,
  });
  assert.match(
    await markdownOf(bytes),
    /Ships by year\n\nBar chart\n\n\| {2}\| Ferries \|\n\| --- \| --- \|\n\| 2022 \| 900 \|\n\| 2023 \| 1250 \|/,
  );
});

const odfChart = `<office:document-content xmlns:office="o" xmlns:chart="c" xmlns:table="b" xmlns:text="t"><office:body><office:chart><chart:chart chart:class="chart:line"><chart:title><text:p>Ships by year</text:p></chart:title><table:table><table:table-header-rows><table:table-row><table:table-cell><text:p/></table:table-cell><table:table-cell><text:p>Ferries</text:p></table:table-cell></table:table-row></table:table-header-rows><table:table-rows><table:table-row><table:table-cell><text:p>2023</text:p></table:table-cell><table:table-cell office:value-type="float" office:value="1250"><text:p>1250</text:p></table:table-cell></table:table-row></table:table-rows></table:table></chart:chart></office:chart></office:body></office:document-content>`;
const chartFrame = '<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>';

test('a chart in an OpenDocument text or workbook gives the same, after its paragraph or its cells', async () => {
  const expected = /Ships by year\n\nLine chart\n\n\| {2}\| Ferries \|\n\| --- \| --- \|\n\| 2023 \| 1250 \|/;
  const parts = { 'Object 1/content.xml': odfChart };
  const odt = openDocument(odtType, `<office:text><text:p>Before. ${chartFrame}</text:p></office:text>`, parts);
  assert.match(await markdownOf(odt), expected);
  const ods = openDocument(
    'application/vnd.oasis.opendocument.spreadsheet',
    `<office:spreadsheet><table:table table:name="Ships"><table:shapes>${chartFrame}</table:shapes><table:table-row><table:table-cell><text:p>Aurora</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>`,
    parts,
  );
  assert.match(await markdownOf(ods), expected);
});

test('an embedded object that names itself or nothing is left out', async () => {
  const frame = chartFrame.replace('./Object 1', '.');
  const odt = openDocument(odtType, `<office:text><text:p>Before.</text:p>${frame}${chartFrame}</office:text>`);
  assert.equal(await markdownOf(odt), 'Before.\n');
});

test('a formula in an OpenDocument text is TeX, on a line of its own if its paragraph has nothing else', async () => {
  const math = (content: string): string =>
    `<math xmlns="m"><semantics><mrow>${content}</mrow><annotation encoding="StarMath 5.0">x</annotation></semantics></math>`;
  const frame = (name: string): string => `<draw:frame><draw:object xlink:href="./${name}"/><draw:image/></draw:frame>`;
  const odt = openDocument(
    odtType,
    `<office:text><text:p>With ${frame('Object 1')} inside.</text:p><text:p>${frame('Object 2')}</text:p><text:p>${frame('Object 3')}</text:p></office:text>`,
    {
      'Object 1/content.xml': math('<mi>E</mi><mo>=</mo><mi>m</mi><mo>⋅</mo><msup><mi>c</mi><mn>2</mn></msup>'),
      'Object 2/content.xml': math(
        '<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover><mfrac><msqrt><mi>x</mi></msqrt><mrow><mo>{</mo><mi>α</mi><mo>}</mo></mrow></mfrac>',
      ),
      'Object 3/content.xml': math(
        '<mtable><mtr><mtd><mi>sin</mi><mo>\u2061</mo><mi>a</mi></mtd><mtd><mover><mi>b</mi><mo>¯</mo></mover></mtd></mtr></mtable>',
      ),
    },
  );
  assert.equal(
    await markdownOf(odt),
    'With $E=m\\cdot c^{2}$ inside.\n\n$$\\sum_{i=1}^{n}\\frac{\\sqrt{x}}{\\{\\alpha \\}}$$\n\n$$\\begin{matrix}\\sin a & \\overline{b}\\end{matrix}$$\n',
  );
});

test('code of an OpenDocument text keeps its spaces and lines, and neighbouring quotes are one', async () => {
  const styled = (style: string, content: string): string => `<text:p text:style-name="${style}">${content}</text:p>`;
  const odt = openDocument(
    odtType,
    `<office:text><text:p>Call <text:span text:style-name="Source_20_Text">run_all</text:span>.</text:p>${styled('Preformatted_20_Text', 'if a:<text:line-break/><text:s text:c="4"/>b()')}${styled('Preformatted_20_Text', '<text:tab/>c()')}${styled('Quotations', 'One')}${styled('Quotations', 'Two')}</office:text>`,
  );
  assert.equal(await markdownOf(odt), 'Call `run_all`.\n\n```\nif a:\n    b()\n\tc()\n```\n\n> One\n>\n> Two\n');
});

test('covered cells of an OpenDocument text repeat the cell that is merged over them', async () => {
  const one = (text: string, spans = ''): string =>
    `<table:table-cell${spans}><text:p>${text}</text:p></table:table-cell>`;
  const covered = '<table:covered-table-cell/>';
  const rows = [
    one('Ship') + one('Ports', ' table:number-columns-spanned="2" table:number-rows-spanned="2"') + covered,
    `${one('Aurora')}<table:covered-table-cell table:number-columns-repeated="2"/>`,
    one('Boreas') + one('Oslo', ' table:number-rows-spanned="2"') + one('Bergen'),
    one('Corvus') + covered + one('Tromso'),
  ];
  const odt = openDocument(
    odtType,
    `<office:text><table:table>${rows.map((row) => `<table:table-row>${row}</table:table-row>`).join('')}</table:table></office:text>`,
  );
  assert.equal(
    await markdownOf(odt),
    '| Ship | Ports | Ports |\n| --- | --- | --- |\n| Aurora | Ports | Ports |\n| Boreas | Oslo | Bergen |\n| Corvus | Oslo | Tromso |\n',
  );
});

test('a table of an old presentation is a table, merged cells repeated', async () => {
  const bytes = pptWithTable([
    ['Harbour', [0, 0, 200, 50]],
    ['Aurora', [0, 50, 100, 100]],
    ['1200', [100, 50, 200, 100]],
    ['', [0, 50, 200, 50]],
  ]);
  assert.match(await markdownOf(bytes), /\| Harbour \| Harbour \|\n\| --- \| --- \|\n\| Aurora \| 1200 \|/);
});

test('cells of an old presentation that lie on each other fill a bounded number of places', async () => {
  const bytes = pptWithTable(Array.from({ length: 1_000 }, (_, at) => ['x', [at, at, 2_000, 2_000]]));
  const filled = (await markdownOf(bytes)).match(/\| x (?=\|)/g)?.length ?? 0;
  assert.ok(filled > 1_000 && filled <= 51_000, `${filled} places`);
});

test('an object that many slides of an old presentation name is read once', async () => {
  const markdown = await markdownOf(pptWithTable([['Harbour', [0, 0, 100, 50]]], 1000));
  assert.equal(markdown.split('Harbour').length, 2);
  assert.match(markdown, /\| Harbour \|[\s\S]*<!-- slide 1000 -->/);
});

test('an old Word document has its notes below the text, its text boxes after their paragraphs, and nothing deleted or hidden', async () => {
  assert.equal(
    await markdownOf(fixture('notes.doc')),
    'Ships[^1] came[^2] and went.\n\nBeside a box.\n\nIn the box\n\nSecond line\n\nAfter the box[^3].\n\nKept inserted.\n\n[^1]: Seen in May.\n\n    And in June.\n\n[^2]: At the end.\n\n[^3]: Last note.\n',
  );
});

test('raised and lowered text of a presentation is marked', async () => {
  const run = (content: string, baseline: number): string =>
    `<a:r><a:rPr baseline="${baseline}"/><a:t>${content}</a:t></a:r>`;
  const bytes = zip({
    '_rels/.rels': relations([['rId1', 'officeDocument', 'ppt/presentation.xml']]),
    'ppt/_rels/presentation.xml.rels': relations([['rId1', 'slide', 'slides/slide1.xml']]),
    'ppt/presentation.xml':
      '<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst><p:sldId r:id="rId1"/></p:sldIdLst></p:presentation>',
    'ppt/slides/slide1.xml': `<p:sld xmlns:p="p" xmlns:a="a"><p:cSld><p:spTree><p:sp><p:txBody><a:p>${run('H', 0)}${run('2', -25000)}${run('O, 5 m', 0)}${run('2', 30000)}</a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>`,
  });
  assert.equal(await markdownOf(bytes), 'H<sub>2</sub>O, 5 m<sup>2</sup>\n');
});

test('an old presentation that was changed is read as it was saved last, with the notes of its slides', async () => {
  assert.equal(await markdownOf(editedPpt()), '# Harbour report\n\nShips came\n\n> Notes:\n>\n> Wait for the tide\n');
});

test('a binary workbook gives every kind of cell, dates, and merged cells', async () => {
  const markdown = await markdownOf(
    xlsb([
      record(0, integer(0)),
      record(6, cell(0), wide('Harbour <report>')),
      record(0, integer(1)),
      record(7, cell(0), integer(0)),
      record(18, cell(0).subarray(4), integer(0)),
      record(62, cell(2), integer(0, 1), wide('rich')),
      record(0, integer(2)),
      record(2, cell(0), integer((1200 << 2) | 2)),
      record(9, cell(1, 1), double(45_292.5)),
      record(4, cell(2), integer(1, 1)),
      record(0, integer(3)),
      record(3, cell(0), integer(42, 1)),
      record(5, cell(1), double(0.1)),
      record(1, cell(2)),
      record(176, integer(0), integer(0), integer(0), integer(2)),
    ]),
  );
  assert.equal(
    markdown,
    '## Harbour report\n\nHarbour &lt;report>\n\n| Ship | Ship | rich |\n| --- | --- | --- |\n| 1200 | 2024-01-01 12:00:00 | TRUE |\n| #N/A | 0.1 |  |\n',
  );
});

test('a binary workbook with false lengths and places is refused or read as far as it is right', async () => {
  await assert.rejects(markdownOf(xlsb([Buffer.from([6, 0xff, 0xff, 0xff, 0x7f, 1])])), ParseError);
  const far = [record(0, integer(0)), record(6, cell(0xfffffff0), wide('lost')), record(6, cell(0), wide('kept'))];
  assert.equal(await markdownOf(xlsb(far)), '## Harbour report\n\nkept\n');
  const short = [record(0, integer(0)), record(6, cell(0), integer(0xfffffffe), Buffer.from('ok', 'utf16le'))];
  assert.equal(await markdownOf(xlsb(short)), '## Harbour report\n\nok\n');
  const repeated = Array.from({ length: 3000 }, () =>
    record(176, integer(0), integer(0xffffff), integer(0), integer(0xffff)),
  );
  assert.equal(
    await markdownOf(xlsb([record(0, integer(0)), record(6, cell(0), wide('kept')), ...repeated])),
    '## Harbour report\n\nkept\n',
  );
});

test('text in UTF-16 that ends within a character, at an odd address, is read up to there', () => {
  for (let round = 0; round < 10; round++)
    for (let length = 0; length < 600; length++)
      assert.equal(decodeUtf16(Buffer.alloc(2 * length + 2, '\0x').subarray(1)), 'x'.repeat(length));
});

test('a first row of equal cells is part of its table; only a merged one is a title', async () => {
  const row = (cells: string): string => `<table:table-row>${cells}</table:table-row>`;
  const one = (content: string, spans = ''): string =>
    `<table:table-cell${spans}><text:p>${content}</text:p></table:table-cell>`;
  const title = `${one('Ships', ' table:number-columns-spanned="2"')}<table:covered-table-cell/>`;
  const rows = [row(title), row(one('0') + one('0')), row(one('1') + one('2')), row(''), row(one('0') + one('0'))];
  const ods = openDocument(
    'application/vnd.oasis.opendocument.spreadsheet',
    `<office:spreadsheet><table:table table:name="S">${rows.join('')}</table:table></office:spreadsheet>`,
  );
  assert.equal(
    await markdownOf(ods),
    '## S\n\nShips\n\n| 0 | 0 |\n| --- | --- |\n| 1 | 2 |\n\n| 0 | 0 |\n| --- | --- |\n',
  );
});

test('text boxes and charts of an old workbook follow its cells, comments do not, and cells of charts stay out of the table', async () => {
  const shorts = (...values: number[]): Buffer => Buffer.from(Uint16Array.from(values).buffer);
  const part = (type: number, body: Buffer = Buffer.alloc(0)): Buffer =>
    Buffer.concat([shorts(type, body.byteLength), body]);
  const name = (content: string): Buffer => Buffer.concat([Buffer.from([content.length, 0]), Buffer.from(content)]);
  const number = (row: number, column: number, value: number): Buffer => {
    const body = Buffer.concat([shorts(row, column, 0), Buffer.alloc(8)]);
    body.writeDoubleLE(value, 6);
    return part(0x0203, body);
  };
  const label = (row: number, column: number, content: string): Buffer =>
    part(0x0204, Buffer.concat([shorts(row, column, 0, content.length), Buffer.from([0]), Buffer.from(content)]));
  const begin = part(0x0809, shorts(0x0600, 0x10, 0, 0));
  const end = part(0x000a);
  const box = (kind: number, text: Buffer[], length: number): Buffer =>
    Buffer.concat([
      part(0x005d, shorts(0x15, 0x12, kind, 1)),
      part(0x01b6, shorts(0, 0, 0, 0, 0, length, 0, 0, 0)),
      ...text.map((piece) => part(0x003c, piece)),
    ]);
  const wide = Buffer.concat([Buffer.from([1]), Buffer.from('café\nΩ', 'utf16le')]);
  const chart = [
    ...[begin, part(0x1003), part(0x100d, Buffer.concat([shorts(0), name('Tons')])), part(0x1017)],
    ...[part(0x1025), part(0x100d, Buffer.concat([shorts(0), name('Ships')]))],
    ...[part(0x1065, shorts(1)), number(0, 0, 900), number(1, 0, 950)],
    ...[part(0x1065, shorts(2)), label(0, 0, '2023'), label(1, 0, '2024'), end],
  ];
  const sheet = [
    ...[begin, label(0, 0, 'Title'), number(1, 0, 1), number(1, 1, 2), number(2, 0, 3), number(2, 1, 4)],
    ...[
      box(6, [Buffer.from('\0In the '), wide], 13),
      box(0x19, [Buffer.from('\0Comment')], 7),
      box(5, [], 0),
      ...chart,
    ],
    ...[part(0x00e5, shorts(1, 0, 0, 0, 1)), end],
  ];
  const entry = (offset: number): Buffer => part(0x0085, Buffer.concat([shorts(offset, 0, 0), name('S')]));
  const offset = begin.byteLength + entry(0).byteLength + end.byteLength;
  const book = compoundFile({ Workbook: Buffer.concat([begin, entry(offset), end, ...sheet]) });
  assert.equal(
    await markdownOf(book),
    '## S\n\nTitle\n\n| 1 | 2 |\n| --- | --- |\n| 3 | 4 |\n\nIn the café\n\nΩ\n\nShips\n\nBar chart\n\n|  | Tons |\n| --- | --- |\n| 2023 | 900 |\n| 2024 | 950 |\n',
  );
});

test('hidden sheets are read if no visible one contains anything', async () => {
  const sheet = (name: string, style: string, content: string): string =>
    `<table:table table:name="${name}" table:style-name="${style}"><table:table-row>${content}</table:table-row></table:table>`;
  const cell = '<table:table-cell><text:p>Aurora</text:p></table:table-cell>';
  const styles =
    '<office:document-styles><office:styles><style:style style:name="out"><style:table-properties table:display="false"/></style:style></office:styles></office:document-styles>';
  const book = (first: string): Uint8Array =>
    openDocument(
      'application/vnd.oasis.opendocument.spreadsheet',
      `<office:spreadsheet>${sheet('Cover', 'in', first)}${sheet('Data', 'out', cell)}</office:spreadsheet>`,
      { 'styles.xml': styles },
    );
  assert.equal(await markdownOf(book('')), '## Data\n\nAurora\n');
  assert.equal(await markdownOf(book(cell)), '## Cover\n\nAurora\n');
});

test('headers and footers are read if a document has no other text', async () => {
  const odt = (body: string): Uint8Array =>
    openDocument(odtType, `<office:text>${body}</office:text>`, {
      'styles.xml':
        '<office:document-styles><office:master-styles><style:master-page><style:header><text:p>Harbour office</text:p></style:header><style:footer><text:p>Closed</text:p></style:footer></style:master-page></office:master-styles></office:document-styles>',
    });
  assert.equal(await markdownOf(odt('<text:p/>')), 'Harbour office\n\nClosed\n');
  assert.equal(await markdownOf(odt('<text:p>Open</text:p>')), 'Open\n');
  const word = (body: string): Uint8Array =>
    zip({
      '_rels/.rels': relations([['rId1', 'officeDocument', 'word/document.xml']]),
      'word/_rels/document.xml.rels': relations([['rId7', 'header', 'header1.xml']]),
      'word/document.xml': `<w:document xmlns:w="w"><w:body><w:p>${body}</w:p></w:body></w:document>`,
      'word/header1.xml': '<w:hdr xmlns:w="w"><w:p><w:r><w:t>Harbour office</w:t></w:r></w:p></w:hdr>',
    });
  assert.equal(await markdownOf(word('')), 'Harbour office\n');
  assert.equal(await markdownOf(word('<w:r><w:t>Open</w:t></w:r>')), 'Open\n');
});
