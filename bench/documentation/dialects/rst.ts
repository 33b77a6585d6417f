import type { Block, Document, Item } from '../model.ts';
import { indent } from './markdown.ts';

export type TabDirectives = { set?: string; tab: string };

/** Writes a document as reStructuredText for Sphinx. */
export function writeRst(document: Document, tabs: TabDirectives | undefined): string {
  const blocks = (all: Block[]): string => all.map(write).join('\n\n');
  const directive = (name: string, argument: string, content: string, options: string[] = []): string => {
    const fields = options.map((option) => `\n   ${option}`).join('');
    return `.. ${name}::${argument === '' ? '' : ` ${argument}`}${fields}\n\n   ${indent(content, '   ')}`;
  };
  const item = ({ text, blocks: inner }: Item, marker: string): string => {
    const content = inner === undefined ? inline(text) : `${inline(text)}\n\n${blocks(inner)}`;
    return `${marker} ${indent(content, ' '.repeat(marker.length + 1))}`;
  };
  const write = (block: Block): string => {
    switch (block.type) {
      case 'heading':
        return `${inline(block.text)}\n${(['=', '-', '~', '^', '"'][block.level - 2] ?? "'").repeat(block.text.length + 4)}`;
      case 'paragraph':
        return inline(block.text);
      case 'code':
        return directive('code-block', block.language, block.text, block.numbered ? [':linenos:'] : []);
      case 'table':
        return writeTable(block.rows);
      case 'list':
        return block.items.map((one, at) => item(one, block.ordered ? `${at + 1}.` : '-')).join('\n\n');
      case 'admonition':
        if (block.title === undefined) return directive(block.kind, '', blocks(block.blocks));
        return directive('admonition', block.title, blocks(block.blocks), [`:class: ${block.kind}`]);
      case 'tabs': {
        if (tabs === undefined) throw new Error('The theme has no tabs.');
        const all = block.tabs.map((tab) => directive(tabs.tab, tab.label, blocks(tab.blocks))).join('\n\n');
        return tabs.set === undefined ? all : directive(tabs.set, '', all);
      }
      case 'definitions':
        return block.entries.map((entry) => `${inline(entry.term)}\n   ${inline(entry.text)}`).join('\n\n');
      case 'formula':
        return directive('math', '', block.tex);
    }
  };
  const bar = '#'.repeat(document.title.length);
  const notes = document.footnotes.map((note) => `.. [#n${note.id}] ${inline(note.text)}`).join('\n');
  return `${bar}\n${document.title}\n${bar}\n\n${blocks(document.blocks)}\n\n${notes}\n`;
}

function writeTable(rows: string[][]): string {
  const lines = rows.map((row) =>
    row.map((cell, at) => `${at === 0 ? '* -' : '  -'} ${inline(cell)}`.trimEnd()).join('\n'),
  );
  return `.. list-table::\n   :header-rows: 1\n\n   ${indent(lines.join('\n'), '   ')}`;
}

function inline(text: string): string {
  return text
    .replaceAll(/`([^`]+)`/g, '``$1``')
    .replaceAll(/\[\^(\w+)\]/g, ' [#n$1]_')
    .replaceAll(/\[([^\]]+)\]\(([^)]+)\)/g, '`$1 <$2>`__')
    .replaceAll(/\$([^$]+)\$/g, ':math:`$1`');
}
