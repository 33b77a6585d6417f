import type { Static } from 'typebox';
import { type HttpRequest, type HttpResponse, NodeFailure } from './automations/nodes/kind.ts';
import type { NodeDomains } from './automations/nodes/services.ts';
import { FetchError } from './content/fetch/errors.ts';
import { ParseError } from './content/parse/types.ts';
import { presentExtraction } from './extractions/present.ts';
import type { extractionCreateSchema } from './extractions/schema.ts';
import { createExtractionService, type ExtractionDeps } from './extractions/service.ts';
import { type FileLinks, presentFile } from './files/present.ts';
import type { fileCreateSchema } from './files/schema.ts';
import { createFileService, type FileDeps } from './files/service.ts';
import type { Knowledge } from './knowledge/domain.ts';
import { presentIngestion, presentSearch } from './knowledge/present.ts';
import type { ingestSchema, searchSchema } from './knowledge/schema.ts';
import { presentEntry } from './kv/present.ts';
import { createKvService, type KvLimits } from './kv/service.ts';

/** The operations of other domains that nodes of workflows carry out, bodies and answers as the API has them. */
export function createNodeDomains(
  base: FileDeps & FileLinks & Pick<ExtractionDeps, 'parser' | 'fetcher'>,
  options: { kvLimits: KvLimits; knowledge: Knowledge },
): NodeDomains {
  const { knowledge } = options;
  const kv = (db: FileDeps['db']) => createKvService({ db, limits: options.kvLimits });
  const files = createFileService(base);
  const extractions = createExtractionService({ ...base, files });
  return {
    kv: {
      get: async (db, caller, key, user) => presentEntry(await kv(db).get(caller, key, user)),
      put: async (db, caller, key, input) => presentEntry(await kv(db).put(caller, key, input, undefined)),
      delete: (db, caller, key, user) => kv(db).delete(caller, key, user, undefined),
    },
    files: {
      async prepare(caller, body) {
        const { commit, discard } = await files.prepareUpload(caller, body as Static<typeof fileCreateSchema>);
        return { commit: async (tx) => presentFile(base, await commit(tx), base.clock.now()), discard };
      },
    },
    extractions: {
      prepare: (caller, body, signal) =>
        extractions.prepare(caller, body as Static<typeof extractionCreateSchema>, signal),
      async findEnd(caller, id) {
        const view = await extractions.get(caller, id);
        if (view.row.state === 'running') return undefined;
        if (view.row.state === 'done') return { output: await presentExtraction(base, view, base.clock.now()) };
        const { code = 'extraction_failed', message = 'The extraction failed.' } = view.row.error ?? {};
        return { error: { code, message } };
      },
    },
    knowledge: {
      async ingest(db, caller, source, body) {
        const { ingest } = knowledge.ingestionsWithin(db);
        const view = await ingest(caller, source, body as Static<typeof ingestSchema>);
        return { id: view.id };
      },
      async findEnd(caller, id) {
        const view = await knowledge.ingestions.get(caller, id);
        if (view.status === 'succeeded') return { output: presentIngestion(view) };
        if (view.status !== 'failed') return undefined;
        const { code = 'ingestion_failed', message = 'The ingestion failed.' } = view.error ?? {};
        return { error: { code, message } };
      },
      async search(caller, source, body) {
        const input = body as Static<typeof searchSchema>;
        const found = await knowledge.search.searchSource(caller, source, input);
        return presentSearch(found, input.explain === true);
      },
    },
    fetch: (request) => fetchOutside(base, request),
  };
}

const responseBytesMax = 1024 * 1024;

/** One guarded exchange. What it refuses, cannot reach or cannot read fails the node. */
async function fetchOutside(
  { fetcher, parser }: Pick<ExtractionDeps, 'fetcher' | 'parser'>,
  request: HttpRequest,
): Promise<HttpResponse> {
  const { lane, signal } = request;
  try {
    const { status, headers, bytes } = await fetcher.fetch(request.url, {
      method: request.method as 'GET',
      headers: request.headers,
      bytesMax: responseBytesMax,
      // The node's own timeout ends the exchange by its signal.
      ...{ lane, signal, timeoutMs: Number.POSITIVE_INFINITY },
      ...(request.body === undefined ? {} : { body: request.body }),
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
