import type { Static } from 'typebox';
import type { CrawlSettings } from '../crawls/types.ts';
import { defined } from '../lib/defined.ts';
import { invalidField } from '../lib/errors.ts';
import type { extractionCreateSchema } from './schema.ts';
import type { Wanted } from './structure/prompts.ts';

/** `prefix` has no leading or trailing slash. Undefined means no prefix. */
export type Destination = { kind: 'config' | 'storage'; prefix: string | undefined };

export type ExtractionRequest = { destination: Destination; wanted: Wanted | undefined } & (
  | { kind: 'document'; file: string }
  | { kind: 'link' | 'site'; settings: CrawlSettings }
);

const maxPagesDefault = 100;

/** Parses the body into exactly one kind of extraction. 422 on a missing or superfluous member. */
export function readExtractionRequest(body: Static<typeof extractionCreateSchema>): ExtractionRequest {
  const common = { destination: readDestination(body), wanted: readWanted(body) };
  if (body.file !== undefined) {
    if (body.url !== undefined) throw invalidField('url', 'send either file or url, not both');
    if (body.mode !== undefined) throw invalidField('mode', 'is only for url, not for file');
    for (const member of crawlMembers)
      if (body[member] !== undefined) throw invalidField(member, 'is only for url, not for file');
    return { kind: 'document', file: body.file, ...common };
  }
  if (body.url === undefined) throw invalidField('file', 'send either file, or url with mode');
  if (body.mode === undefined) throw invalidField('mode', 'is required with url: link or site');
  return { kind: body.mode, settings: readCrawlSettings(body, body.url, body.mode), ...common };
}

/** Members that apply only to links and sites. A link accepts all of them but ignores most. */
const crawlMembers = [
  'max_pages',
  'include_paths',
  'exclude_paths',
  'max_depth',
  'allow_subdomains',
  'ignore_robots',
  'sitemap',
] as const;

function readCrawlSettings(
  body: Static<typeof extractionCreateSchema>,
  url: string,
  mode: 'link' | 'site',
): CrawlSettings {
  return {
    mode,
    startUrl: url,
    maxPages: mode === 'link' ? 1 : (body.max_pages ?? maxPagesDefault),
    includePaths: body.include_paths ?? [],
    excludePaths: body.exclude_paths ?? [],
    ...defined({ maxDepth: body.max_depth }),
    allowSubdomains: body.allow_subdomains ?? false,
    ignoreRobots: body.ignore_robots ?? false,
    sitemap: body.sitemap ?? 'include',
  };
}

function readWanted(body: Static<typeof extractionCreateSchema>): Wanted | undefined {
  const { schema, instructions, model } = body;
  if (schema !== undefined) return { schema, instructions: instructions ?? null, model: model ?? null };
  if (instructions !== undefined) throw invalidField('instructions', 'requires schema');
  if (model !== undefined) throw invalidField('model', 'requires schema');
  return undefined;
}

function readDestination(body: Static<typeof extractionCreateSchema>): Destination {
  const segments = (body.destination_path ?? '').split('/').filter((segment) => !['', '.', '..'].includes(segment));
  const prefix = segments.length > 0 ? segments.join('/') : undefined;
  if (body.destination_kind === 'config' && prefix === undefined)
    throw invalidField('destination_path', 'must name at least one segment when destination_kind is config');
  return { kind: body.destination_kind, prefix };
}

/** The name of a document's output: the stem of its filename, with unsafe characters replaced by `-`. */
export function documentOutputName(filename: string): string {
  const last = filename.split(/[/\\]/).at(-1) ?? '';
  const dot = last.lastIndexOf('.');
  return `${safeName(dot > 0 ? last.slice(0, dot) : last) || 'document'}.md`;
}

/** A name without characters that have a meaning in a path. Empty for `.` and `..`. */
function safeName(text: string): string {
  const name = text.replace(/[^\p{L}\p{N}._-]/gu, '-');
  return name === '.' || name === '..' ? '' : name;
}

/** The name below its prefix. If it is taken, `-2`, `-3` … is inserted before the extension. */
export function outputPath(prefix: string | undefined, name: string, taken: (path: string) => boolean): string {
  const path = prefix === undefined ? name : `${prefix}/${name}`;
  if (!taken(path)) return path;
  const stem = path.replace(/\.md$/, '');
  for (let number = 2; ; number++) if (!taken(`${stem}-${number}.md`)) return `${stem}-${number}.md`;
}
