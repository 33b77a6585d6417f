import { child, childElements, descendants, textOf, type XmlElement } from '../format/xml.ts';
import { type Block, escapeText, oneLine } from '../write-markdown.ts';

const kinds: Record<string, string> = {
  barChart: 'Bar chart',
  bar3DChart: 'Bar chart',
  lineChart: 'Line chart',
  line3DChart: 'Line chart',
  pieChart: 'Pie chart',
  pie3DChart: 'Pie chart',
  doughnutChart: 'Doughnut chart',
  areaChart: 'Area chart',
  area3DChart: 'Area chart',
  scatterChart: 'Scatter chart',
  bubbleChart: 'Bubble chart',
  radarChart: 'Radar chart',
  stockChart: 'Stock chart',
};
const pointsMax = 10_000;

/** An Office chart as its title, its kind and the table of its series, as far as the file contains their values. */
export function chartBlocks(space: XmlElement | undefined): Block[] {
  const chart = child(space, 'chart');
  if (!chart) return [];
  const blocks: Block[] = [];
  const title = oneLine(descendants(child(chart, 'title'), 't').map(textOf).join(''));
  if (title !== '') blocks.push({ type: 'paragraph', text: escapeText(title) });
  const plots = childElements(child(chart, 'plotArea')).filter((one) => one.name.endsWith('Chart'));
  for (const plot of plots) {
    blocks.push({ type: 'paragraph', text: kinds[plot.name] ?? 'Chart' });
    const rows = seriesTable(childElements(plot, 'ser'));
    if (rows.length > 1) blocks.push({ type: 'table', rows });
  }
  return blocks;
}

function seriesTable(series: XmlElement[]): string[][] {
  const names = series.map((one, index) => points(child(one, 'tx')).get(0) ?? `Series ${index + 1}`);
  const categories = new Map<number, string>();
  const values = series.map((one) => {
    for (const [index, text] of points(child(one, 'cat') ?? child(one, 'xVal')))
      if (!categories.has(index)) categories.set(index, text);
    return points(child(one, 'val') ?? child(one, 'yVal'));
  });
  const indexes = [...new Set([...categories.keys(), ...values.flatMap((one) => [...one.keys()])])].sort(
    (a, b) => a - b,
  );
  return [
    ['', ...names],
    ...indexes
      .slice(0, pointsMax)
      .map((index) => [categories.get(index) ?? '', ...values.map((one) => one.get(index) ?? '')]),
  ];
}

/** The cached points of a reference by index. */
function points(reference: XmlElement | undefined): Map<number, string> {
  const found = new Map<number, string>();
  for (const point of descendants(reference, 'pt')) {
    const text = textOf(child(point, 'v')).trim();
    const number = Number(text);
    found.set(
      Number(point.attributes.idx ?? 0),
      text !== '' && Number.isFinite(number) ? String(Number(number.toPrecision(12))) : escapeText(text),
    );
  }
  if (found.size === 0) {
    const literal = textOf(child(reference, 'v')).trim();
    if (literal !== '') found.set(0, escapeText(literal));
  }
  return found;
}
