import { strict } from '../../http/route/route.ts';
import { defined } from '../../lib/defined.ts';
import { mapOf } from '../../lib/map-schema.ts';
import { Type } from '../../lib/type.ts';
import {
  defineTool,
  optionalText,
  type Page,
  pageInput,
  pageOf,
  pageOutput,
  requireOneOf,
  type Tool,
  toolLimits,
  truncateJson,
  truncateText,
} from '../tool.ts';

type Source = { id: string; type: string; state: string; metadata: unknown } & Owners;
type Owners = { agent?: string | null; team?: string | null; user?: string | null; org?: string | null };
type Document = {
  id: string;
  source: string;
  title?: string;
  source_url?: string;
  metadata: unknown;
  total_lines: number;
  total_size: number;
  updated_at: string;
};
type Passage = {
  content: string;
  metadata: unknown;
  document: string;
  source: string;
  title?: string;
  source_url?: string;
  fragment?: string;
  start_line: number;
  end_line: number;
  start_byte: number;
  end_byte: number;
  score: number;
};
type Content = {
  content: string;
  title?: string;
  total_lines: number;
  total_size: number;
  start_line?: number;
  end_line?: number;
  start_byte?: number;
  end_byte?: number;
};

const freeJson = Type.Optional(mapOf(Type.Unknown()));

const listSources = defineTool({
  name: 'list_knowledge_sources',
  title: 'List knowledge sources',
  operation: 'listKnowledgeSources',
  description: 'Lists the knowledge sources visible to you, newest first. Pass their ids to search_knowledge.',
  hints: { reads: true },
  input: strict({
    agent: Type.Optional(Type.String({ description: 'Only sources of this agent (agt_…).' })),
    org: Type.Optional(Type.String({ description: 'Only sources of this organisation (org_…).' })),
    type: Type.Optional(Type.String({ description: 'Only sources of this type, such as knowledge/documents.' })),
    page: pageInput,
  }),
  output: Type.Object({
    sources: Type.Array(
      Type.Object({
        id: Type.String(),
        type: Type.String(),
        state: Type.String(),
        agent: optionalText,
        team: optionalText,
        user: optionalText,
        org: optionalText,
        metadata: freeJson,
        metadata_cut: optionalText,
      }),
    ),
    ...pageOutput,
  }),
  async run({ agent, org, type, page }, { api }) {
    const found = await api<Page<Source>>('GET', '/api/v1/knowledge_sources', { query: { agent, org, type, page } });
    const sources = found.data.map((source) => ({
      id: source.id,
      type: source.type,
      state: source.state,
      ...ownersOf(source),
      ...truncateJson('metadata', source.metadata, toolLimits.jsonCharactersMax),
    }));
    return { data: { sources, ...pageOf(found) } };
  },
});

