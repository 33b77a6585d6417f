import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { readProjectFile } from '../support/source.ts';

type Response = { content?: Record<string, unknown>; headers?: Record<string, unknown> };
type Operation = {
  operationId: string;
  description?: string;
  parameters?: { name: string; in: string }[];
  responses: Record<string, Response>;
};
type OpenApi = { paths: Record<string, Record<string, Operation>> };

const source = readProjectFile('openapi.json');
const document = JSON.parse(source) as OpenApi;

/** What Redocly's recommended rules call an error. */
async function findErrors(text: string): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended'] });
  const problems = await lintFromString({ source: text, absoluteRef: 'openapi.json', config });
  return problems
    .filter(({ severity }) => severity === 'error')
    .map(({ ruleId, message, location }) => `${ruleId} at ${location[0]?.pointer}: ${message}`);
}

test('Redocly finds no error in openapi.json', async () => {
  assert.deepEqual(await findErrors(source), []);

  const broken = structuredClone(document);
  for (const operation of Object.values(broken.paths['/api/v1/files/{file}'] ?? {})) operation.parameters = [];
  assert.match((await findErrors(JSON.stringify(broken))).join('\n'), /path-parameters-defined/);
});

function operation(id: string): Operation {
  const found = Object.values(document.paths)
    .flatMap((operations) => Object.values(operations))
    .find(({ operationId }) => operationId === id);
  assert.ok(found, id);
  return found;
}

const mediaTypes = (id: string, status = '200') => Object.keys(operation(id).responses[status]?.content ?? {});
const requestHeaders = (id: string) =>
  (operation(id).parameters ?? []).flatMap(({ name, in: place }) => (place === 'header' ? [name] : []));

test('streams, contents and metrics have their media types', () => {
  for (const id of ['streamAutomationRun', 'streamExtraction'])
    assert.deepEqual(mediaTypes(id), ['text/event-stream'], id);
  for (const id of ['downloadFile', 'fetchFileAvatar', 'fetchFileOrgLogo', 'fetchSharedFile'])
    for (const status of ['200', '206']) assert.deepEqual(mediaTypes(id, status), ['*/*'], id);
  assert.deepEqual(mediaTypes('getMetrics'), ['text/plain']);
  assert.deepEqual(mediaTypes('callMcp'), ['application/json', 'text/event-stream']);
});

test('conditional and range headers, entity tags, rate limits and retries are declared', () => {
  assert.deepEqual(requestHeaders('putKvEntry'), ['If-Match', 'If-None-Match']);
  assert.deepEqual(requestHeaders('deleteKvEntry'), ['If-Match', 'If-None-Match']);
  assert.deepEqual(requestHeaders('downloadFile'), ['Range', 'If-Range', 'If-None-Match', 'If-Modified-Since']);
  assert.deepEqual(requestHeaders('streamAutomationRun'), ['Last-Event-ID']);
  assert.ok(requestHeaders('createTeam').includes('Idempotency-Key'));
  assert.ok(!requestHeaders('createKey').includes('Idempotency-Key'));
  assert.ok('ETag' in (operation('getKvEntry').responses['200']?.headers ?? {}));
  assert.ok('Content-Range' in (operation('downloadFile').responses['206']?.headers ?? {}));
  const { components } = document as unknown as { components: { responses: Record<string, Response> } };
  const tooMany = components.responses.TooManyRequests?.headers ?? {};
  for (const name of ['Retry-After', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'])
    assert.ok(name in tooMany, name);
});

test('every operation declares the errors that it can return', () => {
  const missing: string[] = [];
  for (const [path, operations] of Object.entries(document.paths))
    for (const [method, { operationId, responses, parameters = [] }] of Object.entries(operations)) {
      const wanted = ['500', '503'];
      if (path.includes('{')) wanted.push('404');
      if (parameters.some((parameter) => parameter.name === 'Idempotency-Key')) wanted.push('409');
      for (const status of wanted) if (!(status in responses)) missing.push(`${method} ${operationId}: ${status}`);
    }
  assert.deepEqual(missing, []);
});

test('every operation is described, and names its callers', () => {
  const missing: string[] = [];
  for (const operations of Object.values(document.paths))
    for (const { operationId, description = '' } of Object.values(operations))
      if (!/^[^\n]{15,}\.\n\nCallers: .+\.$/.test(description)) missing.push(operationId);
  assert.deepEqual(missing, [], 'Give the route a `description`, or the resource an `about`.');
});
