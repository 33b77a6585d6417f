import type { Nodes, Root, Table } from 'mdast';
import remarkGfm from 'remark-gfm';
import remarkParse from 'remark-parse';
import { unified } from 'unified';
import { emptyStructure, languageName, plainCode, plainWords, type Structure } from './structure.ts';

/** Reads the structure of a Markdown text with the parser that browsers' renderers use. */
export function readStructure(markdown: string): Structure {
  const found = emptyStructure();
  const formulas: string[] = [];
  const root: Root = unified().use(remarkParse).use(remarkGfm).parse(withoutFormulas(markdown, formulas));
  const restore = (text: string): string =>
    plainWords(text.replaceAll(/⟦(\d+)⟧/g, (_all, at: string) => `$${formulas[Number(at)] ?? ''}$`));
  const textOf = (node: Nodes): string => restore(rawTextOf(node));
  found.formulas.push(...formulas.map((tex) => plainWords(tex)));

  const notes = new Map<string, string>();
  const referred = new Set<string>();
  type Place = { depth: number; item?: string };
  const visitAll = (nodes: readonly Nodes[], place: Place): void => {
    for (const [at, node] of nodes.entries()) {
      const label = node.type === 'paragraph' ? strongOnly(node) : undefined;
      const next = nodes[at + 1];
      if (label !== undefined && next !== undefined && place.depth === 0) {
        const first = next.type === 'code' ? plainCode(next.value) : textOf(next);
        found.tabs.push(`${restore(label)} ⇒ ${first}`);
      }
      visit(node, place);
    }
  };
  const visit = (node: Nodes, place: Place): void => {
    switch (node.type) {
      case 'heading':
        found.headings.push(`${node.depth} ${textOf(node)}`);
        break;
      case 'code': {
        const text = plainCode(node.value);
        found.code.push(text);
        found.codeWithLanguage.push(`${languageName(node.lang ?? '')} ${text}`);
        if (place.item !== undefined) found.codeInItems.push(`${place.item} ⇒ ${text}`);
        return;
      }
      case 'table':
        found.tables.push(...cellsOf(node, textOf));
        break;
      case 'link':
        found.links.push(`${textOf(node)} ⇒ ${node.url}`);
        break;
      case 'footnoteReference':
        referred.add(node.identifier);
        break;
      case 'footnoteDefinition':
        notes.set(node.identifier, node.children.map(textOf).join(' '));
        visitAll(node.children, { depth: 1 });
        return;
      case 'blockquote': {
        const kind = /^\[!(\w+)\]/.exec(textOf(node))?.[1];
        if (kind !== undefined) found.admonitions.push(`${kindName(kind)} ${wordsOf(node, restore)}`);
        visitAll(node.children, { depth: 1 });
        return;
      }
      case 'list':
        for (const item of node.children) {
          const [first, ...rest] = item.children;
          const text = first === undefined ? '' : first.type === 'paragraph' ? textOf(first) : '';
          const term = first?.type === 'paragraph' ? strongOnly(first) : undefined;
          const [list] = rest;
          if (term !== undefined && list?.type === 'list' && rest.length === 1) {
            for (const child of list.children) found.definitions.push(`${restore(term)} ⇒ ${textOf(child)}`);
            visit(first as Nodes, { depth: 1 });
            for (const child of list.children) visitAll(child.children, { depth: 1 });
            continue;
          }
          const depth = place.item === undefined ? 0 : place.depth;
          found.lists.push(`${depth} ${node.ordered ? 'ordered' : 'bullet'} ${text}`);
          visitAll(item.children, { depth: depth + 1, item: text });
        }
        return;
      default:
    }
    if ('children' in node) visitAll(node.children, place);
  };
  visitAll(root.children, { depth: 0 });
  for (const [id, text] of notes) if (referred.has(id)) found.footnotes.push(text);
  return found;
}

/** Replaces formulas outside of code by marks, because Markdown would read their backslashes. */
function withoutFormulas(markdown: string, formulas: string[]): string {
  return markdown.replaceAll(
    /(^[ >]*(`{3,})[\s\S]*?\n[ >]*\2|`+[^`\n]+`+)|\$\$([\s\S]+?)\$\$|\$([^$\n]+)\$/gm,
    (all, code: string | undefined, _fence, display: string | undefined, inline: string | undefined) => {
      if (code !== undefined) return all;
      formulas.push(display ?? inline ?? '');
      return `⟦${formulas.length - 1}⟧`;
    },
  );
}

function rawTextOf(node: Nodes): string {
  if (node.type === 'break') return ' ';
  if (node.type === 'image') return '';
  if ('value' in node) return node.type === 'html' ? '' : node.value;
  if (!('children' in node)) return '';
  const isInline = ['paragraph', 'heading', 'tableCell', 'link', 'strong', 'emphasis', 'delete'].includes(node.type);
  return node.children.map(rawTextOf).join(isInline ? '' : ' ');
}

/** The text of a paragraph that is one bold phrase. */
function strongOnly(node: Nodes): string | undefined {
  if (!('children' in node) || node.children.length !== 1) return undefined;
  const [only] = node.children;
  return only?.type === 'strong' ? rawTextOf(only) : undefined;
}

function cellsOf(table: Table, textOf: (node: Nodes) => string): string[] {
  const header = (table.children[0]?.children ?? []).map(textOf).join(' | ');
  return table.children.flatMap((row, y) => row.children.map((cell, x) => `${header} ${y} ${x} ${textOf(cell)}`));
}

/** Some generators call a warning a caution. */
function kindName(kind: string): string {
  const lower = kind.toLowerCase();
  return lower === 'caution' ? 'warning' : lower;
}

/** The title and text of an admonition without its kind. */
function wordsOf(node: Nodes, restore: (text: string) => string): string {
  return restore(rawTextOf(node)).replace(/^\[!\w+\] ?/, '');
}
