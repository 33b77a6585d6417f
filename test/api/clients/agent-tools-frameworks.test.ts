import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { fakeModel } from '@langchain/core/testing';
import { generateText, isStepCount } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { quarryTools as aiTools } from '../../../clients/tools/src/ai.ts';
import type { ToolName, ToolOptions } from '../../../clients/tools/src/index.ts';
import { quarryTools as langchainTools } from '../../../clients/tools/src/langchain.ts';
import { Quarry } from '../../../clients/typescript/src/index.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { htmlPage, startSite } from '../../support/fixture-site.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';

/*
 * The same conversation in the Vercel AI SDK and in LangChain.js, whose own test models call each tool once: each result
 * reaches the model as text and the program as data, each failure as a message.
 */

const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
const site = await startSite({ '/': htmlPage('Home'), '/slow': () => {} });
after(async () => {
  await server.close();
  await site.close();
});
const { app, org, member, loner } = await server.provision.world();
const library = knowledgeOf(server, { key: app.secretKey });
const source = await library.createSource({ org: org.id });
const document = await library.push(source, 'Otters hold hands.', { title: 'Otters' });
const hidden = await library.push(await library.createSource({ user: loner.id }), 'Only the loner knows of otters.');
const double = { id: 'double', kind: 'complete', result: { twice: '{{$.n * 2}}' } };
await new AutomationsClient(server, app).createAutomation({ lookup_key: 'double', workflow: graphOf(double) });
const client = new Quarry({ baseUrl: server.baseUrl, key: app.publishableKey, token: member.token });

const options = {
  tools: ['search', 'read', 'extract', 'kv_get', 'kv_put', 'kv_list', 'kv_delete', 'run'],
  automations: { double: 'Doubles n.' },
} satisfies ToolOptions<ToolName>;

type Call = { name: ToolName; args: Record<string, unknown> };
/** What the model asks for in turn, and what it reads. */
const conversation: [Call, RegExp][] = [
  [
    { name: 'search', args: { query: 'otters' } },
    /^\[1\] Otters, cdo_\w+, lines 1-1, bytes 0-18\nOtters hold hands\.\s*$/,
  ],
  [{ name: 'read', args: { id: document } }, /^Otters, cdo_\w+, bytes 0-18 of 18:\n\nOtters hold hands\.$/],
  [{ name: 'extract', args: { url: `${site.origin}/` } }, /^ext_\w+ is done: 1 of 1 pages read, 0 failed\.[\s\S]*Home/],
  [{ name: 'kv_put', args: { key: 'seen', value: 'otters' } }, /^Stored seen\.$/],
  [{ name: 'kv_get', args: { key: 'seen' } }, /^otters$/],
  [{ name: 'kv_list', args: {} }, /^1 entries\.\nseen: otters$/],
  [{ name: 'kv_delete', args: { key: 'seen' } }, /^Deleted seen\.$/],
  [{ name: 'run', args: { automation: 'double', payload: { n: 21 } } }, /^atr_\w+ is completed\.\n\{"twice":42\}$/],
];
/** What goes wrong, as the model reads it. */
const failures: [Call, RegExp][] = [
  [
    { name: 'read', args: { id: hidden } },
    /does not exist, or you may not see it \(404 not_found\)\. Check the id or key\.$/,
  ],
  [{ name: 'extract', args: { url: 'http://10.0.0.1/' } }, /url.*\(422 invalid_parameters\)\. Correct the arguments\./],
];

/** A test model of the AI SDK that makes these calls one after the other, then ends. */
function callingModel(calls: readonly Call[]) {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  const steps = calls.map(({ name, args }, at) => ({
    content: [{ type: 'tool-call' as const, toolCallId: `call-${at}`, toolName: name, input: JSON.stringify(args) }],
    finishReason: { unified: 'tool-calls' as const, raw: undefined },
    ...{ usage, warnings: [] },
  }));
  const end = {
    content: [{ type: 'text' as const, text: 'Done.' }],
    finishReason: { unified: 'stop' as const, raw: undefined },
    ...{ usage, warnings: [] },
  };
  const all = [...steps, end];
  return new MockLanguageModelV4({
    doGenerate: async ({ abortSignal }) => {
      abortSignal?.throwIfAborted();
      return all.shift() ?? end;
    },
  });
}

/** The results of tools in the last prompt that an AI SDK model was sent. */
function promptResults(model: MockLanguageModelV4) {
  const messages = model.doGenerateCalls.at(-1)?.prompt ?? [];
  return messages.flatMap(({ role, content }) =>
    role === 'tool' ? content.flatMap((part) => (part.type === 'tool-result' ? [part.output] : [])) : [],
  );
}

