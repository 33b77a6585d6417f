import { decodeUtf16 } from '../format/utf16.ts';
import { type Block, escapeText } from '../write-markdown.ts';
import { type Book, compactNumber, narrow, type Record, wideString } from './biff.ts';
import { numberText } from './number-format.ts';
import type { SheetBudget } from './sheet.ts';

const chartKinds: { [type: number]: string } = {
  4119: 'Bar chart',
  4120: 'Line chart',
  4121: 'Pie chart',
  4122: 'Area chart',
  4123: 'Scatter chart',
  4158: 'Radar chart',
  4160: 'Radar chart',
};
/** The least bytes of the records of cells. */
const cellBytes: { [type: number]: number } = { 515: 14, 638: 10, 516: 9 };
const pointsMax = 10_000;
const seriesMax = 200;

/** What is drawn over a sheet of an old workbook: text boxes, without comments, and charts. */
export class XlsDrawings {
  readonly #book: Book;
  readonly #texts: Block[] = [];
  readonly #charts: XlsChart[] = [];
  #isComment = false;
  #text = '';
  #left = 0;

  constructor(book: Book) {
    this.#book = book;
  }

  /** Throws ParseError if the charts have more cells than can be read. */
  blocks(budget: SheetBudget): Block[] {
    return [...this.#texts, ...this.#charts.flatMap((chart) => chart.blocks(budget))];
  }

  /** Reads the text of a box, which continues in the records after it. */
  readBox({ type, body }: Record): void {
    if (type === 0x005d) this.#isComment = body.byteLength >= 6 && body.readUInt16LE(4) === 0x19;
    else if (type === 0x01b6) {
      this.#text = '';
      this.#left = body.byteLength >= 12 && !this.#isComment ? body.readUInt16LE(10) : 0;
    } else if (type === 0x003c && this.#left > 0 && body.byteLength > 1) {
      const width = body.readUInt8(0) & 1 ? 2 : 1;
      const end = Math.min(body.byteLength, 1 + this.#left * width);
      this.#text += width === 2 ? decodeUtf16(body, 1, end) : body.toString('latin1', 1, end);
      this.#left -= Math.ceil((end - 1) / width);
      if (this.#left <= 0) this.#endBox();
    }
  }

  #endBox(): void {
    for (const line of this.#text.split(/[\r\n]+/))
      if (line.trim() !== '') this.#texts.push({ type: 'paragraph', text: escapeText(line.trim()) });
  }

  startChart(): void {
    this.#charts.push(new XlsChart());
  }

  /** Reads a record of the chart that was started last. */
  readChart({ type, body }: Record): void {
    const chart = this.#charts.at(-1);
    if (!chart) return;
    const { wide, formats, from1904 } = this.#book;
    if (type === 0x1003) chart.startSeries();
    else if (type === 0x1025) chart.startText();
    else if (type === 0x100d && body.byteLength >= 4)
      chart.text(wide ? wideString(body, 2, 1) : narrow(body.subarray(3)));
    else if (type === 0x1065 && body.byteLength >= 2) chart.startPart(body.readUInt16LE(0));
    else if (chartKinds[type] !== undefined) chart.setKind(chartKinds[type]);
    else if (body.byteLength >= (cellBytes[type] ?? Number.POSITIVE_INFINITY)) {
      const [point, series] = [body.readUInt16LE(0), body.readUInt16LE(2)];
      if (type === 0x0204)
        chart.cell(point, series, escapeText(wide ? wideString(body, 6, 2) : narrow(body.subarray(8))));
      else {
        const value = type === 0x0203 ? body.readDoubleLE(6) : compactNumber(body.readInt32LE(6));
        chart.cell(point, series, escapeText((formats[body.readUInt16LE(4)] ?? numberText)(value, from1904)));
      }
    }
  }
}

/** A chart of an old workbook: its title, and the values that it keeps, with a row for each point and a column for each series. */
class XlsChart {
  #title = '';
  #kind = '';
  readonly #names: string[] = [];
  #series = -1;
  #isSeriesText = false;
  /** What the next cells are: 1 values, 2 labels of the points. */
  #part = 0;
  readonly #values: string[][] = [];
  readonly #labels: string[] = [];

  setKind(kind: string): void {
    this.#kind ||= kind;
  }

  startSeries(): void {
    this.#series += 1;
    this.#isSeriesText = true;
  }

  startText(): void {
    this.#isSeriesText = false;
  }

  text(text: string): void {
    if (!this.#isSeriesText) this.#title ||= text;
    else if (this.#series < seriesMax) this.#names[this.#series] = text;
    this.#isSeriesText = false;
  }

  startPart(part: number): void {
    this.#part = part;
  }

  cell(point: number, series: number, text: string): void {
    if (point >= pointsMax || series >= seriesMax) return;
    if (this.#part === 1) {
      const row = this.#values[point] ?? [];
      row[series] = text;
      this.#values[point] = row;
    } else if (this.#part === 2 && series === 0) this.#labels[point] = text;
  }

  blocks(budget: SheetBudget): Block[] {
    const width = Math.max(this.#names.length, ...this.#values.map((row) => row?.length ?? 0));
    const cells = (row: string[] | undefined): string[] => Array.from({ length: width }, (_, at) => row?.[at] ?? '');
    const points = Math.max(this.#values.length, this.#labels.length);
    budget.addPlaces(points * (width + 1));
    const rows = Array.from({ length: points }, (_, at) => [this.#labels[at] ?? '', ...cells(this.#values[at])]);
    if (!rows.some((row) => row.some((cell) => cell !== ''))) return [];
    const title: Block[] = this.#title === '' ? [] : [{ type: 'paragraph', text: escapeText(this.#title) }];
    const head = ['', ...cells(this.#names.map(escapeText))];
    return [...title, { type: 'paragraph', text: this.#kind || 'Chart' }, { type: 'table', rows: [head, ...rows] }];
  }
}
