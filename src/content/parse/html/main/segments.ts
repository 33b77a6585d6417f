import { isLayoutTable, tableRows } from '../table-grid.ts';
import { blockNames, type HtmlElement, type HtmlNode } from '../tree.ts';

/**
 * A run of inline content, a row of a table or a preformatted text: a part of a page that is kept or dropped as a
 * whole.
 */
export type Segment = { block: HtmlElement; nodes: HtmlNode[]; text: string };

/** Elements whose contents never become text. */
const unwrittenNames = new Set('select option textarea input datalist head title meta link'.split(' '));

/** The parts of a page in document order, and the parts that contain only pictures. */
export function findSegments(body: HtmlElement): Segment[] {
  const segments: Segment[] = [];
  const blocksInside = new Set<HtmlElement>();
  markBlocks(body, blocksInside);
  const isInline = (node: HtmlNode): boolean =>
    node.kind === 'text' || !(isBox(node) || blocksInside.has(node) || unwrittenNames.has(node.name));
  const add = (block: HtmlElement, nodes: HtmlNode[]): void => {
    const text = joinText(nodes);
    if (text !== '' || nodes.some(hasPicture)) segments.push({ block, nodes, text });
  };
  const visit = (element: HtmlElement, block: HtmlElement, dataTable: boolean): void => {
    let run: HtmlNode[] = [];
    for (const node of element.children) {
      if (isInline(node)) {
        run.push(node);
        continue;
      }
      if (run.length > 0) add(block, run);
      run = [];
      if (node.kind === 'text' || unwrittenNames.has(node.name)) continue;
      if (node.name === 'pre' || node.name === 'math' || (node.name === 'tr' && dataTable)) add(node, node.children);
      else visit(node, isBox(node) ? node : block, node.name === 'table' ? isDataTable(node) : dataTable);
    }
    if (run.length > 0) add(block, run);
  };
  visit(body, body, false);
  return segments;
}

/** A copy of the page with the chosen parts and the elements around them. */
export function copySegments(element: HtmlElement, chosen: Set<HtmlNode>, parent?: HtmlElement): HtmlElement {
  const name = element.name === 'button' ? 'div' : element.name;
  const copy: HtmlElement = { kind: 'element', name, attributes: element.attributes, children: [], parent };
  for (const child of element.children) {
    if (child.kind === 'text') {
      if (chosen.has(child)) copy.children.push(child);
    } else if (chosen.has(child)) copy.children.push(copyAll(child, copy));
    else {
      const part = copySegments(child, chosen, copy);
      if (part.children.length > 0) copy.children.push(part);
    }
  }
  return copy;
}

function copyAll(element: HtmlElement, parent: HtmlElement): HtmlElement {
  const copy: HtmlElement = { ...element, children: [], parent };
  for (const child of element.children) copy.children.push(child.kind === 'text' ? child : copyAll(child, copy));
  return copy;
}

function isBox({ name }: HtmlElement): boolean {
  return blockNames.has(name) || name === 'button';
}

function isDataTable(table: HtmlElement): boolean {
  return !isLayoutTable(table, tableRows(table));
}

/** Marks every element that contains a block. */
function markBlocks(element: HtmlElement, found: Set<HtmlElement>): boolean {
  let holds = false;
  for (const child of element.children)
    if (child.kind === 'element' && (markBlocks(child, found) || isBox(child))) holds = true;
  if (holds) found.add(element);
  return holds;
}

function hasPicture(node: HtmlNode): boolean {
  return node.kind === 'element' && (node.name === 'img' || node.children.some(hasPicture));
}

function joinText(nodes: HtmlNode[]): string {
  let text = '';
  const visit = (node: HtmlNode): void => {
    if (node.kind === 'text') {
      text += node.collapsed;
      return;
    }
    const separated = blockNames.has(node.name) || node.name === 'br';
    if (separated) text += ' ';
    for (const child of node.children) visit(child);
    if (separated) text += ' ';
  };
  for (const node of nodes) visit(node);
  return text.replace(/\s+/g, ' ').trim();
}