test('AI SDK: generateText calls each tool, and the model reads each result as text', async () => {
  const model = callingModel(conversation.map(([call]) => call));
  const { steps, text } = await generateText({
    ...{ model, prompt: 'Tell me about otters.', tools: aiTools(client, options) },
    stopWhen: isStepCount(conversation.length + 1),
  });
  assert.equal(text, 'Done.');
  const results = promptResults(model);
  assert.equal(results.length, conversation.length);
  for (const [at, [{ name }, expected]] of conversation.entries()) {
    const result = results[at];
    assert.ok(result?.type === 'text', `${name}: ${JSON.stringify(result)}`);
    assert.match(result.value, expected, name);
  }
  // The program gets data, with the types of each tool.
  const found = steps[0]?.toolResults[0];
  assert.ok(found?.toolName === 'search' && !found.dynamic);
  assert.equal(found.output.passages[0]?.document, document);
});

test('AI SDK: the model reads the error, and invalid arguments reach no tool', async () => {
  const wrong: [Call, RegExp] = [{ name: 'read', args: { path: 'x' } }, /Invalid input for tool read/];
  const all = [...failures, wrong];
  const model = callingModel(all.map(([call]) => call));
  await generateText({
    ...{ model, prompt: 'Go.', tools: aiTools(client, options) },
    stopWhen: isStepCount(all.length + 1),
  });
  const results = promptResults(model);
  for (const [at, [{ name }, expected]] of all.entries()) {
    const result = results[at];
    assert.ok(result?.type === 'error-text', JSON.stringify(result));
    assert.match(result.value, expected, name);
  }
});

test('AI SDK: aborting generateText ends a tool that waits', async () => {
  const controller = new AbortController();
  const model = callingModel([{ name: 'extract', args: { url: `${site.origin}/slow` } }]);
  const generating = generateText({
    ...{ model, prompt: 'Go.', tools: aiTools(client, options), stopWhen: isStepCount(2) },
    abortSignal: controller.signal,
  });
  await Promise.all([
    assert.rejects(generating, { name: 'AbortError' }),
    site.waitForRequest('/slow').then(() => controller.abort()),
  ]);
});

/** Answers a fake model's tool calls with the tools until it makes none, as an agent does. */
async function converse(calls: readonly Call[]): Promise<BaseMessage[]> {
  const tools = langchainTools(client, options);
  const model = fakeModel();
  for (const [at, call] of calls.entries()) model.respondWithTools([{ ...call, id: `call-${at}` }]);
  const bound = model.respond(new AIMessage('Done.')).bindTools(tools);
  const messages: BaseMessage[] = [new HumanMessage('Tell me about otters.')];
  for (;;) {
    const answer = await bound.invoke(messages);
    messages.push(answer);
    const asked = (answer as AIMessage).tool_calls ?? [];
    if (asked.length === 0) return messages;
    for (const call of asked) {
      const tool = tools.find(({ name }) => name === call.name);
      messages.push((await tool?.invoke({ ...call, type: 'tool_call' })) as ToolMessage);
    }
  }
}

test('LangChain: a model calls each tool; messages hold text for it and data for the program', async () => {
  const messages = await converse(conversation.map(([call]) => call));
  const results = messages.filter((message) => message instanceof ToolMessage);
  assert.equal(results.length, conversation.length);
  for (const [at, [{ name }, expected]] of conversation.entries()) {
    const { content, status, name: named } = results[at] as ToolMessage;
    assert.deepEqual([named, status], [name, 'success']);
    assert.match(content as string, expected);
  }
  const { artifact } = results[0] as ToolMessage;
  assert.equal((artifact as { passages: { document: string }[] }).passages[0]?.document, document);
});

test('LangChain: a failure is a message with status error, or an exception without a tool call', async () => {
  const results = (await converse(failures.map(([call]) => call))).filter((each) => each instanceof ToolMessage);
  for (const [at, [, expected]] of failures.entries()) {
    const { content, status, tool_call_id: id } = results[at] as ToolMessage;
    assert.deepEqual([status, id], ['error', `call-${at}`]);
    assert.match(content as string, expected);
  }
  const [read] = langchainTools(client, { tools: ['read'] });
  await assert.rejects(read?.invoke({ id: hidden }) ?? Promise.resolve(), { name: 'ToolError', code: 'not_found' });
  await assert.rejects(read?.invoke({ path: 'x' }) ?? Promise.resolve(), /did not match expected schema/);
});

test('LangChain: the signal of a call ends a tool that waits', async () => {
  const [extract] = langchainTools(client, { tools: ['extract'] });
  const controller = new AbortController();
  const count = site.requestCount('/slow');
  const waiting = extract?.invoke({ url: `${site.origin}/slow?again` }, { signal: controller.signal });
  await Promise.all([
    assert.rejects(waiting ?? Promise.resolve(), { name: 'AbortError' }),
    site.waitForRequest('/slow?again').then(() => controller.abort()),
  ]);
  assert.equal(site.requestCount('/slow'), count);
});
