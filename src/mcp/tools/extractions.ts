import type { Static } from 'typebox';
import { strict } from '../../http/route/route.ts';
import { defined } from '../../lib/defined.ts';
import { AppError } from '../../lib/errors.ts';
import { mapOf } from '../../lib/map-schema.ts';
import { pattern } from '../../lib/patterns.ts';
import { Type } from '../../lib/type.ts';
import {
  defineTool,
  optionalText,
  readUtf8,
  requireOneOf,
  secondsToWait,
  type Tool,
  type ToolContext,
  type ToolResult,
  toolLimits,
  type Work,
  type WorkKind,
  waitFor,
  waitInput,
  workLeft,
} from '../tool.ts';

type Output = {
  ordinal: number;
  state: 'done' | 'failed';
  title?: string;
  source_url?: string;
  error?: { code: string; message: string };
  file?: { id: string; size: number };
  data?: unknown;
  data_file?: { id: string };
  data_error?: { code: string; message: string };
};
type Extraction = {
  id: string;
  state: 'running' | 'done' | 'failed';
  error?: { code: string; message: string };
  progress: { discovered: number; done: number; failed: number };
  waiting_count?: number;
  max_pages?: number;
  data_progress?: { pieces: number; pieces_done: number };
  outputs?: Output[];
  created_at: string;
  updated_at: string;
};

const outputSchema = Type.Object({
  extraction: Type.String({ description: 'ext_…; pass it to read_extraction.' }),
  state: Type.Enum(['running', 'done', 'failed']),
  error: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
  progress: Type.Object({ discovered: Type.Integer(), done: Type.Integer(), failed: Type.Integer() }),
  waiting_count: Type.Optional(Type.Integer()),
  outputs: Type.Array(
    Type.Object({
      number: Type.Integer({ description: 'Pass it to read_extraction as output.' }),
      state: Type.Enum(['done', 'failed']),
      title: optionalText,
      source_url: optionalText,
      size: Type.Optional(Type.Integer({ description: 'Bytes of Markdown.' })),
      file: Type.Optional(Type.String({ description: 'fil_…; the Markdown as a stored file, for ingest.' })),
      data_file: Type.Optional(Type.String({ description: 'fil_…; the data and its spans, for read_file.' })),
      data_error: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
      error: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
    }),
  ),
  outputs_left_out: Type.Optional(
    Type.Integer({ description: 'Number of outputs not listed. Use first_output of read_extraction to list them.' }),
  ),
  output: Type.Optional(Type.Integer({ description: 'The output that the content belongs to.' })),
  data: Type.Optional(Type.Unknown({ description: 'With a schema: the data of the output, unless it is large.' })),
  content: Type.Optional(Type.String({ description: 'Markdown.' })),
  start_byte: Type.Optional(Type.Integer()),
  end_byte: Type.Optional(Type.Integer()),
  size: Type.Optional(Type.Integer()),
  next_offset: Type.Optional(Type.Integer({ description: 'Pass it to read_extraction as offset to continue.' })),
});
type ToolOutput = Static<typeof outputSchema>;

const owners = {
  agent: Type.Optional(Type.String({ description: 'agt_…; the agent that owns the job and its outputs.' })),
  org: Type.Optional(Type.String({ description: 'org_…' })),
};
const patterns = Type.Optional(
  Type.Array(Type.String({ minLength: 1, maxLength: 1_000, ...pattern('^[/*]', 'must begin with / or *') }), {
    maxItems: 100,
  }),
);

const wanted = {
  schema: Type.Optional(
    mapOf(Type.Unknown(), {
      description:
        'JSON Schema of the data that the server’s language model, if there is one, extracts from each text.',
    }),
  ),
  instructions: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 10_000,
      description: 'Instructions for extracting the data. Requires schema.',
    }),
  ),
};

const pathOf = (extraction: string) => `/api/v1/extractions/${encodeURIComponent(extraction)}`;

const extractUrl = defineTool({
  name: 'extract_url',
  title: 'Extract a page or a site',
  operation: 'createExtraction',
  description:
    'Reads a public page (mode link) or follows the links of a site (mode site), as Markdown. Waits for the result. If the job takes longer, returns state running and its id for read_extraction.',
  hints: { reads: false, reachesOut: true },
  input: strict({
    url: Type.String({ maxLength: 8_192 }),
    mode: Type.Optional(Type.Enum(['link', 'site'], { description: 'Default link.' })),
    max_pages: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 2_147_483_647,
        description: 'Maximum number of pages of a site. Default 100.',
      }),
    ),
    include_paths: patterns,
    exclude_paths: patterns,
    ...wanted,
    ...owners,
    wait_seconds: waitInput,
  }),
  output: outputSchema,
  async run({ wait_seconds: wait, mode = 'link', ...rest }, context) {
    const body = { ...rest, mode, destination_kind: 'storage' };
    return extract(context, body, wait);
  },
});

