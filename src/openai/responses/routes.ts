import { abortedWithReader, seesDocuments } from '../../answers/readers.ts';
import { textBudget } from '../../http/body/budgets.ts';
import { everyCaller } from '../../http/route/access.ts';
import { type Api, ref } from '../../http/route/route.ts';
import type { StreamHub } from '../../http/streams/sse.ts';
import type { ServerEvent } from '../../http/streams/work-stream.ts';
import { AppError } from '../../lib/errors.ts';
import { Type } from '../../lib/type.ts';
import { common as shared } from '../common.ts';
import { ResponseEvents } from './events.ts';
import type { ResponseDeps } from './plan.ts';
import { pageOfInput, responseId } from './present.ts';
import * as schema from './schema.ts';
import { createResponseService } from './service.ts';

const common = { ...shared, area: 'knowledge' } as const;
const path = '/v1/responses';
const one = `${path}/:response`;
const params = Type.Object({ response: Type.String() });

/** Responses of a model for OpenAI's clients. */
export function registerResponseRoutes(api: Api, deps: ResponseDeps & { streams: StreamHub }): void {
  const service = createResponseService(deps);
  registerCreation(api, service, deps);
  api.app(everyCaller, {
    ...common,
    method: 'GET',
    path: one,
    operationId: 'openaiGetResponse',
    summary: 'Get a stored response',
    description:
      'A user sees their own. 404 even if a document that it was written from is no longer visible to the caller, or is deleted.',
    params,
    responses: { 200: ref(schema.responseSchema) },
    handler: async ({ caller, params: { response: id } }) => (await service.get(caller, id)).response,
  });
  api.app(everyCaller, {
    ...common,
    method: 'DELETE',
    path: one,
    operationId: 'openaiDeleteResponse',
    summary: 'Delete a stored response',
    description: 'Responses that continue it can no longer be continued.',
    params,
    responses: { 200: schema.responseDeletedSchema },
    handler: async ({ caller, params: { response: id } }) => ({
      id: responseId(await service.remove(caller, id)),
      object: 'response.deleted' as const,
      deleted: true as const,
    }),
  });
  api.app(everyCaller, {
    ...common,
    method: 'GET',
    path: `${one}/input_items`,
    operationId: 'openaiListInputItems',
    summary: 'List the input of a stored response',
    description: 'The messages that were sent for it, without those of the responses that it continues.',
    params,
    query: schema.inputItemsQuery,
    responses: { 200: schema.inputItemsSchema },
    handler: async ({ caller, params: { response: id }, query }) => pageOfInput(await service.get(caller, id), query),
  });
}

function registerCreation(
  api: Api,
  service: ReturnType<typeof createResponseService>,
  { streams, knowledge }: ResponseDeps & { streams: StreamHub },
): void {
  api.app(everyCaller, {
    ...common,
    method: 'POST',
    path,
    operationId: 'openaiCreateResponse',
    rateGroup: 'invocations',
    // A response depends on what the caller may read at the time.
    idempotency: 'repeated',
    summary: 'Create a response',
    description:
      'Has a language model respond to the input. With the tool `file_search`, vector stores are searched first, and the model writes from the passages found, with citations. 400 names a parameter that is not supported.',
    body: schema.responseCreateSchema,
    budget: textBudget(schema.responseLimits.inputCharactersMax),
    responses: { 200: ref(schema.responseSchema) },
    handler: async ({ caller, body, request, reply }) => {
      if (body.stream !== true)
        return service.create(caller, body, { signal: abortedWithReader(reply), onFound() {}, events: undefined });
      const events: ResponseEvents = new ResponseEvents((event) => stream.send(event));
      const stream = streams.openWork(request, reply, caller.appId, (error): ServerEvent => {
        if (!(error instanceof AppError)) request.log.error({ err: error }, 'A streamed response failed');
        return events.describe(error);
      });
      return stream.run(async () => {
        await service.create(caller, body, {
          signal: stream.signal,
          onFound: (ids) => stream.endUnless(seesDocuments(knowledge, ids)),
          events,
        });
      });
    },
  });
}
