import type { HtmlElement, HtmlNode } from '../tree.ts';

/**
 * Moves what a page writes where HTML allows no text to where browsers show it: contents of a table outside of its
 * cells, and contents of the head.
 */
export function placeMisplaced(element: HtmlElement): void {
  if (element.name === 'head') emptyHead(element);
  if (element.children.some(isTable)) place(element.children.flatMap(separateTable), element);
  for (const child of element.children) if (child.kind === 'element') placeMisplaced(child);
}

function isTable(node: HtmlNode): boolean {
  return node.kind === 'element' && node.name === 'table';
}

function place(nodes: HtmlNode[], parent: HtmlElement): void {
  parent.children = nodes;
  for (const node of nodes) if (node.kind === 'element') node.parent = parent;
}

const rowParts = new Set(['td', 'th']);
const groupParts = new Set(['tr', 'td', 'th']);
const tableParts = new Set(['caption', 'colgroup', 'thead', 'tbody', 'tfoot', 'tr', 'td', 'th']);

function partsOf({ name }: HtmlElement): Set<string> | undefined {
  if (name === 'table') return tableParts;
  if (name === 'tr') return rowParts;
  return name === 'thead' || name === 'tbody' || name === 'tfoot' ? groupParts : undefined;
}

/**
 * The table and what it holds outside of its cells, which stands before it. A table that starts there ends the first one,
 * so that it and the rest stand after it.
 */
function separateTable(node: HtmlNode): HtmlNode[] {
  if (node.kind === 'text' || node.name !== 'table') return [node];
  const before: HtmlNode[] = [];
  const after: HtmlNode[] = [];
  const sweep = (part: HtmlElement, allowed: Set<string>): void => {
    const kept: HtmlElement[] = [];
    const take = (child: HtmlNode): void => {
      if (child.kind === 'element' && allowed.has(child.name)) {
        kept.push(child);
        const inside = partsOf(child);
        if (inside !== undefined) sweep(child, inside);
      } else if (child.kind === 'element' && holdsCells(child)) child.children.forEach(take);
      else if (child.kind === 'element' || child.trimmed > 0)
        (after.length > 0 || isTable(child) ? after : before).push(child);
    };
    part.children.forEach(take);
    place(part.name === 'tr' ? kept : inRows(kept), part);
  };
  sweep(node, tableParts);
  return [...before, node, ...after.flatMap(separateTable)];
}

/** Whether a form, a font or the like stands around rows or cells. */
function holdsCells(element: HtmlElement): boolean {
  return (
    element.name !== 'table' &&
    element.children.some((child) => child.kind === 'element' && (groupParts.has(child.name) || holdsCells(child)))
  );
}

/** Cells beside rows form a row of their own. */
function inRows(parts: HtmlElement[]): HtmlElement[] {
  const rows: HtmlElement[] = [];
  let open: HtmlElement | undefined;
  for (const part of parts) {
    if (!rowParts.has(part.name)) {
      open = undefined;
      rows.push(part);
      continue;
    }
    if (open === undefined) {
      open = { kind: 'element', name: 'tr', attributes: {}, children: [], parent: undefined };
      rows.push(open);
    }
    open.children.push(part);
    part.parent = open;
  }
  return rows;
}

const headParts = new Set(['title', 'meta', 'link', 'base', 'basefont', 'bgsound']);

/** The first element that is not metadata ends the head. It and the rest start the body. */
function emptyHead(head: HtmlElement): void {
  const from = head.children.findIndex((child) => child.kind === 'element' && !headParts.has(child.name));
  const html = head.parent;
  if (from < 0 || html === undefined) return;
  const moved = head.children.splice(from);
  const body = html.children.find((child) => child.kind === 'element' && child.name === 'body');
  if (body?.kind === 'element') place([...moved, ...body.children], body);
  else {
    const added: HtmlElement = { kind: 'element', name: 'body', attributes: {}, children: [], parent: html };
    place(moved, added);
    html.children.splice(html.children.indexOf(head) + 1, 0, added);
  }
}
