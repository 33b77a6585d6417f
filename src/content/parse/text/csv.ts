import papaparse from 'papaparse';
import { parseLimits } from '../limits.ts';
import { escapeText, writeTable } from '../write-markdown.ts';

const delimiters = [',', ';', '\t', '|'] as const;
const sampleLines = 50;

/** Whether the text is a table of delimited values: nearly every line contains the same delimiter equally often. */
export function looksLikeCsv(text: string): boolean {
  const best = bestDelimiter(text);
  return best !== undefined && best.columns >= 2 && best.rows >= 2 && best.agreement >= 0.9;
}

/**
 * Converts delimited values (comma, semicolon, tab or bar; quotes as in RFC 4180) to one table with the first row as
 * its header.
 */
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

/**
 * Reads up to `rowsMax` rows with papaparse. An unclosed quote would swallow the rest of the text, so its line is
 * read again with quotes as ordinary characters.
 */
function readRows(text: string, delimiter: string, rowsMax: number): string[][] {
  const rows: string[][] = [];
  let rest = text;
  for (let tries = 0; rest !== '' && rows.length < rowsMax; tries++) {
    const quotes = tries < unclosedQuotesMax;
    const { data, errors } = papaparse.parse<string[]>(rest, {
      delimiter,
      newline: '\n',
      preview: rowsMax - rows.length,
      ...(quotes ? {} : { quoteChar: '\0' }),
    });
    const unclosed = errors.find(({ code }) => code === 'MissingQuotes');
    if (!unclosed)
      return [...rows, ...data.map(cleanRow)].filter((row, at, all) => at < all.length - 1 || row.some(Boolean));
    const quote = unclosed.index ?? 0;
    const lineStart = rest.lastIndexOf('\n', quote) + 1;
    const lineEnd = rest.indexOf('\n', quote);
    const line = rest.slice(lineStart, lineEnd < 0 ? rest.length : lineEnd);
    rows.push(...data.slice(0, unclosed.row).map(cleanRow), line.split(delimiter));
    rest = lineEnd < 0 ? '' : rest.slice(lineEnd + 1);
  }
  return rows;
}

const unclosedQuotesMax = 20;

/** Lines end with a line feed. The carriage return of a Windows line ending is not part of the last cell. */
function cleanRow(row: string[]): string[] {
  return row.map((cell, at) => (at === row.length - 1 ? cell.replace(/\r$/, '') : cell));
}
