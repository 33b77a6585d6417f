import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { readProjectFile } from '../support/source.ts';

type Media = { examples?: Record<string, { $ref: string }> };
type Response = { content?: Record<string, Media>; headers?: Record<string, unknown> };
type Operation = {
  operationId: string;
  description?: string;
  parameters?: { name: string; in: string; schema: object; example?: unknown }[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, Response>;
};
type OpenApi = {
  paths: Record<string, Record<string, Operation>>;
  components: { examples: Record<string, { value: unknown }> };
};

const source = readProjectFile('openapi.json');
const document = JSON.parse(source) as OpenApi;

/**
 * What Redocly's strictest rules may find. The path for runs of old clients is given; the concrete path comes first, as
 * OpenAPI says. The callback of a sign-in and the start of one only redirect.
 */
const accepted = [
  /^no-ambiguous-paths .*\/automations\/runs\//,
  /^operation-2xx-response at #\/paths\/~1(?:console~1oidc~1callback|oauth~1\{key\}~1authorize)\//,
];

/** What Redocly's rules find, warnings included. */
async function findErrors(text: string): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended-strict'] });
  const problems = await lintFromString({ source: text, absoluteRef: 'openapi.json', config });
  return problems
    .map(({ ruleId, message, location }) => `${ruleId} at ${location[0]?.pointer}: ${message}`)
    .filter((problem) => !accepted.some((pattern) => pattern.test(problem)));
}

test('Redocly finds nothing in openapi.json by its strictest rules', async () => {
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
    for (const [method, { operationId, description = '', responses, parameters = [] }] of Object.entries(operations)) {
      const wanted = ['500', '503'];
      // Codes of tus alone have the shape of the range 4XX.
      for (const status of description.match(/\b4\d\d\b/g) ?? []) if (!/^4(23|60)$/.test(status)) wanted.push(status);
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

/** What is wrong with the examples of a document: one is missing, or does not fit its schema. */
function checkExamples({ paths, components }: OpenApi): string[] {
  const ajv = new Ajv({ strict: false, allErrors: true, validateSchema: false });
  addFormats.default(ajv);
  ajv.addSchema({ paths, components }, 'api');
  const segment = (part: string) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));
  const checkMedia = (place: string[], media: Media | undefined): string[] => {
    if (media === undefined) return [];
    const { example = { $ref: '' }, ...variants } = media.examples ?? {};
    const schema = { $ref: `api#/${[...place, 'content', 'application/json', 'schema'].map(segment).join('/')}` };
    return [example, ...Object.values(variants)].flatMap(({ $ref }) => {
      const name = $ref.split('/').at(-1) ?? '';
      const found = components.examples[name];
      if (found === undefined) return [`${place[2]} ${place[1]}: no example of ${place[3]} ${place[4] ?? ''}`];
      return ajv.validate(schema, found.value) ? [] : [`${name}: ${ajv.errorsText()}`];
    });
  };
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { parameters = [], requestBody, responses }]) => {
      const place = ['paths', path, method];
      const bare = parameters.filter(({ in: where, example }) => where !== 'header' && example === undefined);
      const unfit = parameters.flatMap(({ in: where, name, schema, example }) =>
        where !== 'query' || example === undefined || ajv.validate(schema, example)
          ? []
          : [`${method} ${path}: ${name} ${ajv.errorsText()}`],
      );
      const success = Object.entries(responses).filter(([status]) => status.startsWith('2'));
      return [
        ...bare.filter(({ name }) => name !== 'app').map(({ name }) => `${method} ${path}: no example of ${name}`),
        ...unfit,
        ...checkMedia([...place, 'requestBody'], requestBody?.content['application/json']),
        ...success.flatMap(([status, { content }]) =>
          checkMedia([...place, 'responses', status], content?.['application/json']),
        ),
      ];
    }),
  );
}