const searchKnowledge = defineTool({
  name: 'search_knowledge',
  title: 'Search knowledge',
  operation: 'searchKnowledge',
  description:
    'Finds passages in everything that you can see, or in one source, or in all sources of one agent, best first. Each has its document and lines: use read_document to read the context.',
  hints: { reads: true },
  input: strict({
    query: Type.String({ minLength: 1, maxLength: 10_000 }),
    source: Type.Optional(Type.String({ description: 'cso_…; only this source.' })),
    agent: Type.Optional(Type.String({ description: "agt_… or the agent's lookup key; only its sources." })),
    mode: Type.Optional(Type.Enum(['hybrid', 'vector', 'fulltext'], { description: 'Default hybrid.' })),
    max_results: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: toolLimits.resultsMax,
        description: `Default ${toolLimits.resultsDefault}.`,
      }),
    ),
    min_similarity: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
    recency_days: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 100_000 })),
    filter: Type.Optional(mapOf(Type.Unknown(), { description: 'Conditions on document metadata.' })),
  }),
  output: Type.Object({
    passages: Type.Array(
      Type.Object({
        content: Type.String(),
        content_cut: Type.Optional(
          Type.Boolean({ description: 'Whether the content was cut. Use read_document to read the rest.' }),
        ),
        document: Type.String(),
        source: Type.String(),
        title: optionalText,
        source_url: optionalText,
        fragment: optionalText,
        url: Type.Optional(Type.String({ description: 'The address of the passage on its page. Cite it.' })),
        start_line: Type.Integer(),
        end_line: Type.Integer(),
        start_byte: Type.Integer(),
        end_byte: Type.Integer(),
        score: Type.Number(),
        metadata: freeJson,
        metadata_cut: optionalText,
      }),
    ),
  }),
  async run({ source, agent, max_results: wanted, ...rest }, { api }) {
    if (source !== undefined && agent !== undefined) requireOneOf(['source', 'agent'], source, agent);
    const path = searchPath(source, agent);
    const body = { ...rest, max_results: wanted ?? toolLimits.resultsDefault };
    const found = await api<{ data: Passage[] }>('POST', path, { body });
    const passages = found.data.map((hit) => {
      const content = truncateText(hit.content, toolLimits.passageCharactersMax);
      const { document, title, source_url, fragment, start_line, end_line, start_byte, end_byte, score } = hit;
      return {
        content,
        ...(content.length < hit.content.length ? { content_cut: true } : {}),
        document,
        source: hit.source,
        start_line,
        end_line,
        start_byte,
        end_byte,
        score,
        ...defined({ title, source_url, fragment, url: addressOf(hit) }),
        ...truncateJson('metadata', hit.metadata, toolLimits.jsonCharactersMax),
      };
    });
    const text = passages
      .map(
        ({ content, document, title, start_line, end_line, url }, at) =>
          `[${at + 1}] ${title ?? document} (${document}, lines ${start_line}-${end_line}${url === undefined ? '' : `, ${url}`})\n${content}`,
      )
      .join('\n\n');
    return { data: { passages }, text: text === '' ? 'No results.' : text };
  },
});

/** The address of a passage on its page: of the heading above it, if that has one. */
function addressOf({ source_url: url, fragment }: Passage): string | undefined {
  return url === undefined || fragment === undefined ? url : `${url}#${fragment}`;
}

function searchPath(source: string | undefined, agent: string | undefined): string {
  if (source !== undefined) return `/api/v1/knowledge_sources/${encodeURIComponent(source)}/search`;
  if (agent !== undefined) return `/api/v1/agents/${encodeURIComponent(agent)}/search`;
  return '/api/v1/knowledge_search';
}

const listDocuments = defineTool({
  name: 'list_documents',
  title: 'List documents',
  operation: 'listKnowledgeDocuments',
  description: 'Lists the knowledge documents visible to you, newest first.',
  hints: { reads: true },
  input: strict({
    source: Type.Optional(Type.String({ description: 'Only documents of this source (cso_…).' })),
    agent: Type.Optional(Type.String({ description: 'Only documents of this agent (agt_…).' })),
    title: Type.Optional(Type.String({ description: 'Only documents whose title begins with this.' })),
    page: pageInput,
  }),
  output: Type.Object({
    documents: Type.Array(
      Type.Object({
        id: Type.String(),
        source: Type.String(),
        title: optionalText,
        source_url: optionalText,
        total_lines: Type.Integer(),
        total_size: Type.Integer({ description: 'Bytes.' }),
        updated_at: Type.String(),
        metadata: freeJson,
        metadata_cut: optionalText,
      }),
    ),
    ...pageOutput,
  }),
  async run({ source, agent, title, page }, { api }) {
    const query = { source, agent, q: title, page };
    const found = await api<Page<Document>>('GET', '/api/v1/knowledge_documents', { query });
    const documents = found.data.map((document) => ({
      id: document.id,
      source: document.source,
      updated_at: document.updated_at,
      total_lines: document.total_lines,
      total_size: document.total_size,
      ...defined({ title: document.title, source_url: document.source_url }),
      ...truncateJson('metadata', document.metadata, toolLimits.jsonCharactersMax),
    }));
    return { data: { documents, ...pageOf(found) } };
  },
});

