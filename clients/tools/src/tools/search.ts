import { z } from 'zod';
import { defineTool, type ToolDefinition } from '../definition.ts';
import { describeAllowed, type Limits } from '../options.ts';
import type { QuarryClient } from '../session.ts';
import { cutText, joinParts } from '../text.ts';

export type SearchInput = { query: string; sources?: string[] | undefined; max_results?: number | undefined };

/** A passage with what a citation needs. */
export type Passage = {
  content: string;
  document: string;
  source: string;
  title?: string;
  source_url?: string;
  /** Leads to the passage on the page. */
  fragment?: string;
  start_line: number;
  end_line: number;
  start_byte: number;
  end_byte: number;
  score: number;
};
export type SearchResult = {
  passages: Passage[] /** Passages that charactersMax left no room for. */;
  left_out: number;
};

const resultsDefault = 8;
const resultsMax = 25;
const passageCharactersMax = 2_000;
const namedSourcesMax = 20;

export function searchTool(client: QuarryClient, limits: Limits): ToolDefinition<SearchInput, SearchResult> {
  const { sources } = limits;
  const allowed = sources === undefined ? [] : [...sources.keys()];
  const source = sources === undefined ? z.string() : z.enum(allowed);
  const choice = sources === undefined ? '' : ` The sources are:${describeAllowed(sources)}`;
  return defineTool<SearchInput, SearchResult>(client, limits, {
    name: 'search',
    description: `Finds passages in the knowledge base, by words and by meaning, best first. Each passage names its document, lines and bytes: cite them, and use read for the text around them.${choice}`,
    input: z.strictObject({
      query: z.string().min(1).max(10_000).describe('A question or key words.'),
      sources: z
        .array(source)
        .min(1)
        .max(namedSourcesMax)
        .optional()
        .describe('Only these sources (cso_…). Default: all.'),
      max_results: z.int().min(1).max(resultsMax).optional().describe(`Default ${resultsDefault}.`),
    }),
    async run({ query, sources: named, max_results = resultsDefault }, session) {
      const only = named ?? (sources === undefined ? undefined : allowed);
      const body = { query, max_results, ...(only === undefined ? {} : { sources: only }) };
      const { data } = await session.request<{ data: Passage[] }>('POST', '/api/v1/knowledge_search', { body });
      const passages: Passage[] = [];
      let left = limits.charactersMax;
      for (const hit of data.map(present)) {
        left -= describePassage(hit, passages.length).length;
        if (left < 0) break;
        passages.push(hit);
      }
      return { passages, left_out: data.length - passages.length };
    },
    describe: ({ passages }) =>
      passages.length === 0 ? 'No results.' : passages.map(describePassage).join('').trimEnd(),
  });
}

function present(hit: Passage): Passage {
  const { document, source, title, source_url, fragment, start_line, end_line, start_byte, end_byte, score } = hit;
  return {
    content: cutText(hit.content, passageCharactersMax),
    ...{ document, source },
    ...(title === undefined ? {} : { title }),
    ...(source_url === undefined ? {} : { source_url }),
    ...(fragment === undefined ? {} : { fragment }),
    ...{ start_line, end_line, start_byte, end_byte, score },
  };
}

function describePassage(passage: Passage, at: number): string {
  const { title, document, source_url, fragment, start_line, end_line, start_byte, end_byte, content } = passage;
  const link = source_url === undefined || fragment === undefined ? source_url : `${source_url}#${fragment}`;
  const place = `lines ${start_line}-${end_line}, bytes ${start_byte}-${end_byte}`;
  return `[${at + 1}] ${joinParts(title, document, place, link)}\n${content}\n\n`;
}
