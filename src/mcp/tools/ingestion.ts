import { Type } from 'typebox';
import { strict } from '../../http/route/route.ts';
import { defined } from '../../lib/defined.ts';
import { mapOf } from '../../lib/map-schema.ts';
import { defineTool, optionalText, requireOneOf, type Tool, toolLimits, waitFor, waitInput } from '../tool.ts';

type Ingestion = {
  id: string;
  status: string;
  metadata: { document?: string };
  stats: { chunks?: number; pages?: number };
  error?: { code: string; message: string };
};

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
  output: Type.Object({
    ingestion: Type.String({ description: 'cig_…' }),
    status: Type.Enum(['pending', 'running', 'awaiting_callback', 'succeeded', 'failed']),
    document: optionalText,
    chunks: Type.Optional(Type.Integer()),
    error: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
  }),
  async run({ source, text, file, wait_seconds: wait = toolLimits.waitSecondsDefault, ...rest }, context) {
    requireOneOf(['text', 'file'], text, file);
    const path = `/api/v1/knowledge_sources/${encodeURIComponent(source)}/ingest`;
    const content = text === undefined ? { file } : { content: { data: text, content_type: 'text/markdown' } };
    const started = await context.api<Ingestion>('POST', path, { body: { ...content, ...rest, on_active: 'queue' } });
    let looks = 0;
    const found = await waitFor(context, started, wait, {
      look: () => context.api<Ingestion>('GET', `/api/v1/knowledge_ingestions/${started.id}`),
      ended: ({ status }) => status === 'succeeded' || status === 'failed',
      tell: async ({ status, stats }) => {
        looks += 1;
        await context.report(looks, undefined, `The ingestion is ${status}: ${stats.chunks ?? 0} chunks.`);
      },
    });
    const { id, status, metadata, stats, error } = found;
    return {
      data: {
        ingestion: id,
        status: status as 'succeeded',
        ...defined({ document: metadata.document, chunks: stats.chunks }),
        ...(error === undefined ? {} : { error: { code: error.code, message: error.message } }),
      },
    };
  },
});

export const ingestionTools: readonly Tool[] = [ingest];
