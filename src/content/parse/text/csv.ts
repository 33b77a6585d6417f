import { escapeText, writeTable } from '../markdown.ts';
import { parseLimits } from '../types.ts';

const delimiters = [',', ';', '\t', '|'] as const;
const sampleLines = 50;

/** Whether the text is a table of delimited values: the same delimiter in nearly every line, equally often. */
export function looksLikeCsv(text: string): boolean {
  const best = bestDelimiter(text);
  return best !== undefined && best.columns >= 2 && best.rows >= 2 && best.agreement >= 0.9;
}

/** Delimited values (comma, semicolon, tab or bar; quotes as in RFC 4180) as one table, the first row its head. */
export function csvToMarkdown(text: string): string {
  const delimiter = declaredDelimiter(text) ?? bestDelimiter(text)?.delimiter ?? ',';
  const body = text.replace(/^sep=.\r?\n/i, '');
  const rows = readRows(body, delimiter, parseLimits.sheetRowsMax);
  return `${writeTable(rows.map((row) => row.map((cell) => escapeText(cell))))}\n`;
}

function declaredDelimiter(text: string): string | undefined {
  return /^sep=(.)\r?\n/i.exec(text)?.[1];
}

type Candidate = { delimiter: string; columns: number; rows: number; agreement: number };

function bestDelimiter(text: string): Candidate | undefined {
  let best: Candidate | undefined;
  for (const delimiter of delimiters) {
    const rows = readRows(text.slice(0, 64 * 1024), delimiter, sampleLines).filter((row) =>
      row.some((cell) => cell.trim() !== ''),
    );
    const complete = rows.length > 1 && text.length > 64 * 1024 ? rows.slice(0, -1) : rows;
    const counts = new Map<number, number>();
    for (const row of complete) counts.set(row.length, (counts.get(row.length) ?? 0) + 1);
    const [columns, agreeing] = [...counts].sort((a, b) => b[1] - a[1] || b[0] - a[0])[0] ?? [0, 0];
    if (columns < 2) continue;
    const candidate = { delimiter, columns, rows: complete.length, agreement: agreeing / complete.length };
    if (
      !best ||
      candidate.agreement > best.agreement + 0.05 ||
      (candidate.agreement > best.agreement - 0.05 && columns > best.columns)
    )
      best = candidate;
  }
  return best;
}

function readRows(text: string, delimiter: string, rowsMax: number): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let at = 0;
  const endRow = (): void => {
    rows.push(row);
    row = [];
  };
  while (at < text.length && rows.length < rowsMax) {
    let cell: string;
    if (text[at] === '"') [cell, at] = readQuoted(text, at, delimiter);
    else {
      let end = at;
      while (end < text.length && text[end] !== delimiter && text[end] !== '\n') end += 1;
      cell = text.slice(at, end).replace(/\r$/, '');
      at = end;
    }
    row.push(cell);
    if (text[at] === delimiter) {
      at += 1;
      if (at >= text.length) row.push('');
    } else {
      at += 1;
      endRow();
    }
  }
  if (row.length > 0 && rows.length < rowsMax) endRow();
  return rows;
}

/** A quote that is never closed is an ordinary character. */
function readQuoted(text: string, from: number, delimiter: string): [string, number] {
  let cell = '';
  let at = from + 1;
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote < 0) {
      const line = text.indexOf('\n', from);
      const end = line < 0 ? text.length : line;
      const stop = text.slice(from, end).indexOf(delimiter);
      const to = stop < 0 ? end : from + stop;
      return [text.slice(from, to), to];
    }
    cell += text.slice(at, quote);
    at = quote + 1;
    if (text[at] !== '"') break;
    cell += '"';
    at += 1;
  }
  while (at < text.length && text[at] !== delimiter && text[at] !== '\n') {
    cell += text[at] === '\r' ? '' : text[at];
    at += 1;
  }
  return [cell, at];
}
