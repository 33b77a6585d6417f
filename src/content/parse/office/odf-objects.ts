import { child, childElements, descend, descendants, parseXml, textOf, type XmlElement } from '../format/xml.ts';
import type { ZipArchive } from '../format/zip.ts';
import { type Block, escapeText, oneLine } from '../write-markdown.ts';
import { mathmlToTex } from './mathml.ts';
import { numberText } from './number-format.ts';

const kinds: Record<string, string> = {
  bar: 'Bar chart',
  line: 'Line chart',
  circle: 'Pie chart',
  ring: 'Doughnut chart',
  area: 'Area chart',
  scatter: 'Scatter chart',
  bubble: 'Bubble chart',
  radar: 'Radar chart',
  'filled-radar': 'Radar chart',
  stock: 'Stock chart',
};
const chartsMax = 200;
const objectsMax = 5_000;
const rowsMax = 10_000;
const columnsMax = 200;

type Embedded = { blocks: Block[]; formula: string };

const nothing: Embedded = { blocks: [], formula: '' };

/** Reads what an OpenDocument file embeds: formulas, and charts with title, kind, and the table of categories and series. */
export class OdfObjects {
  readonly #zip: ZipArchive;
  #objects = 0;
  #charts = 0;

  constructor(zip: ZipArchive) {
    this.#zip = zip;
  }

  /** The blocks of the chart in a `draw:object`, or the TeX of the formula in it; both empty if it embeds something else. */
  read(object: XmlElement | undefined): Embedded {
    const folder = (object?.attributes.href ?? '').replace(/^\.\//, '').replace(/\/$/, '');
    if (folder === '' || this.#objects >= objectsMax) return nothing;
    this.#objects += 1;
    const text = this.#zip.readText(`${folder}/content.xml`);
    const root = text === undefined ? undefined : parseXml(text);
    const math = child(root, 'math');
    if (math) return { blocks: [], formula: mathmlToTex(math) };
    const chart = descend(root, 'document-content', 'body', 'chart', 'chart');
    if (!chart || this.#charts >= chartsMax) return nothing;
    this.#charts += 1;
    return { blocks: chartBlocks(chart), formula: '' };
  }
}

function chartBlocks(chart: XmlElement): Block[] {
  const blocks: Block[] = [];
  const title = oneLine(textOf(child(chart, 'title')));
  if (title !== '') blocks.push({ type: 'paragraph', text: escapeText(title) });
  const kind = (chart.attributes.class ?? '').split(':').at(-1) ?? '';
  blocks.push({ type: 'paragraph', text: kinds[kind] ?? 'Chart' });
  const rows = dataRows(child(chart, 'table'));
  if (rows.length > 1) blocks.push({ type: 'table', rows });
  return blocks;
}

/** The chart's own copy of its data: one row for each category, one column for each series. */
function dataRows(table: XmlElement | undefined): string[][] {
  return descendants(table, 'table-row')
    .slice(0, rowsMax)
    .map((row) => childElements(row, 'table-cell').slice(0, columnsMax).map(cellText));
}

function cellText(cell: XmlElement): string {
  const value = Number(cell.attributes.value ?? Number.NaN);
  if (cell.attributes['value-type'] === 'float') return Number.isFinite(value) ? numberText(value) : '';
  return escapeText(oneLine(childElements(cell, 'p').map(textOf).join(' ')));
}

/** The files of the pictures that an element shows, each once, in the order of the text. */
export function picturesOf(element: XmlElement | undefined): string[] {
  const files = descendants(element, 'image').map(({ attributes }) => (attributes.href ?? '').replace(/^\.\//, ''));
  return [...new Set(files)];
}
