import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { requireProgram } from '../../scripts/setup.ts';
import type { ScriptText } from './texts.ts';

type Producer = { name: string; make(text: ScriptText, folder: string): Uint8Array };

/** The programs that make the PDFs. Each throws if its program is missing or fails. */
export const producers: Producer[] = [
  { name: 'chromium', make: printWithChromium },
  { name: 'libreoffice', make: exportWithLibreOffice },
  { name: 'xelatex', make: typesetWithXelatex },
];

function run(program: string, options: string[], folder: string): void {
  const { status, error, stderr, stdout } = spawnSync(program, options, {
    cwd: folder,
    encoding: 'utf8',
    timeout: 180_000,
  });
  if (status !== 0)
    throw new Error(
      `${program} ended with ${status}: ${error?.message ?? ''} ${stderr.slice(-2000)} ${stdout.slice(-2000)}`,
    );
}

function printWithChromium(text: ScriptText, folder: string): Uint8Array {
  writeFileSync(join(folder, 'text.html'), htmlOf(text));
  const page = pathToFileURL(join(folder, 'text.html')).href;
  const options = ['--headless', '--no-sandbox', '--disable-gpu', '--no-pdf-header-footer'];
  run(
    requireProgram('browser'),
    [...options, `--user-data-dir=${join(folder, 'profile')}`, '--print-to-pdf=text.pdf', page],
    folder,
  );
  return readFileSync(join(folder, 'text.pdf'));
}

function exportWithLibreOffice(text: ScriptText, folder: string): Uint8Array {
  writeFileSync(join(folder, 'text.html'), htmlOf(text));
  const profile = join(folder, '..', 'office'); // shared by all texts, because making one takes seconds
  mkdirSync(profile, { recursive: true });
  run(
    'soffice',
    [
      '--headless',
      `-env:UserInstallation=${pathToFileURL(profile).href}`,
      '--convert-to',
      'pdf:writer_web_pdf_Export',
      'text.html',
    ],
    folder,
  );
  return readFileSync(join(folder, 'text.pdf'));
}

function typesetWithXelatex(text: ScriptText, folder: string): Uint8Array {
  writeFileSync(join(folder, 'text.tex'), texOf(text));
  run('xelatex', ['-interaction=nonstopmode', '-halt-on-error', 'text.tex'], folder);
  return readFileSync(join(folder, 'text.pdf'));
}

function htmlOf({ language, isRightToLeft, font, blocks }: ScriptText): string {
  const body = blocks.map((block) => {
    if (block.kind === 'heading') return `<h${block.level}>${block.text}</h${block.level}>`;
    if (block.kind === 'paragraph') return `<p>${block.text}</p>`;
    if (block.kind === 'list') return `<ul>${block.items.map((item) => `<li>${item}</li>`).join('')}</ul>`;
    const rows = block.rows.map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join('')}</tr>`);
    return `<table border="1" cellspacing="0">${rows.join('')}</table>`;
  });
  return `<!doctype html><html lang="${language}" dir="${isRightToLeft ? 'rtl' : 'ltr'}"><head><meta charset="utf-8">
<style>body{font:12pt "${font}","Noto Serif",serif}</style></head><body>${body.join('\n')}</body></html>`;
}

function texOf({ language, isRightToLeft, font, blocks }: ScriptText): string {
  // The fonts of these scripts have no Latin letters, and TeX takes none from another font by itself.
  const isPlain = !isRightToLeft && !/Devanagari|Thai/.test(font);
  const write = (text: string): string => {
    const escaped = text.replaceAll(/[$%&#_{}]/g, '\\$&');
    if (isPlain) return escaped;
    const latin = (run: string) => (isRightToLeft ? `\\beginL{\\other ${run}}\\endL{}` : `{\\other ${run}}`);
    const mixed = escaped.replaceAll(/[A-Za-z0-9](?:[A-Za-z0-9@.,: ]*[A-Za-z0-9])?/g, latin);
    return isRightToLeft ? `\\leavevmode\\beginR ${mixed}\\endR{}` : mixed;
  };
  const body = blocks.map((block) => {
    if (block.kind === 'heading') return `\\${block.level === 1 ? 'section' : 'subsection'}*{${write(block.text)}}`;
    if (block.kind === 'paragraph') return write(block.text);
    if (block.kind === 'list')
      return `\\begin{itemize}\n${block.items.map((item) => `\\item ${write(item)}`).join('\n')}\n\\end{itemize}`;
    const columns = `|${'l|'.repeat(block.rows[0]?.length ?? 1)}`;
    const rows = block.rows.map((row) => `${row.map(write).join(' & ')} \\\\ \\hline`);
    return `\\begin{tabular}{${columns}}\\hline\n${rows.join('\n')}\n\\end{tabular}`;
  });
  // Thai, Chinese and Japanese have no spaces at which a line may end.
  const breaks = /^(?:th|zh|ja)/.test(language)
    ? `\\XeTeXlinebreaklocale "${language}"\\XeTeXlinebreakskip=0pt plus 1pt`
    : '';
  return `\\documentclass[12pt]{article}\\usepackage{fontspec}
\\setmainfont{${font}}\\newfontfamily\\other{Noto Serif}
${isRightToLeft ? '\\TeXXeTstate=1' : ''}
${breaks}\\hyphenpenalty=10000\\sloppy
\\pagestyle{empty}
\\begin{document}
${body.join('\n\n')}
\\end{document}`;
}
