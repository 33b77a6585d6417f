import { Type } from 'typebox';
import type { Clock } from '../clock.ts';
import type { FileLinks } from '../files/present.ts';
import { type Api, ref } from '../http/route.ts';
import { presentExtraction } from './present.ts';
import { extractionCreateSchema, extractionSchema } from './schema.ts';
import type { ExtractionService } from './service.ts';

const tag = 'Extractions';
const callers = ['user', 'server', 'developer'] as const;

export function registerExtractionRoutes(
  api: Api,
  deps: FileLinks & { clock: Clock; extractions: ExtractionService },
): void {
  const { extractions, clock } = deps;
  api.app(callers, {
    method: 'POST',
    path: '/api/v1/extractions',
    operationId: 'createExtraction',
    tag,
    summary: 'Turn a document, a page or a site into Markdown',
    description:
      'A document is done in the answer (201). A URL is crawled in the background (202): poll the extraction.',
    body: extractionCreateSchema,
    responses: { 201: ref(extractionSchema), 202: ref(extractionSchema) },
    handler: async ({ caller, body, reply }) => {
      const created = await extractions.create(caller, body);
      reply.code(created.row.state === 'running' ? 202 : 201);
      return presentExtraction(deps, created, clock.now());
    },
  });
  api.app(callers, {
    method: 'GET',
    path: '/api/v1/extractions/:extraction',
    operationId: 'getExtraction',
    tag,
    summary: 'Get an extraction',
    params: Type.Object({ extraction: Type.String() }),
    responses: { 200: ref(extractionSchema) },
    handler: async ({ caller, params }) =>
      presentExtraction(deps, await extractions.get(caller, params.extraction), clock.now()),
  });
}