const readDocument = defineTool({
  name: 'read_document',
  title: 'Read a document',
  operation: 'getKnowledgeDocumentContent',
  description:
    'Returns lines (counted from 1) or bytes (from 0) of a document. Pass next_offset as offset to continue; it is absent at the end.',
  hints: { reads: true },
  input: strict({
    document: Type.String({ description: 'cdo_…' }),
    unit: Type.Optional(Type.Enum(['lines', 'bytes'], { description: 'Default lines.' })),
    offset: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 2_147_483_647,
        description: 'The first line or byte. Default: the beginning.',
      }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: toolLimits.textBytesMax,
        description: `Default ${toolLimits.linesDefault} lines (at most ${toolLimits.linesMax}) or ${toolLimits.textBytesDefault} bytes.`,
      }),
    ),
  }),
  output: Type.Object({
    document: Type.String(),
    title: optionalText,
    content: Type.String(),
    total_lines: Type.Integer(),
    total_size: Type.Integer({ description: 'Bytes.' }),
    start_line: Type.Optional(Type.Integer()),
    end_line: Type.Optional(Type.Integer()),
    start_byte: Type.Optional(Type.Integer()),
    end_byte: Type.Optional(Type.Integer()),
    next_offset: Type.Optional(Type.Integer()),
    line_cut: Type.Optional(Type.Boolean({ description: 'Whether the line was cut. Read the rest with unit bytes.' })),
  }),
  async run({ document, unit = 'lines', offset, limit }, { api }) {
    const path = `/api/v1/knowledge_documents/${encodeURIComponent(document)}/content`;
    const wanted =
      unit === 'lines'
        ? Math.min(limit ?? toolLimits.linesDefault, toolLimits.linesMax)
        : (limit ?? toolLimits.textBytesDefault);
    const query = { unit, offset: offset ?? (unit === 'lines' ? 1 : 0), limit: wanted };
    const found = await api<Content>('GET', path, { query });
    const range = unit === 'lines' ? linesOf(found) : bytesOf(found);
    const { title, total_lines, total_size } = found;
    const data = { document, ...defined({ title }), total_lines, total_size, ...range };
    return { data, text: `${data.content}${'next_offset' in range ? nextHint(range.next_offset, unit) : ''}` };
  },
});

function linesOf({ content, start_line: first = 1, end_line: last = 0, total_lines: total }: Content) {
  let kept = content;
  let end = last;
  const bytes = Buffer.byteLength(content);
  if (bytes > toolLimits.textBytesMax) {
    // Return fewer lines, so that all are complete. A single line that is too long is cut.
    const text = truncateText(content, Math.floor((content.length * toolLimits.textBytesMax) / bytes));
    const lineEnd = text.lastIndexOf('\n');
    kept = lineEnd < 0 ? text : text.slice(0, lineEnd + 1);
    end = first + Math.max(1, kept.split('\n').length - 1) - 1;
    if (lineEnd < 0) return { content: kept, start_line: first, end_line: first, line_cut: true, ...next(end, total) };
  }
  return { content: kept, start_line: first, end_line: end, ...next(end, total) };
}

function next(endLine: number, total: number): { next_offset?: number } {
  return endLine < total ? { next_offset: endLine + 1 } : {};
}

function bytesOf({ content, start_byte: start = 0, end_byte: end = 0, total_size: total }: Content) {
  return { content, start_byte: start, end_byte: end, ...(end < total ? { next_offset: end } : {}) };
}

function nextHint(offset: number | undefined, unit: string): string {
  return offset === undefined ? '' : `\n\n[There is more: call read_document with unit ${unit} and offset ${offset}.]`;
}

function ownersOf({ agent, team, user, org }: Owners): Record<string, string> {
  const given = Object.entries({ agent, team, user, org }).filter((entry): entry is [string, string] => !!entry[1]);
  return Object.fromEntries(given);
}

export const knowledgeTools: readonly Tool[] = [searchKnowledge, listSources, listDocuments, readDocument];
