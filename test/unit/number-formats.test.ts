import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDocument } from '../../src/content/parse/parse.ts';
import { openDocument } from '../support/documents.ts';
import { relations, zip } from '../support/office-parts.ts';

async function rowsOf(bytes: Uint8Array): Promise<string[]> {
  const { markdown } = await parseDocument({ bytes });
  return markdown.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| ---'));
}

const escapeXml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');

/** A workbook whose rows each have a label and a number in one format. */
function workbook(cells: [format: string | number, value: number][]): Uint8Array {
  const codes = cells.map(([format], index) =>
    typeof format === 'string' ? `<numFmt numFmtId="${200 + index}" formatCode="${escapeXml(format)}"/>` : '',
  );
  const styles = cells.map(
    ([format], index) => `<xf numFmtId="${typeof format === 'string' ? 200 + index : format}"/>`,
  );
  const rows = cells.map(
    ([, value], index) =>
      `<row r="${index + 1}"><c t="inlineStr"><is><t>n${index}</t></is></c><c s="${index}"><v>${value}</v></c></row>`,
  );
  return zip({
    '_rels/.rels': relations([['rId1', 'officeDocument', 'xl/workbook.xml']]),
    'xl/_rels/workbook.xml.rels': relations([
      ['rId1', 'worksheet', 'worksheets/sheet1.xml'],
      ['rId2', 'styles', 'styles.xml'],
    ]),
    'xl/workbook.xml': '<workbook xmlns:r="r"><sheets><sheet name="S" r:id="rId1"/></sheets></workbook>',
    'xl/styles.xml': `<styleSheet><numFmts>${codes.join('')}</numFmts><cellXfs>${styles.join('')}</cellXfs></styleSheet>`,
    'xl/worksheets/sheet1.xml': `<worksheet><sheetData>${rows.join('')}</sheetData></worksheet>`,
  });
}

async function assertShown(cells: [format: string | number, value: number, shown: string][]): Promise<void> {
  const rows = await rowsOf(workbook(cells.map(([format, value]) => [format, value])));
  assert.deepEqual(
    rows,
    cells.map(([, , shown], index) => `| n${index} | ${shown} |`),
  );
}

test('percentages, thousands, decimals and units of a workbook are written as its cells show them', async () => {
  await assertShown([
    ['0%', 0.15, '15%'],
    ['0.0%', 0.153846, '15.4%'],
    [10, -0.2, '-20.00%'],
    [4, 1234567.891, '1,234,567.89'],
    ['0.00', 1.005, '1.01'],
    ['0.000000000000000', 347.99232604148267, '347.992326041483000'],
    ['#.##', 0.5, '0.5'],
    ['0000', 7, '0007'],
    ['000-00-0000', 123456789, '123-45-6789'],
    ['000-00-0000', 12, '000-00-0012'],
    ['#,##0.00 "kg"', 1500, '1,500.00 kg'],
    ['[>999999]#.0,,"M";[>999]#.0,"K";#', 1234567, '1.2M'],
    ['[>999999]#.0,,"M";[>999]#.0,"K";#', 1234, '1.2K'],
    ['0\\ "dollars and"\\ .00\\ "cents"', 5.25, '5 dollars and .25 cents'],
  ]);
});

test('currencies of a workbook keep their sign, and negative numbers the form that the cell shows', async () => {
  const accounting = '_("$"* #,##0.00_);_("$"* \\(#,##0.00\\);_("$"* "-"??_);_(@_)';
  await assertShown([
    [accounting, 1234.5, '$1,234.50'],
    [accounting, -1234.5, '$(1,234.50)'],
    [accounting, 0, '$-'],
    ['[$€-407]\\ #,##0.00;[Red]\\-[$€-407]\\ #,##0.00', -5.5, '-€ 5.50'],
    ['[$CHF-807] #,##0', 5000, 'CHF 5,000'],
    ['[>=0]0.00;"-"0.00', -3, '-3.00'],
  ]);
});

