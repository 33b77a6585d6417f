import { isBesideCode } from '../code.ts';
import {
  collect,
  findAll,
  type HtmlElement,
  type HtmlNode,
  HtmlText,
  hasAncestor,
  textLength,
  textOf,
} from '../tree.ts';
import { languageOf } from './languages.ts';
import { marks } from './marks.ts';

/** Rewrites each block of code as a `pre` with one text and its language. */
export function plainCode(root: HtmlElement): void {
  for (const table of findAll(root, 'table')) unwrapNumbered(table);
  plainFragments(root);
  for (const code of collect(root, isFolded)) unfold(code);
  const blocks = collect(root, (element) => element.name === 'pre').filter(
    (pre) => !hasAncestor(pre, ({ name }) => name === 'pre'),
  );
  for (const pre of blocks) {
    const language = languageOf(pre);
    dropLabels(pre);
    const parts = flavoursOf(pre);
    if (parts.length > 1) replaceByFlavours(pre, parts);
    else makePlain(pre, textOfCode(pre), language);
  }
}

/** Turns boxes of code of which each line is a box, as Doxygen writes them, into preformatted text. */
function plainFragments(root: HtmlElement): void {
  for (const child of root.children) {
    if (child.kind === 'text') continue;
    if (!isFragment(child)) {
      plainFragments(child);
      continue;
    }
    const lines: HtmlElement[] = [];
    collectLines(child, lines);
    child.name = 'pre';
    child.children = lines;
  }
}

function isFragment({ name, attributes, children }: HtmlElement): boolean {
  if (name !== 'div' || !/(?:^|\s)fragment(?:\s|$)/.test(attributes.class ?? '')) return false;
  return children.some((child) => child.kind === 'element' && isLineBox(child));
}

function collectLines({ children }: HtmlElement, found: HtmlElement[]): void {
  for (const child of children) {
    if (child.kind === 'text') continue;
    if (isLineBox(child)) found.push(child);
    else collectLines(child, found);
  }
}

/** JSON whose objects and arrays are lists that a reader can fold, as Redoc and JSON viewers write it. */
function isFolded({ name, children }: HtmlElement): boolean {
  return name === 'code' && children.some((child) => child.kind === 'element' && child.name === 'ul');
}

