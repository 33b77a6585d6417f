import { styleText } from 'node:util';
import { memberOf } from './names.ts';

type Row = Record<string, unknown>;
type Look = { terminal: boolean; paint(style: 'bold' | 'red' | 'green' | 'yellow', text: string): string };

const cellCharactersMax = 48;

/** How standard output shows tables. Colours obey NO_COLOR and FORCE_COLOR. */
export function lookOfOutput(): Look {
  return {
    terminal: process.stdout.isTTY === true,
    paint: (style, text) => styleText(style, text, { stream: process.stdout }),
  };
}

/** On a terminal, aligned columns with a header; otherwise one line of tab-separated values for each row. */
export function formatTable(rows: Row[], columns: readonly string[], { terminal, paint }: Look): string {
  const cells = rows.map((row) => columns.map((column) => textOf(memberOf(row, column))));
  if (!terminal) return cells.map((line) => `${line.join('\t')}\n`).join('');
  const short = cells.map((line) => line.map(shorten));
  const head = columns.map((column) => (column.split('.').at(-1) ?? column).replaceAll('_', ' '));
  const widths = head.map((word, at) => Math.max(word.length, ...short.map((line) => line[at]?.length ?? 0)));
  const join = (line: string[], style: (padded: string, cell: string, column: string) => string) =>
    `${line.map((cell, at) => style(at === line.length - 1 ? cell : cell.padEnd(widths[at] ?? 0), cell, columns[at] ?? '')).join('  ')}\n`;
  const colour = (padded: string, cell: string, column: string) => {
    const style = column === 'status' || column === 'state' ? colours[cell] : undefined;
    return style === undefined ? padded : paint(style, padded);
  };
  return [join(head, (padded) => paint('bold', padded)), ...short.map((line) => join(line, colour))].join('');
}

/** One resource: a line for each member. */
export function formatMembers(thing: Row, { paint }: Look): string {
  const members = Object.entries(thing).filter(([, value]) => value !== undefined && value !== null);
  const width = Math.max(0, ...members.map(([name]) => name.length));
  return members.map(([name, value]) => `${paint('bold', name.padEnd(width))}  ${textOf(value)}\n`).join('');
}

const colours: Record<string, 'red' | 'green' | 'yellow'> = {
  active: 'green',
  completed: 'green',
  done: 'green',
  succeeded: 'green',
  failed: 'red',
  cancelled: 'yellow',
  paused: 'yellow',
  waiting: 'yellow',
};

/** One line, without control characters, which a terminal would interpret. */
function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.replace(/\p{Cc}/gu, ' ');
}

function shorten(text: string): string {
  return text.length > cellCharactersMax ? `${text.slice(0, cellCharactersMax - 1)}…` : text;
}
