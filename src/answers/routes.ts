import { textBudget } from '../http/body/budgets.ts';
import { everyCaller } from '../http/route/access.ts';
import { type Api, ref } from '../http/route/route.ts';
import type { StreamHub } from '../http/streams/sse.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError } from '../lib/errors.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { type AnswerDeps, answer } from './answer.ts';
import { abortedWithReader, seesDocuments } from './readers.ts';
import { answerCreateSchema, answerSchema, quoteLimits, signedStatementSchema, verifySchema } from './schema.ts';
import { verifyCitations } from './verify.ts';

const tag = 'Answers';

type Deps = AnswerDeps & { streams: StreamHub; secrets: Secrets; clock: Clock };

/** Texts from sources whose quotes are checked. */
export function registerAnswerRoutes(api: Api, deps: Deps): void {
  api.app(everyCaller, {
    method: 'POST',
    path: '/api/v1/citations/verify',
    operationId: 'verifyCitations',
    rateGroup: 'search',
    idempotency: 'repeated',
    tag,
    summary: 'Check the quotes of a text',
    description:
      'Looks for each quote in documents that the caller may read, and returns whether a document says it, and where. The result is signed with the key of the audit log: `quarry verify --citations` checks it.',
    body: verifySchema,
    budget: textBudget(4 * quoteLimits.textCharactersMax),
    responses: { 200: ref(signedStatementSchema) },
    handler: ({ caller, body }) => verifyCitations(deps, caller, body),
  });
  api.app(everyCaller, {
    method: 'POST',
    path: '/api/v1/answers',
    operationId: 'createAnswer',
    rateGroup: 'invocations',
    audit: 'none',
    tag,
    summary: 'Answer a question from sources',
    description:
      'Searches, has a language model write from the passages found, and checks each sentence and each quote. Nothing is stored. If no model is configured, returns the best passages. 503 if the model is down or ends in the middle; in a stream that has begun, an event `error`.',
    body: answerCreateSchema,
    idempotency: 'repeated',
    responses: { 200: ref(answerSchema) },
    handler: async ({ caller, body, request, reply }) => {
      if (body.stream !== true)
        return answer(deps, caller, body, { signal: abortedWithReader(reply), onFound() {}, async send() {} });
      const stream = deps.streams.openWork(request, reply, caller.appId, (error) => {
        const isKnown = error instanceof AppError;
        if (!isKnown) request.log.error({ err: error }, 'A streamed answer failed');
        const { code, message } = isKnown ? error : internal;
        return { event: 'error', data: { error: { code, message } } };
      });
      return stream.run(async () => {
        const data = await answer(deps, caller, body, {
          signal: stream.signal,
          onFound: (ids) => stream.endUnless(seesDocuments(deps.knowledge, ids)),
          send: (event) => stream.send(event),
        });
        await stream.send({ event: 'answer', data });
      });
    },
  });
}

const internal = { code: 'internal_error', message: 'The server failed to process the request.' };
