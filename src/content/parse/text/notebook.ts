import { htmlBlocks } from '../html/blocks.ts';
import { plainStructure } from '../html/structure/structure.ts';
import { parseHtml } from '../html/tree.ts';
import type { ParsedDocument } from '../types.ts';
import { type Block, writeMarkdown } from '../write-markdown.ts';
import { cleanText } from './charset.ts';
import { parseCodeText } from './text.ts';

type Fields = { [name: string]: unknown };

/**
 * A Jupyter notebook (nbformat 3 and 4): Markdown as it is, code with the language of its kernel, outputs as text, tables
 * of data frames as tables. Other JSON is kept as code.
 */
export function parseNotebook(text: string): ParsedDocument {
  const notebook = notebookOf(text);
  if (!notebook) return parseCodeText(text, 'json');
  const language = languageOf(fieldsOf(notebook.metadata));
  const blocks = cellsOf(notebook).flatMap((cell) => cellBlocks(fieldsOf(cell), language));
  const title = fieldsOf(notebook.metadata).title;
  return {
    kind: 'ipynb',
    markdown: writeMarkdown(blocks),
    ...(typeof title === 'string' && title.trim() !== '' ? { title: title.trim() } : {}),
  };
}

function notebookOf(text: string): Fields | undefined {
  try {
    const value = fieldsOf(JSON.parse(text));
    return typeof value.nbformat === 'number' && cellsOf(value).length > 0 ? value : undefined;
  } catch {
    // Damaged JSON is text all the same.
    return undefined;
  }
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The cells of version 4, or those of the worksheets of version 3. */
function cellsOf(notebook: Fields): unknown[] {
  if (Array.isArray(notebook.cells)) return notebook.cells;
  return listOf(notebook.worksheets).flatMap((sheet) => listOf(fieldsOf(sheet).cells));
}

function languageOf(metadata: Fields): string {
  const names = [fieldsOf(metadata.kernelspec).language, fieldsOf(metadata.language_info).name];
  const name = names.find((one) => typeof one === 'string' && /^[\w+#.-]{1,30}$/.test(one));
  return typeof name === 'string' ? name.toLowerCase() : '';
}

function cellBlocks(cell: Fields, kernelLanguage: string): Block[] {
  const source = textOf(cell.source ?? cell.input);
  if (source.trim() === '' && cell.cell_type !== 'code') return [];
  switch (cell.cell_type) {
    case 'markdown':
      return [{ type: 'raw', text: source.trim() }];
    case 'heading':
      return [{ type: 'heading', level: Math.min(6, Number(cell.level) || 1), text: source.trim() }];
    case 'code': {
      const language = typeof cell.language === 'string' ? cell.language : kernelLanguage;
      return [
        ...codeBlocks(source, language),
        ...listOf(cell.outputs).flatMap((output) => outputBlocks(fieldsOf(output))),
      ];
    }
    default:
      return codeBlocks(source);
  }
}

function outputBlocks(output: Fields): Block[] {
  if (output.output_type === 'stream') return codeBlocks(textOf(output.text));
  if (output.output_type === 'error' || output.output_type === 'pyerr')
    return codeBlocks(`${textOf(output.ename)}: ${textOf(output.evalue)}`);
  const data = fieldsOf(output.data ?? output);
  const [plain, html] = [textOf(data['text/plain'] ?? data.text), textOf(data['text/html'] ?? data.html)];
  const [markdown, latex] = [textOf(data['text/markdown']), textOf(data['text/latex'] ?? data.latex)];
  if (markdown.trim() !== '') return [{ type: 'raw', text: markdown.trim() }];
  if (latex.trim() !== '') return [{ type: 'raw', text: latex.trim() }];
  if (html !== '' && (/<table\b/i.test(html) || plain === '')) {
    const { root } = parseHtml(html);
    plainStructure(root);
    return htmlBlocks(root);
  }
  return codeBlocks(plain);
}

function codeBlocks(text: string, language?: string): Block[] {
  const code = text.replace(/^(?:[ \t]*\n)+/, '').trimEnd();
  return code === '' ? [] : [{ type: 'code', text: code, ...(language ? { language } : {}) }];
}

/** A text or a list of its lines, without the colours of a terminal. */
function textOf(value: unknown): string {
  const lines = Array.isArray(value) ? value : [value];
  const text = lines.filter((line) => typeof line === 'string').join('');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with a control character.
  return cleanText(text.replaceAll(/\u001b\[[\d;]*[A-Za-z]/g, ''));
}
