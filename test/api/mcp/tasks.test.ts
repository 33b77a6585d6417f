import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { formatId, newUuid } from '../../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { htmlPage, responses, startSite } from '../../support/fixture-site.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { type McpResponse, opensUrls, sendMcp, takesTasks, tasksExtension } from '../../support/mcp.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* Tasks of the MCP endpoint: runs, extractions and ingestions that clients look at until they end. */

const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
const site = await startSite({ '/a': htmlPage('Page A'), '/slow': responses.silent });
after(async () => {
  await site.close();
  await server.close();
});
const { app, member, loner, otherApp } = await server.provision.world();
const automations = new AutomationsClient(server, app);
const asKey = { key: app.secretKey };
await automations.createAutomation({
  lookup_key: 'waits',
  workflow: graphOf(
    { id: 'wait', kind: 'wait_for_signal', name: 'go', on_success: 'done' },
    { id: 'done', kind: 'complete', result: '{{$nodes.wait}}' },
  ),
});

type Who = { key?: string; token?: string };
type Task = Record<string, unknown> & { taskId: string; status: string; statusMessage: string };

const send = (method: string, params: Record<string, unknown>, who: Who = asKey, capabilities?: object) =>
  sendMcp(server.baseUrl, who, method, params, capabilities as Record<string, unknown>);
const call = (name: string, args: object, who: Who = asKey, capabilities?: object) =>
  send('tools/call', { name, arguments: args }, who, capabilities);
const taskOf = ({ result, error }: McpResponse): Task => {
  assert.ok(result, JSON.stringify(error));
  return result as Task;
};
const look = async (taskId: string, who: Who = asKey, capabilities?: object) =>
  taskOf(await send('tasks/get', { taskId }, who, capabilities));
const untilOver = async (taskId: string): Promise<Task> => {
  await until(async () => (await look(taskId)).status !== 'working');
  return look(taskId);
};

test('a run that takes long is a task, whose result is that of the call', async () => {
  const created = taskOf(await call('invoke_automation', { automation: 'waits', wait_seconds: 1 }));
  assert.deepEqual([created.resultType, created.status, created.ttlMs], ['task', 'working', null]);
  assert.match(created.taskId, /^atr_/);
  await automations.waitUntilWaiting(created.taskId);
  const { created_at, updated_at } = (await automations.run(created.taskId)) as unknown as Record<string, string>;
  const { resultType, pollIntervalMs, _meta, ...task } = await look(created.taskId);
  assert.deepEqual(task, {
    ...{ taskId: created.taskId, status: 'working', statusMessage: 'The run is running.', ttlMs: null },
    ...{ createdAt: created_at, lastUpdatedAt: updated_at },
  });
  assert.deepEqual([resultType, Number(pollIntervalMs) >= 1_000], ['complete', true]);

  await automations.call('POST', `/automation_runs/${created.taskId}/signal`, { name: 'go', payload: 7 });
  const { status, result } = await untilOver(created.taskId);
  const { structuredContent } = result as { structuredContent: Record<string, unknown> };
  assert.deepEqual([status, structuredContent.status, structuredContent.run], ['completed', 'completed', task.taskId]);
  const read = taskOf(await call('read_run', { run: task.taskId })).structuredContent as Record<string, unknown>;
  const { journal: _journal, has_more: _hasMore, resume_cursor: _cursor, ...run } = read;
  assert.deepEqual(structuredContent, run);
});

