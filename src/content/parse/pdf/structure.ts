import { buildLines, type Line, type Segment } from './lines.ts';
import { type PdfBlock, plainText, type TextBlock } from './paragraphs.ts';
import type { StructureElement } from './structure-tree.ts';
import type { WordList } from './words.ts';

const coverageNeeded = 0.85;
const inlineRoles =
  /^(?:span|link|em|strong|reference|code|quote|annot|ruby|rb|rt|rp|warichu|wt|wp|nonstruct|private|sub|bibentry|form)$/i;

/**
 * A page by its logical structure (tagged PDF): headings, lists, tables and the reading order. Undefined when the page
 * has none or it omits too much of the text.
 */
export function structuredBlocks(
  tree: StructureElement[],
  segments: Segment[],
  words: WordList,
): PdfBlock[] | undefined {
  const byContent = new Map<number, Segment[]>();
  for (const segment of segments) {
    if (segment.markedContent < 0) continue;
    const list = byContent.get(segment.markedContent) ?? [];
    list.push(segment);
    byContent.set(segment.markedContent, list);
  }
  const reader = new StructureReader(byContent, words);
  for (const element of tree) reader.element(element, 0);
  reader.flush('P', 0);
  const all = lengthOf(segments);
  const left = segments.filter((segment) => !reader.used.has(segment.markedContent));
  if (all === 0 || lengthOf(left) > all * (1 - coverageNeeded)) return undefined;
  for (const line of buildLines(left)) reader.text([line], 'P', 0, undefined);
  return reader.blocks;
}

class StructureReader {
  readonly blocks: PdfBlock[] = [];
  readonly used = new Set<number>();
  readonly #contents: Map<number, Segment[]>;
  readonly #words: WordList;
  #pending: Segment[] = [];
  #marker: string | undefined;
  /** Cells that span rows still to come. */
  #started = new Map<number, string[]>();
  /** The centre of each cell's text, by row and column. */
  #centres: (number | undefined)[][] = [];

  constructor(contents: Map<number, Segment[]>, words: WordList) {
    this.#contents = contents;
    this.#words = words;
  }

  element(element: StructureElement, depth: number): void {
    const role = element.role;
    if (/^table$/i.test(role)) {
      this.flush('P', depth);
      this.#table(element, depth);
    } else if (/^l$/i.test(role)) {
      this.flush('P', depth);
      for (const child of element.children) if (typeof child !== 'number') this.#item(child, depth);
    } else if (/^figure$/i.test(role) && element.alternative.trim() !== '' && this.#segments(element).length === 0) {
      this.flush('P', depth);
      this.#markUsed(element);
      this.#block(element.alternative, [], 'Figure', depth, undefined);
    } else {
      const inline = inlineRoles.test(role);
      if (!inline) this.flush('P', depth);
      for (const child of element.children) {
        if (typeof child === 'number') this.#content(child);
        else this.element(child, depth);
      }
      if (!inline) this.flush(role, depth);
    }
  }

  /** Ends the collected text as a block of that role. */
  flush(role: string, depth: number): void {
    const segments = this.#pending;
    this.#pending = [];
    const marker = this.#marker;
    if (segments.length === 0) return;
    this.#marker = undefined;
    this.text(buildLines(segments), role, depth, marker);
  }

  text(lines: Line[], role: string, depth: number, marker: string | undefined): void {
    this.#block(plainText(lines, this.#words), lines, role, depth, marker);
  }

