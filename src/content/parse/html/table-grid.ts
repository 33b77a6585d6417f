import { collect, type HtmlElement, textLength } from './tree.ts';

const spanMax = 100;
const columnsMax = 500;
/** The number of positions that spanning cells may fill in one table. Further positions stay empty. */
const spannedPlacesMax = 50_000;
const cellTextMax = 2_000;

/** The rows of this table, without those of tables in its cells. */
export function tableRows(table: HtmlElement): HtmlElement[][] {
  const rows: HtmlElement[][] = [];
  const visit = (element: HtmlElement): void => {
    for (const child of element.children) {
      if (child.kind !== 'element' || 'hidden' in child.attributes) continue;
      if (child.name === 'tr')
        rows.push(
          child.children.filter(
            (one): one is HtmlElement => one.kind === 'element' && (one.name === 'td' || one.name === 'th'),
          ),
        );
      else if (child.name !== 'table' && child.name !== 'caption') visit(child);
    }
  };
  visit(table);
  return rows.filter((row) => row.length > 0);
}

/** Layout tables: one cell, nested tables, or headings and long text in the cells. */
export function isLayoutTable(table: HtmlElement, rows: HtmlElement[][]): boolean {
  const cells = rows.flat();
  if (table.attributes.role === 'presentation' || cells.length <= 1) return true;
  if (cells.some((cell) => cell.name === 'th')) return false;
  const captioned = table.children.some((child) => child.kind === 'element' && child.name === 'caption');
  if (!captioned && cells.some(holdsText)) return true;
  const heavy = cells.filter((cell) => collect(cell, ({ name }) => heavyNames.has(name)).length > 0).length;
  return heavy > 0 && (rows.length === 1 || heavy > cells.length / 2);
}

const heavyNames = new Set(['table', 'h1', 'h2', 'h3', 'article', 'section']);

function holdsText(cell: HtmlElement): boolean {
  return (
    collect(cell, ({ name }) => name === 'p').length > 2 ||
    collect(cell, ({ name }) => name === 'pre' || name === 'table').length > 0 ||
    textLength(cell) > cellTextMax
  );
}

/**
 * Repeats spanning cells in each of their positions, so that every row can be read by itself. A row of one cell is a
 * title or a text across the table, which is written once.
 */
export function spreadCells(
  rows: HtmlElement[][],
  write: (cell: HtmlElement) => string,
  onCut: (missing: string) => void = () => {},
): string[][] {
  const grid: string[][] = rows.map(() => []);
  let spanned = 0;
  rows.forEach((row, y) => {
    let x = 0;
    for (const cell of row) {
      while (grid[y]?.[x] !== undefined) x += 1;
      if (x >= columnsMax) {
        onCut(`columns of a table after the first ${columnsMax}`);
        break;
      }
      const text = write(cell);
      const isAlone = row.length === 1 && x === 0;
      const columns = spanOf(cell.attributes.colspan);
      const height = Math.min(spanOf(cell.attributes.rowspan), rows.length - y);
      for (let down = 0; down < height; down++)
        for (let right = 0; right < columns && x + right < columnsMax; right++) {
          const first = down === 0 && right === 0;
          if (!first && spanned++ >= spannedPlacesMax) {
            onCut(`repeated text of spanning cells beyond the first ${spannedPlacesMax} repetitions`);
            continue;
          }
          const target = grid[y + down];
          if (target) target[x + right] = isAlone && right > 0 ? '' : text;
        }
      x += columns;
    }
  });
  return grid.map((row) => Array.from(row, (cell) => cell ?? ''));
}

function spanOf(value: string | undefined): number {
  const number = Number.parseInt(value ?? '1', 10);
  return Number.isFinite(number) ? Math.min(spanMax, Math.max(1, number)) : 1;
}
