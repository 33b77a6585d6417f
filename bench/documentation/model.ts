/**
 * A page of documentation before it is rendered. Texts are Markdown with `code`, **bold**, [links](address), $formulas$
 * and references to footnotes ([^1]).
 */
export type Block =
  | { type: 'heading'; level: 2 | 3 | 4 | 5 | 6; text: string }
  | { type: 'paragraph'; text: string }
  | { type: 'code'; language: string; text: string; numbered?: boolean }
  | { type: 'table'; rows: string[][] }
  | { type: 'list'; ordered: boolean; items: Item[] }
  | { type: 'admonition'; kind: Kind; title?: string; blocks: Block[] }
  | { type: 'tabs'; tabs: { label: string; blocks: Block[] }[] }
  | { type: 'definitions'; entries: { term: string; text: string }[] }
  | { type: 'formula'; tex: string };

/** `blocks` are nested lists and code of the item. */
export type Item = { text: string; blocks?: Block[] };
export type Kind = 'note' | 'tip' | 'warning';

export type Document = { id: string; title: string; blocks: Block[]; footnotes: { id: string; text: string }[] };

export const heading = (level: 2 | 3 | 4 | 5 | 6, text: string): Block => ({ type: 'heading', level, text });
export const paragraph = (text: string): Block => ({ type: 'paragraph', text });
export const code = (language: string, text: string, options: { numbered?: boolean } = {}): Block => ({
  type: 'code',
  language,
  text: text.replace(/^\n/, '').replace(/\n$/, ''),
  ...options,
});
export const table = (...rows: string[][]): Block => ({ type: 'table', rows });
export const bullets = (...items: (string | Item)[]): Block => ({
  type: 'list',
  ordered: false,
  items: items.map(toItem),
});
export const steps = (...items: (string | Item)[]): Block => ({
  type: 'list',
  ordered: true,
  items: items.map(toItem),
});
export const admonition = (kind: Kind, title: string | undefined, ...blocks: Block[]): Block => ({
  type: 'admonition',
  kind,
  blocks,
  ...(title === undefined ? {} : { title }),
});

function toItem(item: string | Item): Item {
  return typeof item === 'string' ? { text: item } : item;
}

/** Parts that not every generator has. A document is written without the parts that its generator lacks. */
const optionalParts = ['admonitions', 'tabs', 'definitions', 'footnotes', 'formulas'] as const;
export type OptionalPart = (typeof optionalParts)[number];

/** The document without the parts that a generator lacks; their contents stay as ordinary text. */
export function withoutParts(document: Document, missing: readonly OptionalPart[]): Document {
  const lacks = (part: OptionalPart) => missing.includes(part);
  const text = (written: string): string => {
    const noted = lacks('footnotes') ? written.replaceAll(/\[\^\w+\]/g, '') : written;
    return lacks('formulas') ? noted.replaceAll(/\$([^$]+)\$/g, '`$1`') : noted;
  };
  const rewrite = (block: Block): Block[] => {
    switch (block.type) {
      case 'admonition':
        if (lacks('admonitions')) return block.blocks.flatMap(rewrite);
        return [{ ...block, blocks: block.blocks.flatMap(rewrite) }];
      case 'tabs': {
        if (lacks('tabs')) return block.tabs.flatMap((tab) => tab.blocks.flatMap(rewrite));
        return [{ ...block, tabs: block.tabs.map((tab) => ({ ...tab, blocks: tab.blocks.flatMap(rewrite) })) }];
      }
      case 'definitions': {
        const entries = block.entries.map(({ term, text: own }) => ({ term: text(term), text: text(own) }));
        if (!lacks('definitions')) return [{ ...block, entries }];
        return entries.map((entry) => paragraph(`**${entry.term}**: ${entry.text}`));
      }
      case 'formula':
        return lacks('formulas') ? [] : [block];
      case 'list':
        return [
          {
            ...block,
            items: block.items.map((item) => ({
              text: text(item.text),
              ...(item.blocks === undefined ? {} : { blocks: item.blocks.flatMap(rewrite) }),
            })),
          },
        ];
      case 'table':
        return [{ ...block, rows: block.rows.map((row) => row.map(text)) }];
      case 'heading':
      case 'paragraph':
        return [{ ...block, text: text(block.text) }];
      default:
        return [block];
    }
  };
  return {
    ...document,
    blocks: document.blocks.flatMap(rewrite),
    footnotes: lacks('footnotes') ? [] : document.footnotes.map((note) => ({ ...note, text: text(note.text) })),
  };
}
