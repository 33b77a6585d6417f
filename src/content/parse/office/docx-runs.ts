import { codeSpan, link, mark, script } from '../write-markdown.ts';
import type { RunFormat } from './docx-styles.ts';

export type Run = { text: string; format: RunFormat; code: boolean; script: 'sub' | 'sup' | '' };

/** Writes runs as Markdown. Runs of the same format are merged first, because Word splits words into runs arbitrarily. */
export function joinRuns(runs: Run[]): string {
  let text = '';
  let pending: Run | undefined;
  const flush = (): void => {
    if (pending) text += writeRun(pending);
    pending = undefined;
  };
  for (const run of runs) {
    const same =
      pending && pending.code === run.code && pending.script === run.script && sameFormat(pending.format, run.format);
    const blank = run.text.trim() === '' && run.script === '';
    if (pending && (same || blank)) pending = { ...pending, text: pending.text + run.text };
    else {
      flush();
      pending = { ...run };
    }
  }
  flush();
  return text;
}

function writeRun(run: Run): string {
  if (run.text.trim() === '') return run.text;
  if (run.code) return codeSpan(unescapeText(run.text));
  let text = run.text;
  if (run.script !== '') text = script(text, run.script);
  if (run.format.strike) text = mark(text, '~~');
  const delimiter = `${run.format.bold ? '**' : ''}${run.format.italic ? '*' : ''}`;
  return delimiter === ''
    ? text
    : text
        .split('  \n')
        .map((line) => mark(line, delimiter))
        .join('  \n');
}

function sameFormat(a: RunFormat, b: RunFormat): boolean {
  return a.bold === b.bold && a.italic === b.italic && a.strike === b.strike;
}

export function plainRun(run: Run): Run {
  return { ...run, format: { ...run.format, bold: false, italic: false } };
}

export function inlineText(text: string): Run {
  return { text, format: { bold: false, italic: false, strike: false, hidden: false }, code: false, script: '' };
}

/** Makes the runs from `start` on a link if they are the result of a field that links to another document. */
export function linkRuns(runs: Run[], start: number, instruction: string): void {
  const target = /^\s*HYPERLINK\s+"([^"]+)"/i.exec(instruction)?.[1];
  if (target === undefined || start >= runs.length) return;
  const text = joinRuns(runs.splice(start).map((run) => ({ ...run, code: false })));
  runs.push(inlineText(link(text, target)));
}

/** Symbol fonts use characters from U+F000; the common ones have Unicode equivalents. */
export function symbol(code: string | undefined, font: string | undefined): string {
  const value = Number.parseInt(code ?? '', 16) & 0xff;
  if (!Number.isFinite(value)) return '';
  if (/wingdings/i.test(font ?? ''))
    return { 252: '✓', 251: '✗', 168: '☐', 254: '☑', 224: '→', 167: '▪' }[value] ?? '•';
  const greek = 'ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ';
  if (value >= 0x41 && value <= 0x5a) return greek[value - 0x41] ?? '';
  if (value >= 0x61 && value <= 0x7a) return 'αβχδεφγηιϕκλμνοπθρστυϖωξψζ'[value - 0x61] ?? '';
  return { 179: '≥', 163: '≤', 177: '±', 183: '•', 174: '→', 180: '×', 185: '≠', 187: '≈' }[value] ?? '•';
}

export function unescapeText(text: string): string {
  return text
    .replaceAll(/\\([!-/:-@[-`{-~])/g, '$1')
    .replaceAll('&lt;', '<')
    .replaceAll('&amp;', '&');
}
