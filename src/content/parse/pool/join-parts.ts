import type { ParsedDocument, ParsedPart } from '../types.ts';
import { escapeText, oneLine } from '../write-markdown.ts';

/**
 * Joins a mail and its attachments into one text: each attachment follows below its name, or says why it was not
 * read.
 */
export function joinParts(document: ParsedDocument, parts: readonly ParsedPart[]): ParsedDocument {
  const sections = parts.map(({ name, document: part, error }) =>
    part === undefined
      ? `<!-- ${comment(`${name} was not read: ${error.message}`)} -->\n`
      : `## ${escapeText(name)}\n\n${part.markdown.trim()}\n`,
  );
  return { ...document, markdown: [document.markdown, ...sections].join('\n') };
}

/** Escapes text so that it cannot end the comment around it. */
function comment(text: string): string {
  return oneLine(text)
    .replaceAll(/-(?=[->])/g, '- ')
    .replaceAll('>', '&gt;');
}
