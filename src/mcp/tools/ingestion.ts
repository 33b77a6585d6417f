import type { Static } from 'typebox';
import { strict } from '../../http/route/route.ts';
import { defined } from '../../lib/defined.ts';
import { mapOf } from '../../lib/map-schema.ts';
import { Type } from '../../lib/type.ts';
import {
  defineTool,
  optionalText,
  requireOneOf,
  secondsToWait,
  type Tool,
  type Work,
  type WorkKind,
  waitFor,
  waitInput,
  workLeft,
} from '../tool.ts';

type Ingestion = {
  id: string;
  status: string;
  metadata: { document?: string };
  stats: { chunks?: number; pages?: number };
  error?: { code: string; message: string };
  created_at: string;
  updated_at: string;
};

const outputSchema = Type.Object({
  ingestion: Type.String({ description: 'cig_…' }),
  status: Type.Enum(['pending', 'running', 'awaiting_callback', 'succeeded', 'failed']),
  document: optionalText,
  chunks: Type.Optional(Type.Integer()),
  error: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
});

const pathOf = (ingestion: string) => `/api/v1/knowledge_ingestions/${encodeURIComponent(ingestion)}`;

const ingest = defineTool({
  name: 'ingest',
  title: 'Ingest a document',
  operation: 'ingestIntoKnowledgeSource',
  description:
    'Adds a text or a stored file to a source as a document, and waits until it can be searched. For a page, call extract_url first and pass the file of its output.',
  hints: { reads: false },
  input: strict({
    source: Type.String({ description: 'cso_…, of the type knowledge/documents.' }),
    text: Type.Optional(Type.String({ minLength: 1, description: 'Text or Markdown; required unless file is given.' })),
    file: Type.Optional(Type.String({ description: 'fil_…; required unless text is given.' })),
    title: Type.Optional(Type.String({ maxLength: 1_000, description: 'Title of the document.' })),
    metadata: Type.Optional(
      mapOf(Type.Unknown(), { description: 'Metadata of the document, for filters of searches.' }),
    ),
    wait_seconds: waitInput,
  }),
  output: outputSchema,
  async run({ source, text, file, wait_seconds: wait, ...rest }, context) {
    requireOneOf(['text', 'file'], text, file);
    const seconds = secondsToWait(context, wait);
    const path = `/api/v1/knowledge_sources/${encodeURIComponent(source)}/ingest`;
    const content = text === undefined ? { file } : { content: { data: text, content_type: 'text/markdown' } };
    const started = await context.api<Ingestion>('POST', path, { body: { ...content, ...rest, on_active: 'queue' } });
    let looks = 0;
    const found = await waitFor(context, started, seconds, {
      look: () => context.api<Ingestion>('GET', pathOf(started.id)),
      ended: isOver,
      tell: async (ingestion) => {
        looks += 1;
        await context.report(looks, undefined, describe(ingestion));
      },
    });
    return { data: present(found), ...workLeft(workOf(found), seconds) };
  },
});

function isOver({ status }: Ingestion): boolean {
  return status === 'succeeded' || status === 'failed';
}

function describe({ status, stats }: Ingestion): string {
  return `The ingestion is ${status}: ${stats.chunks ?? 0} chunks.`;
}

function present({ id, status, metadata, stats, error }: Ingestion): Static<typeof outputSchema> {
  return {
    ingestion: id,
    status: status as Static<typeof outputSchema>['status'],
    ...defined({ document: metadata.document, chunks: stats.chunks }),
    ...(error === undefined ? {} : { error: { code: error.code, message: error.message } }),
  };
}

function workOf(ingestion: Ingestion): Work {
  const { id, created_at: createdAt, updated_at: updatedAt } = ingestion;
  const status = isOver(ingestion) ? 'completed' : 'working';
  return { id, status, message: describe(ingestion), createdAt, updatedAt };
}

export const ingestionWork: WorkKind = {
  idPrefix: 'cig_',
  async find({ api }, id) {
    const found = await api<Ingestion>('GET', pathOf(id));
    return { work: workOf(found), show: async () => ({ data: present(found) }) };
  },
};

export const ingestionTools: readonly Tool[] = [ingest];
