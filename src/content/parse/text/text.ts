import type { ParsedDocument } from '../types.ts';
import { cleanText } from './charset.ts';

/** Keeps plain text unchanged: it is close enough to Markdown, and every character stays searchable. */
export function parsePlainText(text: string): ParsedDocument {
  return { kind: 'text', markdown: finish(cleanText(text)) };
}

/** Keeps Markdown unchanged, except for front matter, which becomes the metadata. */
export function parseMarkdownText(text: string): ParsedDocument {
  const clean = cleanText(text);
  const matter = /^---\n([\s\S]*?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)/.exec(clean);
  if (!matter || !/^\s*[\w-]+\s*:/m.test(matter[1] ?? '')) return { kind: 'markdown', markdown: finish(clean) };
  const fields: Record<string, string> = {};
  for (const [, name, value] of (matter[1] ?? '').matchAll(/^(title|author|language|lang|date)[ \t]*:[ \t]*(\S.*)$/gim))
    if (name !== undefined && value !== undefined)
      fields[name.toLowerCase()] ??= value.trim().replace(/^(["'])(.*)\1$/, '$2');
  const created = isoDate(fields.date);
  return {
    kind: 'markdown',
    markdown: finish(clean.slice(matter[0].length)),
    ...(fields.title ? { title: fields.title } : {}),
    ...(fields.author ? { author: fields.author } : {}),
    ...(fields.language || fields.lang ? { language: fields.language ?? fields.lang ?? '' } : {}),
    ...(created ? { created } : {}),
  };
}

/** Puts code, JSON, XML and similar formats in a fence that names the language. */
export function parseCodeText(text: string, language: string): ParsedDocument {
  const clean = finish(cleanText(text)).trimEnd();
  const longest = Math.max(2, ...[...clean.matchAll(/`{3,}/g)].map((run) => run[0].length));
  const fence = '`'.repeat(longest + 1);
  return { kind: language, markdown: `${fence}${language}\n${clean}\n${fence}\n` };
}

/** Converts a date to ISO 8601. Undefined if the text is not a date. */
export function isoDate(value: string | undefined): string | undefined {
  if (value === undefined || value.trim() === '') return undefined;
  const time = Date.parse(value.trim());
  return Number.isNaN(time) || Math.abs(time) > 8.6e15 ? undefined : new Date(time).toISOString();
}

function finish(text: string): string {
  const body = text.replace(/^(?:[ \t]*\n)+/, '').trimEnd();
  return body === '' ? '' : `${body}\n`;
}