test('every JSON body, JSON response, path and query parameter has an example that fits its schema', () => {
  assert.deepEqual(checkExamples(document), [], 'Record it: see test/api/http/reference-examples.test.ts.');

  const broken = structuredClone(document);
  broken.components.examples.createUserRequest = { value: { email: 7 } };
  broken.components.examples['getExtraction200.data'] = { value: { id: 7 } };
  delete broken.components.examples.getUsage200;
  const limit = broken.paths['/api/v1/users']?.get?.parameters?.find(({ name }) => name === 'page');
  assert.ok(limit);
  limit.example = 'one';
  assert.match(checkExamples(broken).join('\n'), /users: page data must be integer/);
  assert.match(checkExamples(broken).join('\n'), /getExtraction200\.data: .*data\/id must be string/);
  assert.match(
    checkExamples(broken).join('\n'),
    /usage: no example of responses 200\n(?:.*\n)*createUserRequest: data\/email must be string/,
  );
});

type Part = { $ref?: string; description?: string; properties?: Record<string, Part> };

/** The members and parameters without a description, and the JSON bodies without a name. */
function findUnexplained(given: OpenApi): string[] {
  const found: string[] = [];
  const walk = (part: unknown, place: string): void => {
    if (typeof part !== 'object' || part === null) return;
    for (const [name, member] of Object.entries((part as Part).properties ?? {}))
      if (member.$ref === undefined && !member.description) found.push(`${place}.${name} has no description`);
    for (const [name, inner] of Object.entries(part)) if (!/^(examples?|default)$/.test(name)) walk(inner, place);
  };
  const { schemas } = given.components as unknown as { schemas: Record<string, Part> };
  for (const [name, schema] of Object.entries(schemas)) walk(schema, name);
  for (const operations of Object.values(given.paths))
    for (const { operationId, parameters = [], requestBody, responses } of Object.values(operations)) {
      for (const parameter of parameters as { name: string; description?: string }[])
        if (!parameter.description) found.push(`${operationId}: ${parameter.name} has no description`);
      for (const { content = {} } of [requestBody ?? {}, ...Object.values(responses)] as Response[]) {
        const { schema } = (content['application/json'] ?? {}) as { schema?: Part };
        if (schema !== undefined && schema.$ref === undefined) found.push(`${operationId} has a body without a name`);
      }
    }
  return found;
}

test('every member and parameter has a description, and every JSON body a named schema', () => {
  assert.deepEqual(findUnexplained(document), [], 'Describe it in its schema, or in http/openapi/members.ts.');

  const broken = structuredClone(document);
  const { schemas } = broken.components as unknown as { schemas: Record<string, { properties: object }> };
  assert.ok(schemas.User);
  Object.assign(schemas.User.properties, { nickname: { type: 'string' } });
  const listed = broken.paths['/api/v1/users']?.get;
  assert.ok(listed);
  listed.parameters = [{ name: 'nickname', in: 'query', schema: {} }];
  listed.responses['200'] = { content: { 'application/json': { schema: { type: 'object' } } as Media } };
  assert.deepEqual(findUnexplained(broken), [
    'User.nickname has no description',
    'listUsers: nickname has no description',
    'listUsers has a body without a name',
  ]);
});

test('pages share one schema, twins have one tag, and a mark says where Idempotency-Key is taken', () => {
  const { schemas } = document.components as unknown as { schemas: Record<string, { allOf?: Part[] }> };
  assert.deepEqual(schemas.UserPage?.allOf?.[0], { $ref: '#/components/schemas/Page' });
  // End users get the entries of key-value storage without the members of a page.
  const withPages = Object.entries(schemas).filter(
    ([name, schema]) => name !== 'Page' && JSON.stringify(schema).includes('"total_pages"'),
  );
  assert.deepEqual(
    withPages.map(([name]) => name),
    ['ListKvEntriesResponse'],
  );
  for (const operations of Object.values(document.paths))
    for (const one of Object.values(operations) as (Operation & { tags: string[]; 'x-idempotent'?: boolean })[]) {
      assert.equal(one.tags.includes('Developer paths'), /^developer[A-Z]/.test(one.operationId), one.operationId);
      const takesKey = (one.parameters ?? []).some(({ name }) => name === 'Idempotency-Key');
      assert.equal(one['x-idempotent'] === true, takesKey, one.operationId);
    }
});

test('the messages to webhooks are described, each with the name of its event', () => {
  const { webhooks } = document as unknown as { webhooks: Record<string, unknown> };
  for (const event of ['file.created', 'automation_run.failed', 'webhook.test']) assert.ok(event in webhooks, event);
});