test('fractions of a workbook are the nearest that its cells can show', async () => {
  await assertShown([
    [12, 1.5, '1 1/2'],
    ['# ?/?', 0.333, '1/3'],
    ['# ?/?', 0.99, '1'],
    ['# ??/??', Math.PI, '3 14/99'],
    ['# ?/8', 1.26, '1 2/8'],
    ['?/?', 1.5, '3/2'],
  ]);
});

test('what a format hides or shows with an exponent is written as stored', async () => {
  await assertShown([
    ['General', 1234.5678, '1234.5678'],
    ['General_)', 0.1, '0.1'],
    [';;;', 5, '5'],
    ['@', 5.25, '5.25'],
    ['0.00E+00', 12345, '12345'],
    [49, 0.0000001, '1e-7'],
  ]);
});

test('dates of a workbook are ISO, and durations are hours that may exceed a day', async () => {
  await assertShown([
    ['[$-409]mmmm\\ d\\,\\ yyyy;@', 45000, '2023-03-15 00:00:00'],
    ['h"時"mm"分"', 0.5, '12:00:00'],
    ['mm:ss.0', 0.01, '00:14:24'],
    ['[h]:mm', 1.5, '36:00:00'],
    [46, -0.75, '-18:00:00'],
    ['[=0]?;[<4]hh:mm:ss;[hh]:mm', 0.5, '12:00:00'],
    ['[=0]?;[<4]hh:mm:ss;[hh]:mm', 5.5, '132:00:00'],
  ]);
});

test('an OpenDocument workbook writes numbers in the same form, by the style of the cell or its column', async () => {
  const styles = `<number:percentage-style style:name="P"><number:number number:decimal-places="1" number:min-integer-digits="1"/><number:text>%</number:text></number:percentage-style>
    <number:currency-style style:name="C0"><number:number number:decimal-places="2" number:min-integer-digits="1" number:grouping="true"/><number:text> </number:text><number:currency-symbol>€</number:currency-symbol></number:currency-style>
    <number:currency-style style:name="C"><number:text>-</number:text><number:number number:decimal-places="2" number:min-integer-digits="1" number:grouping="true"/><number:text> </number:text><number:currency-symbol>€</number:currency-symbol><style:map style:condition="value()&gt;=0" style:apply-style-name="C0"/></number:currency-style>
    <number:number-style style:name="F"><number:fraction number:min-integer-digits="0" number:min-numerator-digits="1" number:min-denominator-digits="1"/></number:number-style>
    ${['P', 'C', 'F'].map((name) => `<style:style style:name="c${name}" style:data-style-name="${name}"/>`).join('')}`;
  const cell = (type: string, attributes: string, shown: string): string =>
    `<table:table-cell office:value-type="${type}" ${attributes}><text:p>${shown}</text:p></table:table-cell>`;
  const rows = [
    cell('percentage', 'office:value="0.1538" table:style-name="cP"', '15,4%') +
      cell('currency', 'office:value="-1234.5"', '-1.234,50 €'),
    cell('float', 'office:value="1.5" table:style-name="cF"', '1 1/2') +
      cell('currency', 'office:value="1234.5"', '1.234,50 €'),
    cell('float', 'office:value="1234.5"', '1234,5') +
      cell('date', 'office:date-value="2024-01-31T13:30:00"', '31.01.24'),
    cell('time', 'office:time-value="PT36H30M00S"', '36:30') +
      cell('percentage', 'office:value="0.1" table:style-name="unknown"', '10 %'),
  ];
  const ods = openDocument(
    'application/vnd.oasis.opendocument.spreadsheet',
    `<office:spreadsheet><table:table table:name="S"><table:table-column/><table:table-column table:default-cell-style-name="cC"/>${rows.map((row) => `<table:table-row>${row}</table:table-row>`).join('')}</table:table></office:spreadsheet>`,
    { 'styles.xml': `<office:document-styles><office:styles>${styles}</office:styles></office:document-styles>` },
  );
  assert.deepEqual(await rowsOf(ods), [
    '| 15.4% | -1,234.50 € |',
    '| 1 1/2 | 1,234.50 € |',
    '| 1234.5 | 2024-01-31 13:30:00 |',
    '| 36:30:00 | 10 % |',
  ]);
});