const extractFile = defineTool({
  name: 'extract_file',
  title: 'Extract a document',
  operation: 'createExtraction',
  description:
    'Reads a document (PDF, office, mail, e-book, HTML …; at most 10 MB) as Markdown: a stored file, or bytes in base64 with a filename.',
  hints: { reads: false },
  input: strict({
    file: Type.Optional(Type.String({ description: 'fil_…; required unless data is given.' })),
    data: Type.Optional(Type.String({ description: 'The bytes in base64; required unless file is given.' })),
    filename: Type.Optional(Type.String({ minLength: 1, maxLength: 500, description: 'Required with data.' })),
    content_type: Type.Optional(Type.String({ maxLength: 255, description: 'Media type of data.' })),
    ...wanted,
    ...owners,
    wait_seconds: waitInput,
  }),
  output: outputSchema,
  async run({ file, data, filename, content_type, schema, instructions, wait_seconds: wait, ...rest }, context) {
    requireOneOf(['file', 'data'], file, data);
    const id = file ?? (await upload(context, { data, filename, content_type, ...rest }));
    const structure = { ...(schema && { schema }), ...(instructions && { instructions }) };
    const body = { file: id, destination_kind: 'storage', ...structure, ...rest };
    return extract(context, body, wait);
  },
});

/** Starts an extraction and waits for its end. */
async function extract(
  context: ToolContext,
  body: Record<string, unknown>,
  given: number | undefined,
): Promise<ToolResult<ToolOutput>> {
  const seconds = secondsToWait(context, given);
  const started = await context.api<Extraction>('POST', '/api/v1/extractions', { body });
  const found = await waitForEnd(context, started, seconds);
  return { ...(await show(context, found, {})), ...workLeft(workOf(found), seconds) };
}

async function upload(
  { api }: ToolContext,
  input: { data: string | undefined; filename?: string | undefined; content_type?: string | undefined },
): Promise<string> {
  if (input.filename === undefined)
    throw new AppError('invalid_parameters', 'filename: is required with data', {
      fields: [{ field: 'filename', message: 'is required with data' }],
    });
  const body = { ...input, content_type: input.content_type ?? 'application/octet-stream' };
  return (await api<{ id: string }>('POST', '/api/v1/files', { body })).id;
}

const readExtraction = defineTool({
  name: 'read_extraction',
  title: 'Read an extraction',
  operation: 'getExtraction',
  description:
    'Returns the progress of an extraction, its outputs, and part of the Markdown of one of them. Pass next_offset as offset to continue.',
  hints: { reads: true },
  input: strict({
    extraction: Type.String({ description: 'ext_…' }),
    output: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 2_147_483_647,
        description: 'Number of the output to read. Default: the first.',
      }),
    ),
    offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_147_483_647, description: 'First byte. Default 0.' })),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: toolLimits.textBytesMax,
        description: `Bytes. Default ${toolLimits.textBytesDefault}.`,
      }),
    ),
    first_output: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 2_147_483_647,
        description: 'Number of the first output to list. Default 0.',
      }),
    ),
    wait_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: toolLimits.waitSecondsMax,
        description: 'Maximum seconds to wait while the job is running. Default 0.',
      }),
    ),
  }),
  output: outputSchema,
  async run({ extraction, wait_seconds: wait = 0, ...part }, context) {
    const found = await context.api<Extraction>('GET', pathOf(extraction));
    return show(context, await waitForEnd(context, found, wait), part);
  },
});

function waitForEnd(context: ToolContext, started: Extraction, seconds: number): Promise<Extraction> {
  let looks = 0;
  return waitFor(context, started, seconds, {
    look: () => context.api<Extraction>('GET', pathOf(started.id)),
    ended: ({ state }) => state !== 'running',
    tell: async ({
      progress: { discovered, done, failed },
      waiting_count: waiting = 0,
      max_pages: most,
      data_progress: data,
    }) => {
      if (data !== undefined && data.pieces > 0 && done + failed >= Math.min(discovered, most ?? discovered))
        return context.report(data.pieces_done, data.pieces, `${data.pieces_done} of ${data.pieces} pieces read`);
      const total = Math.min(discovered, most ?? discovered);
      const read = Math.min(done + failed + waiting, total);
      // Adds a fraction of the next page, so that a slow page still shows progress.
      const part = read < total ? looks / (looks + 1) : 0;
      looks += 1;
      await context.report(read + part, total, `${read - failed} of ${total} pages read, ${failed} failed`);
    },
  });
}

