import { type Block, type Inline, writeInline } from './text.ts';

/** A program and a style. `source` is what the program is given; code is cut after `codeWidth` characters. */
export type Style = {
  producer: 'chromium' | 'libreoffice' | 'xelatex';
  name: string;
  tagged: boolean;
  codeWidth?: number;
  source(blocks: Block[]): string;
};

const base = `@page{size:A4;margin:22mm 20mm}body{font:10.5pt/1.35 "Liberation Serif"}p{margin:0 0 6pt;text-align:justify}
li p{margin:0}code,pre{font-family:"Liberation Mono";font-size:9pt}pre{white-space:pre-wrap;margin:4pt 0 8pt}
table{border-collapse:collapse;margin:4pt 0 10pt}td,th{padding:2pt 5pt;text-align:left;vertical-align:top}
h1{font-size:20pt}h2{font-size:15pt}h3{font-size:12.5pt}h4{font-size:10.5pt}h1,h2,h3,h4{margin:12pt 0 5pt;line-height:1.2}`;
const grid = 'td,th{border:0.6pt solid black}';
const head = `@page{@top-center{content:"Quarterly notes of the office";font:8.5pt "Liberation Serif"}
@bottom-center{content:counter(page);font:9pt "Liberation Serif"}}`;
const same = 'h1{font-size:15pt}h2,h3,h4{font-size:10.5pt}';
const columns =
  'body{columns:2;column-gap:8mm;font-size:9pt}h1{column-span:all}pre,code{font-size:7pt}td,th{font-size:7.5pt}';

const sheets: Record<string, string> = {
  plain: grid,
  'bold-same': same + grid + head,
  italic: `${same}h3,h4{font-style:italic;font-weight:normal}${grid}`,
  smallcaps: `h2{font-variant:small-caps;font-weight:normal;font-size:13pt}h3{font-variant:small-caps;font-weight:normal;font-size:10.5pt}${grid}`,
  twocol: `${columns}h2{font-size:11pt}h3,h4{font-size:9pt}${grid}${head}`,
  booktabs: `table{border-top:1pt solid;border-bottom:1pt solid}th{border-bottom:.5pt solid}${head}`,
  norules: head,
  zebra: 'tr:nth-child(even){background:#eee}th{background:#456;color:white}body{font-family:"Liberation Sans"}',
  colour: `h2,h3,h4{font-weight:normal;color:#036;font-size:11pt}h1{font-weight:normal;color:#036}${grid}`,
  'caps-centred': `${same}h1,h2{text-align:center;text-transform:uppercase}h2{font-weight:normal}h3{text-align:center;font-style:italic;font-weight:normal}${grid}${head}`,
  runin: `${same}h3,h4{display:inline;margin:0 .6em 0 0}h3+p,h4+p{display:inline}h3::after,h4::after{content:"."}h3::before,h4::before{content:"";display:block;height:6pt}${grid}`,
  'sans-light':
    'body{font-family:"DejaVu Sans";font-size:9pt}h1{font-size:18pt;font-weight:normal}h2{font-size:13pt;font-weight:normal}h3{font-weight:normal}td,th{font-size:8pt;border-bottom:.4pt solid #999}',
};

const latexStyles: [name: string, preamble: string, rules: 'grid' | 'booktabs' | 'none', codeWidth?: number][] = [
  ['article', '\\documentclass[11pt,a4paper]{article}\\usepackage[margin=25mm]{geometry}', 'booktabs'],
  ['twocol', '\\documentclass[10pt,a4paper,twocolumn]{article}\\usepackage[margin=18mm]{geometry}', 'booktabs', 48],
  [
    'grid',
    '\\documentclass[12pt,a4paper]{article}\\usepackage[margin=25mm]{geometry}\\usepackage{fancyhdr}\\pagestyle{fancy}',
    'grid',
  ],
  [
    'runin',
    '\\documentclass[11pt,a4paper]{article}\\usepackage[margin=25mm]{geometry}\\usepackage{titlesec}\\titleformat{\\subsection}[runin]{\\normalfont\\bfseries}{}{0pt}{}[.]\\titleformat{\\subsubsection}[runin]{\\normalfont\\itshape}{}{0pt}{}[.]',
    'booktabs',
  ],
  [
    'smallcaps',
    '\\documentclass[11pt,a4paper]{article}\\usepackage[margin=25mm]{geometry}\\usepackage{titlesec}\\titleformat{\\section}{\\normalfont\\scshape\\centering}{}{0pt}{}\\titleformat{\\subsection}{\\normalfont\\itshape}{}{0pt}{}',
    'none',
  ],
  ['koma', '\\documentclass[11pt,a4paper]{scrartcl}', 'booktabs'],
];

export const styles: Style[] = [
  ...Object.entries(sheets).map(
    ([name, css]): Style => ({ producer: 'chromium', name, tagged: false, source: (blocks) => htmlOf(blocks, css) }),
  ),
  { producer: 'chromium', name: 'tagged', tagged: true, source: (blocks) => htmlOf(blocks, grid + head) },
  { producer: 'chromium', name: 'tagged-twocol', tagged: true, source: (blocks) => htmlOf(blocks, columns) },
  ...['plain', 'bold-same', 'italic', 'norules'].map(
    (name): Style => ({
      producer: 'libreoffice',
      name,
      tagged: false,
      source: (blocks) => htmlOf(blocks, sheets[name] ?? ''),
    }),
  ),
  ...latexStyles.map(
    ([name, preamble, rules, codeWidth]): Style => ({
      ...{ producer: 'xelatex', name, tagged: false, ...(codeWidth === undefined ? {} : { codeWidth }) },
      source: (blocks) => texOf(blocks, { preamble, rules, codeWidth: codeWidth ?? Number.POSITIVE_INFINITY }),
    }),
  ),
];

