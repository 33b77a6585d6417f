import { tableRows } from '../table-grid.ts';
import {
  collect,
  findAll,
  findFirst,
  type HtmlElement,
  type HtmlNode,
  HtmlText,
  hasAncestor,
  textOf,
} from '../tree.ts';
import { marks } from './marks.ts';

/** Rewrites formulas that a script would draw, and those that are drawn with their source, as `math` with its TeX. */
export function plainFormulas(root: HtmlElement): void {
  for (const element of collect(root, isSource)) makeFormula(element);
  for (const math of collect(root, ({ name }) => name === 'math')) {
    const annotation = findFirst(math, 'annotation');
    if (annotation === undefined || !/tex/i.test(annotation.attributes.encoding ?? '')) continue;
    const isBlock = math.attributes.display === 'block' || hasAncestor(math, isDisplay);
    setFormula(math, textOf(annotation), isBlock);
  }
  plainEquations(root);
  splitTexts(root);
}

/** LaTeXML aligns the parts of an equation, and its number, in the cells of a table. */
const equations = /(?:^|\s)ltx_eqn_table(?:\s|$)/;

function plainEquations(element: HtmlElement): void {
  for (const child of element.children) {
    if (child.kind === 'text') continue;
    if (child.name === 'table' && equations.test(child.attributes.class ?? '')) plainEquation(child);
    else plainEquations(child);
  }
}

function plainEquation(table: HtmlElement): void {
  const rows = tableRows(table).flatMap((cells): HtmlElement[] => {
    const parts = cells.flatMap((cell) => findAll(cell, 'math'));
    const tex = parts.flatMap(({ attributes }) => attributes[marks.tex] ?? []).join(' ');
    if (tex === '') return [];
    const last = cells.at(-1);
    const number = last === undefined ? undefined : /^\(([\w.]{1,10})\)$/.exec(textOf(last))?.[1];
    const math: HtmlElement = { kind: 'element', name: 'math', attributes: {}, children: [], parent: table };
    setFormula(math, number === undefined ? tex : `${tex} \\tag{${number}}`, true);
    return [math];
  });
  if (rows.length === 0) return;
  table.name = 'div';
  table.attributes = {};
  table.children = rows;
}

function isDisplay({ attributes }: HtmlElement): boolean {
  return /(?:^|\s)katex-display(?:\s|$)/.test(attributes.class ?? '');
}

/** Boxes whose text is TeX between delimiters, or whose name says so. */
function isSource({ name, attributes }: HtmlElement): boolean {
  if (name === 'math-renderer') return true;
  if (attributes['data-math-style'] !== undefined) return true;
  return /^(?:span|div|p)$/.test(name) && /(?:^|\s)(?:math|arithmatex)(?:\s|$)/.test(attributes.class ?? '');
}

const formulaCharactersMax = 4_000;

function makeFormula(element: HtmlElement): void {
  if (findFirst(element, 'math') !== undefined) return;
  const text = textOf(element);
  if (text === '' || text.length > formulaCharactersMax) return;
  const written =
    /^\\\((?<inline>[\s\S]+)\\\)$|^\\\[(?<display>[\s\S]+)\\\]$|^\$\$(?<dollars>[\s\S]+)\$\$$|^\$(?<dollar>[\s\S]+)\$$/.exec(
      text,
    );
  const { inline, dollar, display, dollars } = written?.groups ?? {};
  const style = element.attributes['data-math-style'];
  const tex = inline ?? dollar ?? display ?? dollars ?? (style === undefined ? undefined : text);
  if (tex === undefined) return;
  setFormula(element, tex, display !== undefined || dollars !== undefined || style === 'display');
}

function setFormula(element: HtmlElement, tex: string, isBlock: boolean): void {
  element.name = 'math';
  element.attributes = { [marks.tex]: tex.trim(), ...(isBlock ? { display: 'block' } : {}) };
  element.children = [new HtmlText(tex.trim())];
}

/** Formulas in running text, between the delimiters that scripts look for. */
function splitTexts(root: HtmlElement): void {
  const visit = (element: HtmlElement): void => {
    if (/^(?:pre|code|math|a|kbd|samp)$/.test(element.name)) return;
    let changed = false;
    const children = element.children.flatMap((child): HtmlNode[] => {
      if (child.kind === 'element') {
        visit(child);
        return [child];
      }
      if (!child.text.includes('\\(') && !child.text.includes('\\[')) return [child];
      const pieces = splitText(child.text, element);
      if (pieces.length > 1) changed = true;
      return pieces.length > 1 ? pieces : [child];
    });
    if (changed) element.children = children;
  };
  visit(root);
}

const delimited = /\\\(([^\n]{1,1000}?)\\\)|\\\[([\s\S]{1,4000}?)\\\]/g;

function splitText(text: string, parent: HtmlElement): HtmlNode[] {
  const pieces: HtmlNode[] = [];
  let from = 0;
  for (const match of text.matchAll(delimited)) {
    const [whole, inline, display] = match;
    pieces.push(new HtmlText(text.slice(from, match.index)));
    const math: HtmlElement = { kind: 'element', name: 'math', attributes: {}, children: [], parent };
    setFormula(math, inline ?? display ?? '', display !== undefined);
    pieces.push(math);
    from = match.index + whole.length;
  }
  if (pieces.length > 0) pieces.push(new HtmlText(text.slice(from)));
  return pieces;
}