test('the official client reads a task', async () => {
  const { id } = await automations.invoke('waits');
  const options = { versionNegotiation: { mode: 'auto' }, capabilities: takesTasks } as const;
  const client = new Client({ name: 'test', version: '1' }, options as never);
  const requestInit = { headers: { 'x-api-key': app.secretKey } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.baseUrl}/mcp`), { requestInit }));
  assert.deepEqual(client.getServerCapabilities()?.extensions, { [tasksExtension]: {} });
  const anything = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } } as const;
  const task = (await client.request({ method: 'tasks/get', params: { taskId: id } }, anything)) as Task;
  assert.deepEqual([task.taskId, task.status], [id, 'working']);
  await client.close();
});

test('what ends in time, and what the caller does not want to wait for, is not a task', async () => {
  const quick = await automations.createAutomation({ workflow: graphOf({ id: 'a', kind: 'transform', value: 1 }) });
  const done = taskOf(await call('invoke_automation', { automation: quick.id }));
  assert.deepEqual([done.resultType, (done.structuredContent as Task).status], ['complete', 'completed']);
  const started = taskOf(await call('invoke_automation', { automation: 'waits', wait_seconds: 0 }));
  assert.equal(started.resultType, 'complete');
  assert.match(String((started.structuredContent as Record<string, unknown>).run), /^atr_/);
});

test('a client that does not take tasks gets none, and may not ask for one', async () => {
  const waited = taskOf(await call('invoke_automation', { automation: 'waits', wait_seconds: 1 }, asKey, {}));
  assert.equal(waited.resultType, 'complete');
  const { run, status } = waited.structuredContent as Record<string, string>;
  assert.notEqual(status, 'completed');
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    const { error, status } = await send(method, { taskId: run }, asKey, {});
    const wanted = { requiredCapabilities: { extensions: { [tasksExtension]: {} } } };
    assert.deepEqual([status, error?.code, error?.data], [400, -32021, wanted], method);
  }
  const old = await server.api<McpResponse>('POST', '/mcp', {
    ...asKey,
    headers: { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' },
    body: { jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { taskId: run } },
  });
  assert.match(old.text, /-32601/);
  assert.equal((await send('tasks/result', { taskId: run })).error?.code, -32601);
  assert.equal((await send('tasks/list', {})).error?.code, -32601);
});

test('a run that waits for people asks the client to open the page where they answer', async () => {
  await automations.createAutomation({
    lookup_key: 'book',
    workflow: graphOf(
      { id: 'ask', kind: 'approve', question: 'Book it?', users: [member.id], on_success: 'done' },
      { id: 'done', kind: 'complete', result: 'booked' },
    ),
  });
  const created = taskOf(await call('invoke_automation', { automation: 'book', wait_seconds: 60 }, asKey, opensUrls));
  assert.deepEqual([created.resultType, created.status], ['task', 'input_required']);
  const asked = await look(created.taskId, asKey, opensUrls);
  const [[approval, request] = []] = Object.entries(asked.inputRequests as Record<string, Record<string, unknown>>);
  const url = `${server.baseUrl}/console/approvals?approval=${approval}`;
  assert.match(String(approval), /^apr_/);
  const { message, ...params } = (request?.params ?? {}) as Record<string, unknown>;
  assert.deepEqual([request?.method, params], ['elicitation/create', { mode: 'url', url }]);
  assert.match(String(message), /approve/);
  const told = await look(created.taskId);
  assert.deepEqual([told.status, told.inputRequests], ['working', undefined]);
  assert.ok(told.statusMessage.includes(url), told.statusMessage);

  const inputResponses = { [approval ?? '']: { action: 'accept', content: { ok: true } } };
  const updated = await send('tasks/update', { taskId: created.taskId, inputResponses }, asKey, opensUrls);
  assert.equal(updated.result?.resultType, 'complete');
  assert.equal((await look(created.taskId, asKey, opensUrls)).status, 'input_required');

  const answer = { token: member.token, body: { data: { ok: true } } };
  assert.equal((await server.api('POST', `/api/v1/approvals/${approval}/answer`, answer)).status, 200);
  const { result } = await untilOver(created.taskId);
  assert.equal((result as { structuredContent: Record<string, unknown> }).structuredContent.result, 'booked');
});

test('extractions and ingestions are tasks, and what cannot be cancelled is left alone', async () => {
  const created = taskOf(await call('extract_url', { url: `${site.origin}/slow`, wait_seconds: 1 }));
  assert.match(created.taskId, /^ext_/);
  assert.match((await look(created.taskId)).statusMessage, /0 of 1 pages read/);
  assert.equal((await send('tasks/cancel', { taskId: created.taskId })).result?.resultType, 'complete');
  assert.equal((await send('tasks/get', { taskId: created.taskId })).error?.code, -32602);

  const extracted = taskOf(await call('extract_url', { url: `${site.origin}/a`, wait_seconds: 60 }, asKey, {}));
  const { extraction } = extracted.structuredContent as Record<string, string>;
  const { status, result } = await look(extraction ?? '');
  assert.equal(status, 'completed');
  assert.deepEqual(result, { content: extracted.content, structuredContent: extracted.structuredContent });

  const source = await knowledgeOf(server, asKey).createSource({ user: member.id });
  const ingested = taskOf(await call('ingest', { source, text: 'Otters.', wait_seconds: 60 }));
  const { ingestion } = ingested.structuredContent as Record<string, string>;
  assert.equal((await send('tasks/cancel', { taskId: ingestion })).result?.resultType, 'complete');
  const task = await look(ingestion ?? '');
  assert.equal(task.status, 'completed');
  assert.deepEqual(task.result, { content: ingested.content, structuredContent: ingested.structuredContent });
});

test('a task is cancelled by those who may cancel its run, and missing for those who do not see it', async () => {
  const created = taskOf(await call('invoke_automation', { automation: 'waits', wait_seconds: 1 }, member));
  const { taskId } = created;
  assert.equal((await look(taskId, member)).status, 'working');
  const missing = await send('tasks/get', { taskId: formatId('automationRun', newUuid()) });
  assert.equal(missing.error?.code, -32602);
  const key = await server.api<{ full_key: string }>('POST', '/api/v1/keys', {
    ...asKey,
    body: { type: 'secret', name: 'files', scopes: ['files'] },
  });
  for (const who of [loner, { key: otherApp.secretKey }, { key: key.body.full_key }])
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
      assert.deepEqual((await send(method, { taskId }, who)).error, missing.error, method);
  for (const other of ['', 'fil_1', 'atr_', `${taskId}/journal`, `${taskId}?x`])
    assert.deepEqual((await send('tasks/get', { taskId: other })).error, missing.error, other);
  assert.equal((await send('tasks/get', { taskId: 5 })).error?.code, -32602);

  const refused = await send('tasks/cancel', { taskId }, member);
  assert.equal(refused.error?.code, -32600, JSON.stringify(refused));
  assert.equal((await look(taskId, member)).status, 'working');
  assert.equal((await send('tasks/cancel', { taskId })).result?.resultType, 'complete');
  assert.deepEqual([(await look(taskId, member)).status, (await look(taskId)).result], ['cancelled', undefined]);
  // Of a run that has ended, a repeated request changes nothing.
  assert.equal((await send('tasks/cancel', { taskId })).result?.resultType, 'complete');
});
