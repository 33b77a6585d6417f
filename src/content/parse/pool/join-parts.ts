import type { ParsedDocument, ParsedPart } from '../types.ts';
import { escapeText } from '../write-markdown.ts';

/** For those who store one text: the attachments that could be read follow the mail, each below its name. */
export function joinParts(document: ParsedDocument, parts: readonly ParsedPart[]): ParsedDocument {
  const sections = parts.flatMap(({ name, document: part }) =>
    part === undefined ? [] : [`## ${escapeText(name)}\n\n${part.markdown.trim()}\n`],
  );
  return { ...document, markdown: [document.markdown, ...sections].join('\n') };
}