const html: Inline = {
  text: (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;'),
  code: (text) => `<code>${text}</code>`,
  bold: (text) => `<b>${text}</b>`,
  italic: (text) => `<i>${text}</i>`,
};

function htmlOf(blocks: Block[], css: string): string {
  const write = (text: string): string => writeInline(text, html);
  const body = blocks.map((block) => {
    switch (block.type) {
      case 'heading':
        return `<h${block.level}>${html.text(block.text)}</h${block.level}>`;
      case 'paragraph':
        return `<p>${write(block.text)}</p>`;
      case 'code':
        return `<pre>${html.text(block.lines.join('\n'))}</pre>`;
      case 'table': {
        const [first = [], ...rest] = block.rows;
        const rows = rest.map((row) => `<tr>${row.map((cell) => `<td>${write(cell)}</td>`).join('')}</tr>`);
        return `<table><thead><tr>${first.map((cell) => `<th>${write(cell)}</th>`).join('')}</tr></thead><tbody>${rows.join('')}</tbody></table>`;
      }
      default:
        return nested(
          block.items,
          (tag) => `<${tag}>`,
          (tag) => `</li></${tag}>`,
          (text, isFirst) => `${isFirst ? '' : '</li>'}<li>${write(text)}`,
          ['ul', 'ol'],
        );
    }
  });
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Text</title><style>${base}${css}</style><body>${body.join('\n')}`;
}

/** Writes items with their lists opened and closed around them. */
function nested(
  items: { depth: number; marker: string; text: string }[],
  open: (list: string) => string,
  close: (list: string) => string,
  item: (text: string, isFirst: boolean) => string,
  [bullets, numbers]: [string, string],
): string {
  const lists: string[] = [];
  let written = '';
  for (const { depth, marker, text } of items) {
    while (lists.length > depth + 1) written += close(lists.pop() ?? '');
    const isFirst = lists.length <= depth;
    if (isFirst) {
      lists.push(marker === '-' ? bullets : numbers);
      written += open(lists.at(-1) ?? '');
    }
    written += item(text, isFirst);
  }
  while (lists.length > 0) written += close(lists.pop() ?? '');
  return written;
}

const tex: Inline = {
  text: (text) =>
    text.replaceAll(/[\\{}$%&#_^~]/g, (character) => {
      const named: Record<string, string> = {
        '\\': '\\textbackslash{}',
        '^': '\\textasciicircum{}',
        '~': '\\textasciitilde{}',
      };
      return named[character] ?? `\\${character}`;
    }),
  code: (text) => `\\texttt{${text}}`,
  bold: (text) => `\\textbf{${text}}`,
  italic: (text) => `\\emph{${text}}`,
};

type Latex = { preamble: string; rules: 'grid' | 'booktabs' | 'none'; codeWidth: number };

function texOf(blocks: Block[], { preamble, rules, codeWidth }: Latex): string {
  const write = (text: string): string => writeInline(text, tex);
  const sections = ['section', 'section', 'section', 'subsection', 'subsubsection'];
  const body = blocks.map((block) => {
    switch (block.type) {
      case 'heading':
        return block.level === 1
          ? `\\begin{center}{\\LARGE ${tex.text(block.text)}\\par}\\end{center}`
          : `\\${sections[block.level] ?? 'subsubsection'}*{${tex.text(block.text)}}`;
      case 'paragraph':
        return write(block.text);
      case 'code':
        return `{\\small\n\\begin{verbatim}\n${block.lines.map((line) => line.slice(0, codeWidth)).join('\n')}\n\\end{verbatim}}`;
      case 'table':
        return texTable(block.rows, rules, codeWidth < 60 ? 45 : 80);
      default:
        return nested(
          block.items,
          (list) => `\\begin{${list}}\n`,
          (list) => `\\end{${list}}\n`,
          (text) => `\\item ${write(text)}\n`,
          ['itemize', 'enumerate'],
        );
    }
  });
  return `${preamble}\\usepackage{fontspec,booktabs,array}\\begin{document}${body.join('\n\n')}\n\\end{document}\n`;
}

/** Columns wrap if the table is wider than this number of characters. */
function texTable(rows: string[][], rules: Latex['rules'], charactersMax: number): string {
  const widths = (rows[0] ?? []).map((_cell, at) =>
    Math.max(6, Math.min(60, Math.max(...rows.map((row) => row[at]?.length ?? 0)))),
  );
  const whole = widths.reduce((sum, width) => sum + width, 0);
  const kinds = widths.map((width) =>
    whole > charactersMax ? `p{${((0.9 * width) / whole).toFixed(3)}\\linewidth}` : 'l',
  );
  const line = rules === 'grid' ? '|' : '';
  const written = rows.map((row) => `${row.map((cell) => writeInline(cell, tex)).join(' & ')} \\\\`);
  const [first, ...rest] = written;
  const ruled = {
    grid: `\\hline ${written.join(' \\hline\n')} \\hline`,
    booktabs: `\\toprule ${first}\\midrule\n${rest.join('\n')}\\bottomrule`,
    none: written.join('\n'),
  };
  return `\\par\\medskip\\noindent{\\footnotesize\\setlength\\tabcolsep{4pt}\\begin{tabular}{${line}${kinds.join(line)}${line}}${ruled[rules]}\\end{tabular}}\\medskip`;
}
