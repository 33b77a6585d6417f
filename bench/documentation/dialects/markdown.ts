import type { Block, Document, Kind } from '../model.ts';

type Write = (block: Block) => string;
type Of<T extends Block['type']> = Extract<Block, { type: T }>;

/** How a generator writes what Markdown leaves open. */
export type Dialect = {
  front: (title: string) => string;
  /** What follows the language of a fence with line numbers. */
  numbered: string;
  admonition?: (block: Of<'admonition'>, write: (blocks: Block[]) => string) => string;
  tabs?: (block: Of<'tabs'>, write: (blocks: Block[]) => string) => string;
  definitions?: (block: Of<'definitions'>) => string;
  formula?: (tex: string) => string;
  inlineFormula?: (tex: string) => string;
  code?: (block: Of<'code'>) => string;
};

export function writeDocument(document: Document, dialect: Dialect): string {
  const text = (written: string): string =>
    dialect.inlineFormula === undefined
      ? written
      : written.replaceAll(/\$([^$]+)\$/g, (_all, tex: string) => dialect.inlineFormula?.(tex) ?? '');
  const blocks = (all: Block[]): string => all.map(write).join('\n\n');
  const write: Write = (block) => {
    switch (block.type) {
      case 'heading':
        return `${'#'.repeat(block.level)} ${block.text}`;
      case 'paragraph':
        return text(block.text);
      case 'code':
        return dialect.code?.(block) ?? writeFence(block, block.numbered ? dialect.numbered : '');
      case 'table':
        return writeTable(block.rows);
      case 'list':
        return block.items
          .map((item, at) => {
            const inner = item.blocks === undefined ? '' : `\n\n${blocks(item.blocks)}`;
            const marker = block.ordered ? `${at + 1}.  ` : '-   ';
            return `${marker}${indent(`${text(item.text)}${inner}`)}`;
          })
          .join(block.items.some((item) => item.blocks !== undefined) ? '\n\n' : '\n');
      case 'admonition':
        return need(dialect.admonition, block)(block, blocks);
      case 'tabs':
        return need(dialect.tabs, block)(block, blocks);
      case 'definitions':
        return need(dialect.definitions, block)(block);
      case 'formula':
        return need(dialect.formula, block)(block.tex);
    }
  };
  const notes = document.footnotes.map((note) => `[^${note.id}]: ${note.text}`).join('\n\n');
  return `${dialect.front(document.title)}\n${blocks(document.blocks)}\n\n${notes}\n`;
}

function need<T>(how: T | undefined, block: Block): T {
  if (how === undefined) throw new Error(`The dialect has no ${block.type}.`);
  return how;
}

function writeFence({ language, text }: Of<'code'>, more: string): string {
  return `\`\`\`${language}${more}\n${text}\n\`\`\``;
}

function writeTable(rows: string[][]): string {
  const [head = [], ...body] = rows;
  const line = (row: string[]): string => `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `| ${head.map(() => '---').join(' | ')} |`, ...body.map(line)].join('\n');
}

/** Indents all lines but the first. */
export function indent(text: string, by = '    '): string {
  return text.replaceAll(/\n(?=[^\n])/g, `\n${by}`);
}

const indentAll = (text: string): string => `    ${indent(text)}`;

const yamlFront = (title: string): string => `---\ntitle: ${title}\n---\n`;
const htmlDefinitions = ({ entries }: Of<'definitions'>): string =>
  `<dl>\n${entries.map(({ term, text }) => `  <dt>${term}</dt>\n  <dd>${text}</dd>`).join('\n')}\n</dl>`;
const colonDefinitions = ({ entries }: Of<'definitions'>): string =>
  entries.map(({ term, text }) => `${term}\n:   ${text}`).join('\n\n');
const directive =
  (names: Record<Kind, string>) =>
  ({ kind, title, blocks }: Of<'admonition'>, write: (blocks: Block[]) => string): string =>
    `:::${names[kind]}${title === undefined ? '' : `[${title}]`}\n\n${write(blocks)}\n\n:::`;
const jsxTabs =
  (attributes: (label: string) => string) =>
  ({ tabs }: Of<'tabs'>, write: (blocks: Block[]) => string): string =>
    `<Tabs>\n${tabs.map((tab) => `<TabItem ${attributes(tab.label)}>\n\n${write(tab.blocks)}\n\n</TabItem>`).join('\n')}\n</Tabs>`;
const dollars = (tex: string): string => `$$\n${tex}\n$$`;
const alert = ({ kind, title, blocks }: Of<'admonition'>, write: (blocks: Block[]) => string): string =>
  `> [!${kind.toUpperCase()}]${title === undefined ? '' : ` ${title}`}\n>\n${write(blocks).replaceAll(/^/gm, '> ')}`;

export const docusaurus: Dialect = {
  front: (title) =>
    `---\ntitle: ${title}\n---\n\nimport Tabs from '@theme/Tabs';\nimport TabItem from '@theme/TabItem';\n`,
  numbered: ' showLineNumbers',
  admonition: directive({ note: 'note', tip: 'tip', warning: 'warning' }),
  tabs: jsxTabs((label) => `value="${label}" label="${label}"`),
  definitions: htmlDefinitions,
  formula: dollars,
};

export const starlight: Dialect = {
  front: (title) => `---\ntitle: ${title}\n---\n\nimport { Tabs, TabItem } from '@astrojs/starlight/components';\n`,
  numbered: ' showLineNumbers',
  admonition: directive({ note: 'note', tip: 'tip', warning: 'caution' }),
  tabs: jsxTabs((label) => `label="${label}"`),
  definitions: htmlDefinitions,
  formula: dollars,
};

export const vitepress: Dialect = {
  front: (title) => `# ${title}\n`,
  numbered: ':line-numbers',
  admonition: (block, write) =>
    block.title === undefined
      ? alert(block, write)
      : `::: ${block.kind === 'note' ? 'info' : block.kind} ${block.title}\n\n${write(block.blocks)}\n\n:::`,
  tabs: ({ tabs }) => {
    const fences = tabs.flatMap((tab) =>
      tab.blocks.map((block) => (block.type === 'code' ? writeFence(block, ` [${tab.label}]`) : '')),
    );
    return `::: code-group\n\n${fences.join('\n\n')}\n\n:::`;
  },
  definitions: colonDefinitions,
};

