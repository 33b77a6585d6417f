import {
  emptyStructure,
  languageName,
  plainCode,
  plainWords,
  type Structure,
} from '../../test/support/documentation/structure.ts';
import type { Block, Document } from './model.ts';

/** What a reader of the rendered document should find. */
export function structureOf(document: Document): Structure {
  const found = emptyStructure();
  const links = (text: string): void => {
    for (const [, label = '', target = ''] of text.matchAll(/\[([^\]^]+)\]\(([^)]+)\)/g))
      found.links.push(`${plainText(label)} ⇒ ${target}`);
    for (const [, tex = ''] of text.matchAll(/\$([^$]+)\$/g)) found.formulas.push(plainWords(tex));
  };
  type Place = { depth: number; item?: string };
  const visit = (block: Block, place: Place): void => {
    switch (block.type) {
      case 'heading':
        found.headings.push(`${block.level} ${plainText(block.text)}`);
        break;
      case 'paragraph':
        links(block.text);
        break;
      case 'code': {
        const text = plainCode(block.text);
        found.code.push(text);
        found.codeWithLanguage.push(`${languageName(block.language)} ${text}`);
        if (place.item !== undefined) found.codeInItems.push(`${place.item} ⇒ ${text}`);
        break;
      }
      case 'table': {
        const header = (block.rows[0] ?? []).map(plainText).join(' | ');
        for (const [y, row] of block.rows.entries())
          for (const [x, cell] of row.entries()) {
            found.tables.push(`${header} ${y} ${x} ${plainText(cell)}`);
            links(cell);
          }
        break;
      }
      case 'list':
        for (const item of block.items) {
          const text = plainText(item.text);
          found.lists.push(`${place.depth} ${block.ordered ? 'ordered' : 'bullet'} ${text}`);
          links(item.text);
          for (const inner of item.blocks ?? []) visit(inner, { depth: place.depth + 1, item: text });
        }
        break;
      case 'admonition':
        found.admonitions.push(
          `${block.kind} ${plainWords([block.title ?? '', ...block.blocks.map(wordsOf)].join(' '))}`,
        );
        for (const inner of block.blocks) visit(inner, { depth: 0 });
        break;
      case 'tabs':
        for (const tab of block.tabs) {
          const [first] = tab.blocks;
          const content = first?.type === 'code' ? plainCode(first.text) : first === undefined ? '' : wordsOf(first);
          found.tabs.push(`${tab.label} ⇒ ${content}`);
          for (const inner of tab.blocks) visit(inner, place);
        }
        break;
      case 'definitions':
        for (const entry of block.entries) {
          found.definitions.push(`${plainText(entry.term)} ⇒ ${plainText(entry.text)}`);
          links(entry.text);
        }
        break;
      case 'formula':
        found.formulas.push(plainWords(block.tex));
    }
  };
  for (const block of document.blocks) visit(block, { depth: 0 });
  for (const note of document.footnotes) found.footnotes.push(plainText(note.text));
  return found;
}

function wordsOf(block: Block): string {
  switch (block.type) {
    case 'list':
      return block.items.map((item) => [plainText(item.text), ...(item.blocks ?? []).map(wordsOf)].join(' ')).join(' ');
    case 'paragraph':
    case 'heading':
      return plainText(block.text);
    case 'code':
      return block.text;
    default:
      throw new Error(`An admonition with ${block.type} is not compared.`);
  }
}

function plainText(text: string): string {
  return plainWords(
    text
      .replaceAll(/\[\^\w+\]/g, '')
      .replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1')
      .replaceAll(/`([^`]+)`|\*\*([^*]+)\*\*/g, '$1$2'),
  );
}