  #content(content: number): void {
    if (this.used.has(content)) return;
    this.used.add(content);
    this.#pending.push(...(this.#contents.get(content) ?? []));
  }

  #block(text: string, lines: Line[], role: string, depth: number, marker: string | undefined): void {
    if (text.trim() === '') return;
    const block: TextBlock = {
      kind: 'text',
      text,
      lines,
      size: Math.max(0, ...lines.map((line) => line.size)),
      bold: lines.length > 0 && lines.every((line) => line.bold),
      mono: lines.length > 0 && lines.every((line) => line.mono),
      above: Number.POSITIVE_INFINITY,
      below: Number.POSITIVE_INFINITY,
      marker,
      left: depth * 20,
      role,
    };
    this.blocks.push(block);
  }

  /** A list item: its label is the marker; nested lists are one level deeper. */
  #item(element: StructureElement, depth: number): void {
    if (!/^(?:li|l)$/i.test(element.role)) {
      this.element(element, depth);
      return;
    }
    if (/^l$/i.test(element.role)) {
      this.element(element, depth + 1);
      return;
    }
    let label = '';
    for (const child of element.children) {
      if (typeof child !== 'number' && /^lbl$/i.test(child.role)) {
        label = plainText(buildLines(this.#segments(child)), this.#words).trim();
        this.#markUsed(child);
        continue;
      }
      if (typeof child !== 'number' && /^l$/i.test(child.role)) {
        this.flush('LI', depth);
        this.element(child, depth + 1);
        continue;
      }
      this.#marker ??= label === '' ? '•' : label;
      if (typeof child === 'number') this.#content(child);
      else this.#itemBody(child, depth);
    }
    this.flush('LI', depth);
    this.#marker = undefined;
  }

  #itemBody(body: StructureElement, depth: number): void {
    for (const child of body.children) {
      if (typeof child === 'number') this.#content(child);
      else if (/^l$/i.test(child.role)) {
        this.flush('LI', depth);
        this.element(child, depth + 1);
      } else if (inlineRoles.test(child.role)) this.element(child, depth);
      else {
        this.flush('LI', depth);
        for (const inner of child.children) {
          if (typeof inner === 'number') this.#content(inner);
          else this.element(inner, depth);
        }
        this.flush('LI', depth);
      }
    }
  }

  #table(element: StructureElement, depth: number): void {
    const rows: string[][] = [];
    const lines: Line[] = [];
    this.#started = new Map();
    this.#centres = [];
    const visit = (one: StructureElement): void => {
      for (const child of one.children) {
        if (typeof child === 'number') continue;
        if (/^tr$/i.test(child.role)) this.#row(child, rows, lines);
        else if (/^caption$/i.test(child.role)) this.element(child, depth);
        else visit(child);
      }
    };
    visit(element);
    this.#placeShortRows(rows);
    const filled = rows.filter((row) => row.some((text) => text !== ''));
    if (filled.length === 0) return;
    const place = { left: 0, right: 0, top: 0, bottom: 0 };
    if (filled.length > 1 || (filled[0]?.length ?? 0) > 1)
      this.blocks.push({ kind: 'table', table: { rows, ...place } });
    else this.text(lines, 'P', depth, undefined);
  }

  /** Adds a row: a cell that spans columns or rows is in each of its positions. */
  #row(row: StructureElement, rows: string[][], lines: Line[]): void {
    const y = rows.length;
    const cells = this.#started.get(y) ?? [];
    const centres: (number | undefined)[] = [];
    let x = 0;
    for (const cell of row.children) {
      if (typeof cell === 'number') continue;
      const own = buildLines(this.#segments(cell));
      this.#markUsed(cell);
      lines.push(...own);
      const text = plainText(own, this.#words).trim();
      while (cells[x] !== undefined) x += 1;
      if (own.length > 0)
        centres[x] = (Math.min(...own.map((line) => line.left)) + Math.max(...own.map((line) => line.right))) / 2;
      for (let down = 0; down < cell.rows; down++) {
        const target = down === 0 ? cells : (this.#started.get(y + down) ?? []);
        for (let right = 0; right < cell.columns; right++) target[x + right] = text;
        if (down > 0) this.#started.set(y + down, target);
      }
      x += cell.columns;
    }
    rows.push(Array.from(cells, (text) => text ?? ''));
    this.#centres.push(centres);
  }

  /** Places the cells of a row that has fewer than the widest, such as a total, below the cells that they align with. */
  #placeShortRows(rows: string[][]): void {
    const width = Math.max(0, ...rows.map((row) => row.length));
    const widest = rows.findIndex((row) => row.length === width);
    const columns = this.#centres[widest] ?? [];
    rows.forEach((row, y) => {
      if (row.length >= width) return;
      const placed = Array.from({ length: width }, () => '');
      let from = 0;
      row.forEach((text, x) => {
        const centre = this.#centres[y]?.[x];
        if (centre !== undefined) from = Math.max(from, nearestColumn(columns, centre));
        if (from < width) placed[from] = text;
        from += 1;
      });
      rows[y] = placed;
    });
  }

  #segments(element: StructureElement): Segment[] {
    return element.children.flatMap((child) =>
      typeof child === 'number' ? (this.#contents.get(child) ?? []) : this.#segments(child),
    );
  }

  #markUsed(element: StructureElement): void {
    for (const child of element.children) {
      if (typeof child === 'number') this.used.add(child);
      else this.#markUsed(child);
    }
  }
}

function lengthOf(segments: Segment[]): number {
  return segments.reduce((sum, segment) => sum + segment.text.length, 0);
}

function nearestColumn(columns: (number | undefined)[], centre: number): number {
  let best = 0;
  columns.forEach((column, index) => {
    const nearest = columns[best] ?? Number.POSITIVE_INFINITY;
    if (column !== undefined && Math.abs(column - centre) < Math.abs(nearest - centre)) best = index;
  });
  return best;
}
