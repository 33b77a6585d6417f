import type { FileLinks } from '../files/present.ts';
import { bodyBudgets } from '../http/body/budgets.ts';
import { everyCaller } from '../http/route/access.ts';
import { sendList } from '../http/route/lists.ts';
import { pageOf, pageQuery, readPage } from '../http/route/pages.ts';
import { type Api, ref } from '../http/route/route.ts';
import type { StreamHub } from '../http/streams/sse.ts';
import type { Clock } from '../lib/clock.ts';
import { Type } from '../lib/type.ts';
import { presentExtraction, presentOutputs, presentSummary, presentWithoutOutputs } from './present.ts';
import { extractionCreateSchema, extractionOutputSchema, extractionSchema } from './schema.ts';
import type { ExtractionService } from './service.ts';
import { extractionTopic } from './topic.ts';

const tag = 'Extractions';

const params = Type.Object({ extraction: Type.String() });

type Deps = FileLinks & { clock: Clock; extractions: ExtractionService; streams: StreamHub };

export function registerExtractionRoutes(api: Api, deps: Deps): void {
  registerExtractions(api, deps);
  registerOneExtraction(api, deps);
}

function registerExtractions(api: Api, deps: Deps): void {
  const { extractions, clock } = deps;
  api.app(everyCaller, {
    method: 'POST',
    path: '/api/v1/extractions',
    operationId: 'createExtraction',
    rateGroup: 'extractions',
    tag,
    summary: 'Turn a document, a page or a site into Markdown',
    description:
      'A document is extracted before the response (201). URLs, and requests with a `schema`, are processed in the background (202): poll the extraction, or follow its stream.',
    body: extractionCreateSchema,
    budget: bodyBudgets.map,
    responses: { 201: ref(extractionSchema), 202: ref(extractionSchema) },
    handler: async ({ caller, body, reply }) => {
      const created = await extractions.create(caller, body);
      reply.code(created.row.state === 'running' ? 202 : 201);
      return presentExtraction(deps, created, clock.now());
    },
  });
  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/extractions',
    operationId: 'listExtractions',
    tag,
    summary: 'List extractions',
    description: 'Newest first, without their outputs.',
    query: Type.Object({
      ...pageQuery,
      kind: Type.Optional(Type.Enum(['document', 'link', 'site'])),
      state: Type.Optional(Type.Enum(['running', 'done', 'failed'])),
      agent: Type.Optional(Type.String({ description: 'agt_…' })),
    }),
    responses: { 200: pageOf(ref(extractionSchema)) },
    handler: ({ caller, query }) =>
      readPage(query, (request) => extractions.list(caller, query, request), presentSummary),
  });
}

function registerOneExtraction(api: Api, deps: Deps): void {
  const { extractions, clock, streams } = deps;
  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/extractions/:extraction',
    operationId: 'getExtraction',
    tag,
    summary: 'Get an extraction',
    description:
      'Its state, counts and outputs, each with a signed URL of its file. Poll until `state` is `done` or `failed`, or follow the stream. 404 if the caller may not see it.',
    params,
    responses: { 200: ref(extractionSchema) },
    handler: async ({ caller, params, reply }) => {
      const view = await extractions.get(caller, params.extraction);
      const outputs = presentOutputs(deps, view, clock.now());
      return sendList(reply, ref(extractionOutputSchema), outputs, presentWithoutOutputs(view), 'outputs');
    },
  });
  api.app(everyCaller, {
    method: 'DELETE',
    path: '/api/v1/extractions/:extraction',
    operationId: 'deleteExtraction',
    tag,
    summary: 'Cancel and delete an extraction',
    description: 'The files that it wrote are kept.',
    params,
    responses: { 204: null },
    handler: ({ caller, params: { extraction } }) => extractions.remove(caller, extraction),
  });
  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/extractions/:extraction/stream',
    operationId: 'streamExtraction',
    protocol: 'events',
    tag,
    summary: 'Follow an extraction',
    description: 'Server-Sent Events: `extraction_update` with the extraction, without its outputs, at each change.',
    params,
    responses: { 200: ref(extractionSchema) },
    handler: async ({ caller, params: { extraction }, request, reply }) =>
      streams.open(request, reply, extractionTopic, caller.appId, await extractions.follow(caller, extraction)),
  });
}
