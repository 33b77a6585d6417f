import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseLimits } from '../../src/content/parse/limits.ts';
import { parseDocument } from '../../src/content/parse/parse.ts';
import { ParseError } from '../../src/content/parse/types.ts';
import { docx } from '../support/documents.ts';
import { zip } from '../support/office-parts.ts';

/** Small files that would give gigabytes: what they give is bounded while it is built. */

const parse = (bytes: Uint8Array) => parseDocument({ bytes });

async function assertFails(bytes: Uint8Array, words: RegExp): Promise<void> {
  await assert.rejects(parse(bytes), (error: unknown) => {
    assert.ok(error instanceof ParseError, String(error));
    assert.equal(error.reason, 'extraction_failed');
    assert.match(error.message, words);
    return true;
  });
}

const relations = (...links: [id: string, type: string, target: string][]): string =>
  `<Relationships>${links
    .map(([id, type, target]) => `<Relationship Id="${id}" Type="http://x/relationships/${type}" Target="${target}"/>`)
    .join('')}</Relationships>`;

function workbook(rows: string, strings = '', sheets = 1): Uint8Array {
  const sheet = '<sheet name="S" r:id="rId1"/>';
  return zip({
    '[Content_Types].xml': '<Types/>',
    '_rels/.rels': relations(['rId1', 'officeDocument', 'xl/workbook.xml']),
    'xl/_rels/workbook.xml.rels': relations(
      ['rId1', 'worksheet', 'worksheets/sheet1.xml'],
      ['rId2', 'sharedStrings', 'sharedStrings.xml'],
    ),
    'xl/workbook.xml': `<workbook xmlns:r="r"><sheets>${sheet.repeat(sheets)}</sheets></workbook>`,
    'xl/sharedStrings.xml': `<sst><si><t>${strings}</t></si></sst>`,
    'xl/worksheets/sheet1.xml': `<worksheet><sheetData>${rows}</sheetData></worksheet>`,
  });
}

const row = (cells: string): string => `<row>${cells}</row>`;
const cell = '<c><v>1</v></c>';

test('a workbook with one full row and one full column is not a table of a billion empty cells', async () => {
  const bytes = workbook(row(cell.repeat(16_000)) + row(cell).repeat(50_000));
  assert.ok(bytes.byteLength < 20_000, `${bytes.byteLength} bytes`);
  await assertFails(bytes, /more cells than can be read/);
});

test('a workbook whose cells all name one long string gives no more text than a document may', async () => {
  await assertFails(workbook(row('<c t="s"><v>0</v></c>').repeat(5_000), 'long '.repeat(50_000)), /32 million/);
});

test('a workbook that shows one sheet again and again counts its cells together', async () => {
  await assertFails(workbook(row(cell.repeat(100)).repeat(600), '', 20), /more cells than can be read/);
});

test('a sheet of thousands of columns that nothing joins is read column by column', async () => {
  const column = (index: number): string => {
    const letters = [Math.floor(index / 676) - 1, Math.floor(index / 26) % 26, index % 26];
    return letters.map((one) => String.fromCharCode(65 + Math.max(0, one))).join('');
  };
  const apart = Array.from({ length: 4_000 }, (_, n) => `<c r="${column(702 + 2 * n)}1"><v>${n}</v></c>`).join('');
  const { markdown } = await parse(workbook(row(cell + apart) + row(cell).repeat(50_000)));
  assert.match(markdown, /^3999$/m);
});

test('an OpenDocument table whose cells and rows repeat is bounded', async () => {
  const repeated =
    '<table:table-row table:number-rows-repeated="1000"><table:table-cell table:number-columns-repeated="1000"><text:p>x</text:p></table:table-cell></table:table-row>';
  const bytes = zip({
    mimetype: 'application/vnd.oasis.opendocument.text',
    'META-INF/manifest.xml': '<manifest/>',
    'content.xml': `<office:document-content xmlns:office="o" xmlns:text="t" xmlns:table="b"><office:body><office:text><table:table>${repeated.repeat(20)}</table:table></office:text></office:body></office:document-content>`,
  });
  await assertFails(bytes, /more cells than can be read/);
});

test('tables in the merged cells of tables do not multiply their text without end', async () => {
  let inner = `<w:p><w:r><w:t>${'x'.repeat(1_000)}</w:t></w:r></w:p>`;
  for (let depth = 0; depth < 6; depth++)
    inner = `<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="63"/></w:tcPr>${inner}</w:tc></w:tr></w:tbl>`;
  await assertFails(docx(inner), /32 million/);
});

test('blanks inside a cell cost time in proportion to their number', async () => {
  const { markdown } = await parse(
    workbook(row(`<c t="s"><v>0</v></c>${cell}`) + row(cell + cell), `a${' '.repeat(400_000)}b`),
  );
  assert.ok(markdown.length > 400_000 && markdown.length < parseLimits.markdownCharactersMax);
});
