import { createHash } from 'node:crypto';
import type { Block, Document } from '../model.ts';

type Of<T extends Block['type']> = Extract<Block, { type: T }>;

/** How a layout writes what differs between layouts. */
export type Layout = {
  heading: (level: number, inner: string, id: string) => string;
  code: (block: Of<'code'>) => string;
  table: (inner: string) => string;
  admonition: (block: Of<'admonition'>, inner: string) => string;
  tabs?: (block: Of<'tabs'>) => string;
  term?: (inner: string, id: string) => string;
  formula?: (tex: string) => string;
  inlineFormula?: (tex: string) => string;
  note?: (id: string) => string;
  notes?: (items: { id: string; inner: string }[]) => string;
};

export function writeHtml(document: Document, layout: Layout): string {
  const text = (written: string): string => writeInline(written, layout);
  const blocks = (all: Block[]): string => all.map(write).join('\n');
  const write = (block: Block): string => {
    switch (block.type) {
      case 'heading':
        return layout.heading(block.level, text(block.text), slugOf(block.text));
      case 'paragraph':
        return `<p>${text(block.text)}</p>`;
      case 'code':
        return layout.code(block);
      case 'table': {
        const [head = [], ...body] = block.rows;
        const row = (cells: string[], name: string): string =>
          `<tr>\n${cells.map((cell) => `<${name}>${text(cell)}</${name}>`).join('\n')}\n</tr>`;
        const rows = body.map((cells) => row(cells, 'td')).join('\n');
        return layout.table(`<thead>\n${row(head, 'th')}\n</thead>\n<tbody>\n${rows}\n</tbody>`);
      }
      case 'list': {
        const name = block.ordered ? 'ol' : 'ul';
        const items = block.items.map((item) => {
          const inner = item.blocks === undefined ? '' : `\n${blocks(item.blocks)}\n`;
          const isLoose = item.blocks?.some((one) => one.type === 'code') === true;
          return `<li>${isLoose ? `\n<p>${text(item.text)}</p>` : text(item.text)}${inner}</li>`;
        });
        return `<${name}>\n${items.join('\n')}\n</${name}>`;
      }
      case 'admonition':
        return layout.admonition(block, blocks(block.blocks));
      case 'tabs':
        return layout.tabs?.(block) ?? '';
      case 'definitions': {
        const entries = block.entries.map(({ term, text: own }) => {
          const inner = layout.term?.(text(term), slugOf(term)) ?? text(term);
          return `<dt id="${slugOf(term)}">${inner}</dt>\n<dd>\n<p>${text(own)}</p>\n</dd>`;
        });
        return `<dl>\n${entries.join('\n')}\n</dl>`;
      }
      case 'formula':
        return layout.formula?.(block.tex) ?? '';
    }
  };
  const notes = document.footnotes.map(({ id, text: own }) => ({ id, inner: text(own) }));
  return `${blocks(document.blocks)}\n${notes.length > 0 ? (layout.notes?.(notes) ?? '') : ''}`;
}

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

function slugOf(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, '')
    .trim()
    .replaceAll(/\s+/g, '-');
}

function writeInline(text: string, layout: Layout): string {
  return text
    .split(/(`[^`]+`|\[\^\w+\]|\[[^\]]+\]\([^)]+\)|\*\*[^*]+\*\*|\$[^$]+\$)/)
    .map((piece) => {
      const note = /^\[\^(\w+)\]$/.exec(piece)?.[1];
      if (note !== undefined) return layout.note?.(note) ?? '';
      const [, label, target] = /^\[([^\]]+)\]\(([^)]+)\)$/.exec(piece) ?? [];
      if (label !== undefined) return `<a href="${target}" rel="nofollow">${escapeHtml(label)}</a>`;
      if (piece.length < 3) return escapeHtml(piece);
      if (piece.startsWith('`')) return `<code>${escapeHtml(piece.slice(1, -1))}</code>`;
      if (piece.startsWith('**')) return `<strong>${escapeHtml(piece.slice(2, -2))}</strong>`;
      if (piece.startsWith('$')) return layout.inlineFormula?.(escapeHtml(piece.slice(1, -1))) ?? '';
      return escapeHtml(piece);
    })
    .join('');
}

type TokenClasses = { comment: string; string: string; keyword: string };

const tokens =
  /(?<comment>\/\*[\s\S]*?\*\/|<!--[\s\S]*?-->|(?:\/\/|#(?!include)|--\s|;\s)[^\n]*)|(?<string>"[^"\n]*"|'[^'\n]*')|\b(?<keyword>import|from|export|for|if|return|def|async|await|const|func|select|where|pub|fn|let|int)\b/g;

/** The code with its comments, strings and some words in spans, as highlighters write them. */
export function highlight(code: string, classes: TokenClasses): string {
  let out = '';
  let from = 0;
  for (const match of code.matchAll(tokens)) {
    const [kind] = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined) ?? [];
    out += `${escapeHtml(code.slice(from, match.index))}<span class="${classes[kind as keyof TokenClasses]}">${escapeHtml(match[0])}</span>`;
    from = match.index + match[0].length;
  }
  return out + escapeHtml(code.slice(from));
}

/** A short number that stays the same, as in generated ids. */
export function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}
