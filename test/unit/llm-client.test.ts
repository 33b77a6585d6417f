import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { openAiChat } from '../../src/content/models/llm/client.ts';
import { LlmError } from '../../src/content/models/llm/messages.ts';
import { startLanguageModel } from '../support/language-model.ts';

const model = await startLanguageModel();
after(() => model.close());
beforeEach(() => {
  model.requests.length = 0;
});

/** Any more requests than this have no bound. */
const requestsMax = 30;

async function complete(): Promise<LlmError> {
  const deadline = new AbortController();
  const client = openAiChat({
    ...{ baseUrl: model.url, apiKey: undefined, model: 'small' },
    sleep: async () => {
      if (model.requests.length >= requestsMax) deadline.abort(new Error(`${requestsMax} requests`));
      deadline.signal.throwIfAborted();
    },
  });
  const messages = [{ role: 'user' as const, content: 'Where?' }];
  const ended = client.complete({ messages, tokens: 20, schema: { type: 'object' }, signal: deadline.signal });
  const error = await ended.then(
    () => assert.fail('completed'),
    (error: unknown) => error,
  );
  assert.ok(error instanceof LlmError, String(error));
  return error;
}

test('a server that refuses members and then fails is tried three times, not for ever', async () => {
  model.script = (request) => {
    if (request.max_tokens !== undefined) return { status: 400, body: 'use max_completion_tokens' };
    if (request.stream_options !== undefined) return { status: 400, body: 'stream_options is unknown' };
    if (request.response_format?.type === 'json_schema') return { status: 400, body: 'no json_schema' };
    return { status: 503 };
  };
  assert.equal((await complete()).code, 'llm_failed');
  assert.equal(model.requests.length, 6);
});

test('a server that refuses every form of a request ends it', async () => {
  model.script = () => ({ status: 400, body: 'max_completion_tokens, stream_options, response_format: unknown' });
  assert.equal((await complete()).code, 'llm_failed');
  assert.ok(model.requests.length <= 6, `${model.requests.length} requests`);
});