function unfold(code: HtmlElement): void {
  const text = unfolded(code, 0);
  code.name = 'pre';
  code.children = [new HtmlText(text)];
  code.attributes = /^\s*[[{]/.test(text) ? { class: 'language-json' } : {};
}

function unfolded({ children }: HtmlElement, depth: number): string {
  let text = '';
  for (const child of children) {
    if (child.kind === 'text') text += child.text.trim() === '' ? '' : child.text;
    else if (child.name === 'li') text += `\n${'  '.repeat(depth)}${unfolded(child, depth)}`;
    else if (child.name === 'ul') text += `${unfolded(child, depth + 1)}\n${'  '.repeat(depth)}`;
    else if (!isBesideCode(child)) text += unfolded(child, depth);
  }
  return text;
}

function isLineBox({ name, attributes }: HtmlElement): boolean {
  return name === 'div' && /(?:^|\s)line(?:\s|$)/.test(attributes.class ?? '');
}

function makePlain(pre: HtmlElement, text: string, language: string | undefined): void {
  const { id } = pre.attributes;
  pre.attributes = {
    ...(id === undefined ? {} : { id }),
    ...(language === undefined ? {} : { [marks.language]: language }),
  };
  pre.children = [new HtmlText(text)];
}

/** Blocks of code in one `pre` of which a switch shows one: each has its own language. */
function flavoursOf(pre: HtmlElement): HtmlElement[] {
  const codes = pre.children.filter((child): child is HtmlElement => child.kind === 'element' && child.name === 'code');
  return codes.length > 1 && codes.every((code) => /(?:^|\s)lang(?:uage)?-/.test(code.attributes.class ?? ''))
    ? codes
    : [];
}

function replaceByFlavours(pre: HtmlElement, codes: HtmlElement[]): void {
  const { parent } = pre;
  if (parent === undefined) return;
  const plain = codes.map((code): HtmlElement => {
    const copy: HtmlElement = { kind: 'element', name: 'pre', attributes: {}, children: [], parent };
    makePlain(copy, textOfCode(code), languageOf(code));
    return copy;
  });
  parent.children.splice(parent.children.indexOf(pre), 1, ...plain);
}

const wrapperLevels = 3;
const labelCharactersMax = 24;

/** Removes the name of the language and the buttons that stand beside the code in its box. */
function dropLabels(pre: HtmlElement): void {
  let box = pre.parent;
  for (let level = 0; level < wrapperLevels && box !== undefined && isBox(box); level++) {
    box.children = box.children.filter((child) => child.kind === 'text' || !isLabel(child, pre));
    box = box.parent;
  }
}

/** Whether an element holds nothing but one block of code. */
function isBox({ name, children }: HtmlElement): boolean {
  return (
    (name === 'div' || name === 'figure') && children.every((child) => child.kind === 'element' || child.trimmed === 0)
  );
}

function isLabel(element: HtmlElement, pre: HtmlElement): boolean {
  if (element === pre || element.name === 'pre') return false;
  if (/^(?:button|clipboard-copy|copy-code|insert-code-snippet)$/.test(element.name)) return true;
  if (/(?:^|[\s-])(?:lang(?:uage)?(?:-name|-label)?|example-header)(?:\s|$)/.test(element.attributes.class ?? ''))
    return textLength(element) <= labelCharactersMax && findAll(element, 'pre').length === 0;
  return false;
}

/** The text of code, without what its box shows beside it. */
function textOfCode({ children }: HtmlElement): string {
  return joinLines(children).replaceAll(/\r\n?/g, '\n');
}

function joinLines(nodes: HtmlNode[]): string {
  let code = '';
  for (const [at, node] of nodes.entries()) {
    if (node.kind === 'element' && isBesideCode(node)) continue;
    const text = rawText(node);
    code += text;
    const next = nodes[at + 1];
    if (next?.kind === 'element' && isLine(node) && isLine(next) && !text.endsWith('\n')) code += '\n';
  }
  return code;
}

function rawText(node: HtmlNode): string {
  if (node.kind === 'text') return node.text.toWellFormed();
  if (node.name === 'br') return '\n';
  const inner = joinLines(node.children);
  const isBlock = node.name === 'div' || node.name === 'p' || node.name === 'tr' || node.name === 'li';
  return (isBlock || isLine(node, blockLine)) && !inner.endsWith('\n') ? `${inner}\n` : inner;
}

/** Some highlighters write each line as an element that a style sheet puts on its own line. */
const anyLine = /(?:^|[\s_-])line(?=\s|$)/;
/** The marked lines among text with line breaks. */
const blockLine = /(?:^|[\s_-])(?:highlight-code-line|highlight-line)(?=\s|$)/;

function isLine(node: HtmlNode, names = anyLine): boolean {
  if (node.kind === 'text') return false;
  return (
    (names === anyLine && node.name === 'code') || (node.name === 'span' && names.test(node.attributes.class ?? ''))
  );
}

/** Replaces a table with the numbers of lines in one column and the code in the other by the code. */
function unwrapNumbered(table: HtmlElement): void {
  const { parent } = table;
  if (parent === undefined) return;
  const rows = findAll(table, 'tr').map((row) => row.children.filter((child) => child.kind === 'element'));
  const [first] = rows;
  if (first === undefined || !rows.every((cells) => cells.length === 2)) return;
  const isInCode = hasAncestor(table, ({ name }) => name === 'pre');
  const numbers = rows.map(([cell]) => cell);
  if (!numbers.every((cell) => cell !== undefined && isNumberCell(cell))) return;
  const codes = rows.flatMap(([, cell]) => (cell === undefined ? [] : [cell]));
  const isBlock = rows.length === 1 && codes.every((cell) => isInCode || findAll(cell, 'pre').length > 0);
  const isLines = isInCode || codes.every((cell) => /(?:^|[\s-])code(?:[\s-]|$)/.test(cell.attributes.class ?? ''));
  if (!isBlock && !isLines) return;
  const box: HtmlElement = {
    kind: 'element',
    name: isBlock ? 'div' : 'pre',
    attributes: table.attributes,
    children: [],
    parent,
  };
  for (const cell of codes) {
    const line: HtmlElement = { ...cell, name: 'div', parent: box };
    for (const child of line.children) if (child.kind === 'element') child.parent = line;
    box.children.push(line);
  }
  parent.children.splice(parent.children.indexOf(table), 1, box);
}

function isNumberCell(cell: HtmlElement): boolean {
  const text = textOf(cell);
  if (text === '') return cell.attributes['data-line-number'] !== undefined;
  return /^\d+(?: \d+)*$/.test(text) && (isBesideCode(cell) || isCounting(text));
}

/** Whether the numbers are consecutive. */
function isCounting(text: string): boolean {
  const numbers = text.split(' ').map(Number);
  return numbers.length > 1 && numbers.every((number, at) => number === (numbers[0] ?? 0) + at);
}
