import type { ParsedDocument, ParsedPart } from '../types.ts';
import { escapeText, oneLine } from '../write-markdown.ts';

/** For those who store one text: the attachments follow the mail, each below its name. One that failed says why. */
export function joinParts(document: ParsedDocument, parts: readonly ParsedPart[]): ParsedDocument {
  const sections = parts.map(({ name, document: part, error }) =>
    part === undefined
      ? `<!-- ${comment(`${name} was not read: ${error.message}`)} -->\n`
      : `## ${escapeText(name)}\n\n${part.markdown.trim()}\n`,
  );
  return { ...document, markdown: [document.markdown, ...sections].join('\n') };
}

/** Text that cannot end the comment it is in. */
function comment(text: string): string {
  return oneLine(text)
    .replaceAll(/-(?=[->])/g, '- ')
    .replaceAll('>', '&gt;');
}