function workOf({ id, state, progress: { discovered, done, failed }, created_at, updated_at }: Extraction): Work {
  return {
    ...{ id, createdAt: created_at, updatedAt: updated_at },
    status: state === 'running' ? 'working' : 'completed',
    message: `${id} is ${state}: ${done} of ${discovered} pages read, ${failed} failed.`,
  };
}

export const extractionWork: WorkKind = {
  idPrefix: 'ext_',
  async find(context, id) {
    const found = await context.api<Extraction>('GET', pathOf(id));
    return { work: workOf(found), show: () => show(context, found, {}) };
  },
  cancel: ({ api }, id) => api('DELETE', pathOf(id)),
};

type Part = {
  output?: number | undefined;
  offset?: number | undefined;
  limit?: number | undefined;
  first_output?: number | undefined;
};

/** The state of the job, its outputs from `first_output` on, and the text of the requested one. */
async function show(context: ToolContext, found: Extraction, part: Part): Promise<ToolResult<ToolOutput>> {
  const all = found.outputs ?? [];
  const first = part.first_output ?? 0;
  const listed = all.slice(first, first + toolLimits.listedMax);
  const leftOut = Math.max(0, all.length - first - listed.length);
  const chosen = part.output === undefined ? all.find(({ file }) => file !== undefined) : all[part.output];
  if (part.output !== undefined && (chosen === undefined || chosen.file === undefined))
    throw new AppError('not_found', `Output ${part.output} does not exist or has no text.`);
  const text = chosen === undefined ? undefined : await readOutput(context, chosen, part);
  const data: ToolOutput = {
    extraction: found.id,
    state: found.state,
    progress: found.progress,
    ...defined({ error: found.error }),
    outputs: listed.map(({ ordinal, state, title, source_url, file, error, data_file, data_error }) => ({
      number: ordinal,
      state,
      ...defined({ title, source_url }),
      ...(file === undefined ? {} : { size: file.size, file: file.id }),
      ...(data_file === undefined ? {} : { data_file: data_file.id }),
      ...defined({ data_error, error }),
    })),
    ...(leftOut > 0 ? { outputs_left_out: leftOut } : {}),
    ...dataOf(chosen),
    ...text,
  };
  return { data, text: describe(data) };
}

/** The data of an output, unless it would fill the model's context. */
function dataOf(output: Output | undefined): { data?: unknown } {
  if (output?.data === undefined) return {};
  return Buffer.byteLength(JSON.stringify(output.data)) > toolLimits.textBytesDefault ? {} : { data: output.data };
}

async function readOutput(context: ToolContext, { ordinal, file }: Output, { offset = 0, limit }: Part) {
  if (file === undefined) return undefined;
  const start = Math.min(offset, file.size);
  const end = Math.min(start + (limit ?? toolLimits.textBytesDefault), file.size);
  const slice = readUtf8(start < end ? await context.readFile(file.id, start, end) : Buffer.alloc(0), start);
  return {
    output: ordinal,
    content: slice.content,
    start_byte: slice.start,
    end_byte: slice.end,
    size: file.size,
    ...(slice.end < file.size ? { next_offset: slice.end } : {}),
  };
}

function describe(data: ToolOutput): string {
  const { extraction, state, error, progress, outputs, outputs_left_out: leftOut = 0 } = data;
  const lines = [`${extraction} is ${state}: ${progress.done} read, ${progress.failed} failed.`];
  if (error !== undefined) lines.push(`${error.code}: ${error.message}`);
  if (state === 'running')
    lines.push(`It is still running. Call read_extraction with extraction ${extraction} to check again.`);
  if (outputs.length > 1) {
    for (const { number, title, source_url, error: failure } of outputs)
      lines.push(`- ${number}: ${title ?? source_url ?? ''}${failure === undefined ? '' : ` (${failure.message})`}`);
    if (leftOut > 0)
      lines.push(`- and ${leftOut} more: set first_output to ${outputs.length + (outputs[0]?.number ?? 0)}`);
  }
  for (const { number, data_error: problem } of outputs)
    if (problem !== undefined) lines.push(`Output ${number} has no data: ${problem.message}`);
  if (data.data !== undefined) lines.push('', 'Data:', JSON.stringify(data.data), '');
  if (data.content !== undefined) {
    lines.push(`Output ${data.output}, bytes ${data.start_byte}-${data.end_byte} of ${data.size}:`, '', data.content);
    if (data.next_offset !== undefined)
      lines.push(
        '',
        `[There is more: call read_extraction with output ${data.output} and offset ${data.next_offset}.]`,
      );
  }
  return lines.join('\n');
}

export const extractionTools: readonly Tool[] = [extractUrl, extractFile, readExtraction];
