import { collect, type HtmlElement } from '../tree.ts';

/** Rewrites tables that a page draws with boxes as `table`, if no text of the box is outside of its cells. */
export function plainTables(root: HtmlElement): void {
  for (const box of collect(root, isTableByRole)) {
    const rows = rowsByRole(box);
    if (rows !== undefined) rewrite(box, rows);
  }
  for (const box of collect(root, endsWithLastCell)) {
    const rows = rowsOfSummary(box);
    if (rows !== undefined) rewrite(box, rows);
  }
}

type Row = { box: HtmlElement | undefined; cells: HtmlElement[] };

const tableRoles = /^(?:table|grid|treegrid)$/;
const cellRoles = /^(?:cell|gridcell|columnheader|rowheader)$/;
const headerRoles = /^(?:columnheader|rowheader)$/;

function isTableByRole({ name, attributes }: HtmlElement): boolean {
  return name !== 'table' && tableRoles.test(attributes.role ?? '');
}

/** The rows of a box with the roles of WAI-ARIA. A grid without headers is a list of cards or a calendar. */
function rowsByRole(box: HtmlElement): Row[] | undefined {
  const boxes = partsByRole(box, /^row$/);
  const rows = boxes?.map((row) => ({ box: row, cells: partsByRole(row, cellRoles) ?? [] })) ?? [];
  if (rows.length < 2 || rows.some(({ cells }) => cells.length === 0)) return undefined;
  const cells = rows.flatMap((row) => row.cells);
  const isHeader = ({ attributes }: HtmlElement): boolean => headerRoles.test(attributes.role ?? '');
  if (cells.length === rows.length || (box.attributes.role !== 'table' && !cells.some(isHeader))) return undefined;
  for (const cell of cells) {
    const { 'aria-colspan': colspan, 'aria-rowspan': rowspan } = cell.attributes;
    cell.name = isHeader(cell) ? 'th' : 'td';
    cell.attributes = {
      ...cell.attributes,
      ...(colspan === undefined ? {} : { colspan }),
      ...(rowspan === undefined ? {} : { rowspan }),
    };
  }
  return rows;
}

/** The outermost parts with a role. Undefined if there is text beside them or a table around them. */
function partsByRole(box: HtmlElement, role: RegExp): HtmlElement[] | undefined {
  const parts: HtmlElement[] = [];
  const visit = (element: HtmlElement): boolean =>
    element.children.every((child) => {
      if (child.kind === 'text') return child.trimmed === 0;
      if (!role.test(child.attributes.role ?? '')) return !isTable(child) && visit(child);
      parts.push(child);
      return true;
    });
  return visit(box) ? parts : undefined;
}

function isTable(element: HtmlElement): boolean {
  return element.name === 'table' || isTableByRole(element);
}

/** The last cell of a row in the summaries that Javadoc writes since version 16. */
const lastCell = 'col-last';

function endsWithLastCell({ name, children }: HtmlElement): boolean {
  if (name !== 'div') return false;
  const last = children.findLast((child) => child.kind === 'element');
  return last?.kind === 'element' && namesOf(last).includes(lastCell);
}

/** The rows of a summary, whose cells follow each other without boxes around the rows. */
function rowsOfSummary(box: HtmlElement): Row[] | undefined {
  const rows: Row[] = [];
  let cells: HtmlElement[] = [];
  for (const child of box.children) {
    if (child.kind === 'text') {
      if (child.trimmed > 0) return undefined;
      continue;
    }
    const names = namesOf(child);
    if (!names.some((name) => name.startsWith('col-'))) return undefined;
    cells.push(child);
    if (!names.includes(lastCell)) continue;
    rows.push({ box: undefined, cells });
    cells = [];
  }
  const width = rows[0]?.cells.length ?? 0;
  if (rows.length < 2 || width < 2 || rows.some((row) => row.cells.length !== width)) return undefined;
  for (const cell of rows.flatMap((row) => row.cells)) {
    cell.name = namesOf(cell).includes('table-header') ? 'th' : 'td';
    // A header of a column is not the header of a page.
    cell.attributes = {};
  }
  return rows;
}

function namesOf({ attributes }: HtmlElement): string[] {
  return (attributes.class ?? '').split(/\s+/);
}

function rewrite(box: HtmlElement, rows: Row[]): void {
  box.name = 'table';
  box.children = rows.map(({ box: own, cells }) => {
    const row = own ?? { kind: 'element' as const, name: 'tr', attributes: {}, children: [], parent: undefined };
    for (const cell of cells) cell.parent = row;
    return Object.assign(row, { name: 'tr', parent: box, children: cells });
  });
}
