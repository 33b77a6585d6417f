/** A small part of Markdown as blocks. Texts keep `code`, **bold** and *italic*; links are their text. */
export type Block =
  | { type: 'heading'; level: number; text: string }
  | { type: 'paragraph'; text: string }
  | { type: 'code'; lines: string[] }
  | { type: 'table'; rows: string[][] }
  | { type: 'list'; items: Item[] };
type Item = { depth: number; marker: string; text: string };

const charactersOfLineMax = 88;

/** The blocks of the sections that start in the first `linesMax` lines. Quotations and HTML are left out. */
export function readBlocks(markdown: string, linesMax = 170): Block[] {
  const all = markdown.split('\n');
  const end = all.findIndex((line, at) => at >= linesMax && line.startsWith('#'));
  const lines = end < 0 ? all : all.slice(0, end);
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; ) {
    const take = (belongs: (line: string) => boolean): string[] => {
      const from = at;
      while (at < lines.length && belongs(lines[at] ?? '')) at += 1;
      return lines.slice(from, at);
    };
    const line = lines[at] ?? '';
    const heading = /^(#+) (.*)/.exec(line);
    if (heading !== null) {
      at += 1;
      blocks.push({
        type: 'heading',
        level: heading[1]?.length ?? 1,
        text: plain(heading[2] ?? '').replaceAll(/[`*]/g, ''),
      });
    } else if (line.startsWith('```')) {
      at += 1;
      addCode(
        blocks,
        take((one) => !one.startsWith('```')),
      );
      at += 1;
    } else if (line.startsWith('|')) blocks.push({ type: 'table', rows: rowsOf(take((one) => one.startsWith('|'))) });
    else if (itemStart.test(line))
      blocks.push({ type: 'list', items: itemsOf(take((one) => itemStart.test(one) || /^ {2}\s*\S/.test(one))) });
    else if (line.startsWith('    '))
      addCode(
        blocks,
        take((one) => one.startsWith('    ')).map((one) => one.slice(4)),
      );
    else if (line.trim() === '' || /^[<>]/.test(line)) at += 1;
    else
      blocks.push({
        type: 'paragraph',
        text: plain(take((one) => one.trim() !== '' && !/^[#|<>]|^```/.test(one) && !itemStart.test(one)).join(' ')),
      });
  }
  return blocks;
}

const itemStart = /^(\s*)(-|\d+\.) (.*)/;

function plain(text: string): string {
  return text.replaceAll(/!\[[^\]]*\]\([^)]*\)/g, '').replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1');
}

function addCode(blocks: Block[], lines: string[]): void {
  if (lines.length > 0) blocks.push({ type: 'code', lines: lines.map((line) => line.slice(0, charactersOfLineMax)) });
}

function rowsOf(lines: string[]): string[][] {
  const rows = lines
    .filter((line) => !/^\|[\s:|-]+\|$/.test(line))
    .map((line) =>
      line
        .trim()
        .replaceAll(/^\||\|$/g, '')
        .split(/(?<!\\)\|/)
        .map((cell) => plain(cell.trim().replaceAll('\\|', '|'))),
    );
  const width = Math.max(...rows.map((row) => row.length));
  return rows.map((row) => Array.from({ length: width }, (_unused, at) => row[at] ?? ''));
}

function itemsOf(lines: string[]): Item[] {
  const items: { indent: number; marker: string; text: string }[] = [];
  for (const line of lines) {
    const [, indent = '', marker, text = ''] = itemStart.exec(line) ?? [];
    const last = items.at(-1);
    if (marker !== undefined) items.push({ indent: indent.length, marker, text });
    else if (last !== undefined) last.text += ` ${line.trim()}`;
  }
  const indents = [...new Set(items.map(({ indent }) => indent))].sort((a, b) => a - b);
  return items.map(({ indent, marker, text }) => ({ depth: indents.indexOf(indent), marker, text: plain(text) }));
}

/** How a format writes text, code, bold and italics. */
export type Inline = {
  text(text: string): string;
  code(text: string): string;
  bold(text: string): string;
  italic(text: string): string;
};

export function writeInline(text: string, format: Inline): string {
  return text
    .split(/(`[^`]+`|\*\*[^*]+\*\*|(?<!\*)\*[^*\s][^*]*\*)/)
    .map((part) => {
      if (/^`.+`$/.test(part)) return format.code(format.text(part.slice(1, -1)));
      if (/^\*\*.+\*\*$/.test(part)) return format.bold(format.text(part.slice(2, -2).replaceAll('`', '')));
      if (/^\*[^*].*\*$/.test(part)) return format.italic(format.text(part.slice(1, -1).replaceAll('`', '')));
      return format.text(part);
    })
    .join('');
}

/** The Markdown that a reader of the printed text should return, without emphasis. `codeWidth` cuts the lines of code. */
export function referenceOf(blocks: Block[], codeWidth = charactersOfLineMax): string {
  const same = (text: string): string => text;
  const bare = (text: string): string => writeInline(text, { text: same, code: same, bold: same, italic: same });
  return blocks
    .map((block) => {
      switch (block.type) {
        case 'heading':
          return `${'#'.repeat(block.level)} ${block.text}`;
        case 'paragraph':
          return bare(block.text);
        case 'code':
          return ['```', ...block.lines.map((line) => line.slice(0, codeWidth)), '```'].join('\n');
        case 'table': {
          const rows = block.rows.map(
            (row) => `| ${row.map((cell) => bare(cell).replaceAll('|', '\\|')).join(' | ')} |`,
          );
          return [rows[0], `|${'---|'.repeat(block.rows[0]?.length ?? 0)}`, ...rows.slice(1)].join('\n');
        }
        default:
          return block.items
            .map(({ depth, marker, text }) => `${'    '.repeat(depth)}${marker} ${bare(text)}`)
            .join('\n');
      }
    })
    .join('\n\n');
}