export const mkdocs: Dialect = {
  front: (title) => `# ${title}\n`,
  numbered: ' linenums="1"',
  admonition: ({ kind, title, blocks }, write) =>
    `!!! ${kind}${title === undefined ? '' : ` "${title}"`}\n\n${indentAll(write(blocks))}`,
  tabs: ({ tabs }, write) => tabs.map((tab) => `=== "${tab.label}"\n\n${indentAll(write(tab.blocks))}`).join('\n\n'),
  definitions: colonDefinitions,
  formula: dollars,
};

export const hugoBook: Dialect = {
  front: yamlFront,
  numbered: ' {linenos=table}',
  admonition: ({ kind, title, blocks }, write) => {
    const name = { note: 'info', tip: 'tip', warning: 'warning' }[kind];
    return `{{% hint ${name} %}}\n${title === undefined ? '' : `**${title}**\n\n`}${write(blocks)}\n{{% /hint %}}`;
  },
  tabs: ({ tabs }, write) =>
    `{{< tabs "${tabs.map((tab) => tab.label).join('-')}" >}}\n${tabs
      .map((tab) => `{{% tab "${tab.label}" %}}\n${write(tab.blocks)}\n{{% /tab %}}`)
      .join('\n')}\n{{< /tabs >}}`,
  definitions: colonDefinitions,
};

export const docsy: Dialect = {
  front: yamlFront,
  numbered: ' {linenos=inline}',
  admonition: ({ kind, title, blocks }, write) => {
    const color = { note: 'info', tip: 'success', warning: 'warning' }[kind];
    return `{{% alert title="${title ?? `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`}" color="${color}" %}}\n${write(blocks)}\n{{% /alert %}}`;
  },
  tabs: ({ tabs }, write) =>
    `{{< tabpane text=true >}}\n${tabs
      .map((tab) => `{{% tab header="${tab.label}" %}}\n${write(tab.blocks)}\n{{% /tab %}}`)
      .join('\n')}\n{{< /tabpane >}}`,
  definitions: colonDefinitions,
};

export const jekyll: Dialect = {
  front: (title) => `---\ntitle: ${title}\nlayout: default\n---\n\n# ${title}\n`,
  numbered: '',
  code: (block) =>
    block.numbered
      ? `{% highlight ${block.language} linenos %}\n${block.text}\n{% endhighlight %}`
      : writeFence(block, ''),
  admonition: ({ kind, title, blocks }, write) =>
    `{: .${kind}${title === undefined ? '' : '-title'} }\n${write([...(title === undefined ? [] : [{ type: 'paragraph', text: title } as const]), ...blocks]).replaceAll(/^/gm, '> ')}`,
  definitions: colonDefinitions,
  formula: dollars,
  inlineFormula: (tex) => `$$${tex}$$`,
};

export const honkit: Dialect = { front: (title) => `# ${title}\n`, numbered: '' };
