import { type HttpRequest, type HttpResponse, NodeFailure } from '../automations/nodes/kind.ts';
import type { NodeDomains } from '../automations/nodes/services.ts';
import { FetchError } from '../content/fetch/errors.ts';
import type { Attachment } from '../content/models/llm/messages.ts';
import { ParseError } from '../content/parse/types.ts';
import type { ExtractionDeps } from '../extractions/prepared.ts';
import { presentExtraction } from '../extractions/present.ts';
import { extractionCreateSchema } from '../extractions/schema.ts';
import type { ExtractionService } from '../extractions/service.ts';
import { essenceOf, isImage, isPicturable } from '../files/media-types.ts';
import { type FileLinks, presentFile } from '../files/present.ts';
import { fileCreateSchema } from '../files/schema.ts';
import type { FileService } from '../files/service.ts';
import { checkBody } from '../http/route/validation.ts';
import type { Knowledge } from '../knowledge/domain.ts';
import { presentIngestion, presentSearch } from '../knowledge/present.ts';
import { ingestSchema, searchSchema } from '../knowledge/schema.ts';
import { presentEntry } from '../kv/present.ts';
import { putKvBody } from '../kv/schema.ts';
import type { KvService } from '../kv/service.ts';
import type { Clock } from '../lib/clock.ts';
import { defined } from '../lib/defined.ts';
import { ApiError } from '../mcp/api-client.ts';
import type { createRunTools } from '../mcp/run-tools.ts';
import type { Caller } from '../tenancy/caller.ts';

type NodeDomainsDeps = FileLinks & {
  clock: Clock;
  kv: KvService;
  files: FileService;
  extractions: ExtractionService;
  knowledge: Knowledge;
  /** Calls the tools of the MCP endpoint. */
  runTools: ReturnType<typeof createRunTools>;
} & Pick<ExtractionDeps, 'fetcher' | 'parser'>;

/**
 * The operations of other domains that workflow nodes call: the services that the routes use, with the same body
 * checks.
 */
export function createNodeDomains(deps: NodeDomainsDeps): NodeDomains {
  const { kv, files, extractions, knowledge, runTools, clock } = deps;
  return {
    kv: {
      get: async (db, caller, key, user) => presentEntry(await kv.get(db, caller, key, user)),
      put: async (db, caller, key, input) =>
        presentEntry(await kv.put(db, caller, key, checkBody(putKvBody, input), undefined)),
      delete: (db, caller, key, user) => kv.delete(db, caller, key, user, undefined),
    },
    files: {
      async prepare(caller, body) {
        const { commit, discard } = await files.prepareUpload(caller, checkBody(fileCreateSchema, body));
        return { commit: async (tx) => presentFile(deps, await commit(tx), clock.now()), discard };
      },
      readAttachment: (caller, file, bytesMax) => readAttachment(files, caller, file, bytesMax),
    },
    operations: {
      describe: runTools.describe,
      async call(caller, name, given, of) {
        try {
          return await runTools.call(caller, name, given, of);
        } catch (error) {
          if (error instanceof ApiError) throw new NodeFailure(error.error.code, describeApiError(error));
          throw error;
        }
      },
    },
    extractions: {
      prepare: async (caller, body, signal) =>
        extractions.prepare(caller, checkBody(extractionCreateSchema, body), signal),
      async findEnd(caller, id) {
        const view = await extractions.get(caller, id);
        if (view.row.state === 'running') return undefined;
        if (view.row.state === 'done') return { output: await presentExtraction(deps, view, clock.now()) };
        const { code = 'extraction_failed', message = 'The extraction failed.' } = view.row.error ?? {};
        return { error: { code, message } };
      },
    },
    knowledge: {
      async ingest(tx, caller, source, body) {
        const { id } = await knowledge.ingestions.ingest(tx, caller, source, checkBody(ingestSchema, body), false);
        return { id };
      },
      async findEnd(caller, id) {
        const view = await knowledge.ingestions.get(caller, id);
        if (view.status === 'succeeded') return { output: presentIngestion(view) };
        if (view.status !== 'failed') return undefined;
        const { code = 'ingestion_failed', message = 'The ingestion failed.' } = view.error ?? {};
        return { error: { code, message } };
      },
      async search(caller, source, body) {
        const input = checkBody(searchSchema, body);
        return presentSearch(await knowledge.search.searchSource(caller, source, input), input.explain === true);
      },
    },
    fetch: (request) => fetchOutside(deps, request),
  };
}

/** The message, with the fields that it does not name. */
function describeApiError({ message, error: { fields } }: ApiError): string {
  const unnamed = fields.map(({ field, message: text }) => `${field}: ${text}`).filter((text) => text !== message);
  return [message, ...unnamed].join(' ');
}

/** The bytes of a file for a language model: a picture, or a PDF. */
async function readAttachment(files: FileService, caller: Caller, id: string, bytesMax: number): Promise<Attachment> {
  const { file } = await files.get(caller, id);
  const mediaType = essenceOf(file.contentType);
  if (!isPicturable(mediaType))
    throw new NodeFailure(
      'unsupported_file',
      `The file ${id} is of the type ${mediaType}. A model reads PNG, JPEG, GIF, WebP and PDF; extract others to text.`,
    );
  if (file.size > bytesMax)
    throw new NodeFailure('file_too_large', `The file ${id} exceeds what one message may carry.`);
  const bytes = await files.readRange(caller, id, 0, file.size);
  const kind = isImage(mediaType) ? 'image' : 'file';
  return { kind, mediaType, filename: file.filename, base64: bytes.toString('base64') };
}

const responseBytesMax = 1024 * 1024;

/** Sends one guarded request. If it is refused, fails or cannot be read, the node fails. */
async function fetchOutside(
  { fetcher, parser }: Pick<NodeDomainsDeps, 'fetcher' | 'parser'>,
  request: HttpRequest,
): Promise<HttpResponse> {
  const { lane, signal } = request;
  try {
    const { status, headers, bytes } = await fetcher.fetch(request.url, {
      method: request.method as 'GET',
      headers: request.headers,
      bytesMax: responseBytesMax,
      // The node's own timeout aborts the request.
      lane,
      signal,
      timeoutMs: Number.POSITIVE_INFINITY,
      ...defined({ body: request.body }),
    });
    const input = {
      bytes: await bytes(),
      contentEncoding: headers['content-encoding'] ?? '',
      decodedBytesMax: responseBytesMax,
      contentType: headers['content-type'] ?? '',
    };
    const body = input.bytes.byteLength === 0 ? '' : await parser.run<string>('body', input, { lane, signal });
    return { status, headers, body };
  } catch (error) {
    if (error instanceof FetchError) throw new NodeFailure(error.code, error.message);
    if (error instanceof ParseError) throw new NodeFailure('bad_response', 'The response could not be read.');
    throw error;
  }
}
