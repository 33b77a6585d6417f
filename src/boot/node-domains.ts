import { type HttpRequest, type HttpResponse, NodeFailure } from '../automations/nodes/kind.ts';
import type { NodeDomains } from '../automations/nodes/services.ts';
import { FetchError } from '../content/fetch/errors.ts';
import { ParseError } from '../content/parse/types.ts';
import { presentExtraction } from '../extractions/present.ts';
import { extractionCreateSchema } from '../extractions/schema.ts';
import type { ExtractionDeps, ExtractionService } from '../extractions/service.ts';
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

type NodeDomainsDeps = FileLinks & {
  clock: Clock;
  kv: KvService;
  files: FileService;
  extractions: ExtractionService;
  knowledge: Knowledge;
} & Pick<ExtractionDeps, 'fetcher' | 'parser'>;

/**
 * The operations of other domains that workflow nodes call: the services that the routes use, with the same body
 * checks.
 */
export function createNodeDomains(deps: NodeDomainsDeps): NodeDomains {
  const { kv, files, extractions, knowledge, clock } = deps;
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
