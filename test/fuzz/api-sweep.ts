import { createHash } from 'node:crypto';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { actionOf } from '../../src/audit/log.ts';
import { uploadForm } from '../support/authorization/openai.ts';
import type { TestServer } from '../support/server.ts';
import { startWatch } from '../support/speed.ts';
import {
  type ApiDocument,
  type ApiOperation,
  type Known,
  memberPaths,
  type Parameter,
  sample,
  withValue,
} from './api-document.ts';
import { createResources, type Outside, type Resources } from './api-resources.ts';
import { awkwardJson, awkwardTexts, RawJson, type Values } from './awkward-values.ts';
import { inboundCases } from './inbound-cases.ts';
import { createMcpCheck, list, type McpTool, mcpCases, repliesOf, revision } from './mcp-cases.ts';

type SweepOptions = {
  server: TestServer;
  outside: Outside;
  /** Sends one of every `oneOf` requests; 1 sends all. */
  oneOf: number;
  /** Which of them to send. By default the first. */
  seed?: number;
};

type SweepReport = {
  requests: number;
  /** The number of requests with `oneOf` 1. */
  possible: number;
  /** The number of responses by status. */
  statuses: Record<string, number>;
  /**
   * Operations and MCP tools of which no request succeeded. Deletions are left out: their responses have no content
   * to check.
   */
  neverSucceeded: string[];
  slowestMs: number;
  slowest: string;
  problems: string[];
};

const awkward: Values = { texts: awkwardTexts, json: awkwardJson };

export type Case = {
  name: string;
  isPlain: boolean;
  operation: ApiOperation;
  method: string;
  template: string;
  /** Built when it is sent, because bodies are large. */
  send(): Sent;
  tool?: McpTool;
  /** Whether it must be refused. */
  isForged?: true | undefined;
};
type Sent = { path: string; headers: Record<string, string>; body?: string };

const parallel = 8;
const hangMs = 180_000;
const problemsMax = 200;

/** Sends every parameter and member of every operation with every awkward value. */
export async function sweepApi({ server, outside, oneOf, seed = 0 }: SweepOptions): Promise<SweepReport> {
  const document = (await server.api<ApiDocument>('GET', '/openapi.json')).body;
  const fits = createFit(document);
  const checkMcp = createMcpCheck();
  const things = await createResources(server, outside);
  const tools = await listTools(server, things);
  const report: SweepReport = {
    requests: 0,
    possible: 0,
    statuses: {},
    neverSucceeded: [],
    slowestMs: 0,
    slowest: '',
    problems: [],
  };
  const succeeded = new Set<string>();
  /** The responses to plain requests, which explain why an operation never succeeded. */
  const refused = new Map<string, string>();
  const list = () => {
    report.possible = 0;
    return count(casesOf(document, things, tools), report);
  };
  const work = async (cases: Generator<Case>) => {
    for (const each of cases) {
      if (report.problems.length >= problemsMax) return;
      const watch = startWatch();
      const outcome = await send(server, each);
      const tookMs = Math.round(watch.passedMs());
      const status = typeof outcome === 'string' ? outcome : String(outcome.status);
      report.requests += 1;
      report.statuses[status] = (report.statuses[status] ?? 0) + 1;
      if (tookMs > report.slowestMs) Object.assign(report, { slowestMs: tookMs, slowest: each.name });
      const { operationId } = each.operation;
      if (/^[23]/.test(status)) succeeded.add(operationId);
      else if (each.isPlain && typeof outcome === 'object') refused.set(operationId, `${status} ${outcome.text}`);
      let problem = typeof outcome === 'string' ? outcome : problemOf(outcome, each, fits);
      if (
        problem === undefined &&
        typeof outcome === 'object' &&
        each.template.startsWith('/mcp') &&
        status === '200'
      ) {
        const called = checkMcp(outcome.type, outcome.text, each.tool);
        problem = called.problem;
        if (called.succeeded && each.tool !== undefined) succeeded.add(each.tool.name);
      }
      if (problem !== undefined) report.problems.push(`${each.name}: ${problem}`);
    }
  };
  const sendAll = (cases: Generator<Case>) => Promise.all(Array.from({ length: parallel }, () => work(cases)));
  // An awkward value may change what the plain request of another operation needs.
  // They take a form or a query as a whole, which test/api/mcp/oauth.test.ts writes.
  for (const name of ['authorizeAssistant', 'exchangeAssistantToken', 'revokeAssistantToken']) succeeded.add(name);
  await sendAll(plainOf(list(), seed));
  await sendAll(chooseAwkward(list(), oneOf, seed));
  for (const methods of Object.values(document.paths))
    for (const [method, { operationId }] of Object.entries(methods))
      if (!succeeded.has(operationId) && method !== 'delete')
        report.neverSucceeded.push(`${operationId}: ${refused.get(operationId)}`);
  for (const { name } of tools) if (!succeeded.has(name)) report.neverSucceeded.push(name);
  return report;
}

/** The plain request of each operation, in an order that the seed decides: none may need another one first. */
function* plainOf(cases: Generator<Case>, seed: number): Generator<Case> {
  const plain = [...cases].filter(({ isPlain }) => isPlain);
  const place = ({ name }: Case, at: number) => createHash('sha1').update(`${seed} ${at} ${name}`).digest('hex');
  const placed = plain.map((each, at) => ({ each, place: place(each, at) }));
  for (const { each } of placed.sort((a, b) => (a.place < b.place ? -1 : 1))) yield each;
}

/** One of every `oneOf` requests with an awkward value. */
function* chooseAwkward(cases: Generator<Case>, oneOf: number, seed: number): Generator<Case> {
  let index = oneOf - (seed % oneOf);
  for (const each of cases) if (!each.isPlain && index++ % oneOf === 0) yield each;
}

function* count(cases: Generator<Case>, report: SweepReport): Generator<Case> {
  for (const each of cases) {
    report.possible += 1;
    yield each;
  }
}

type Outcome = { status: number; type: string; text: string };

export async function send(server: TestServer, each: Case): Promise<Outcome | string> {
  const { method } = each;
  const { path, headers, body } = each.send();
  const timeout = AbortSignal.timeout(hangMs);
  try {
    const response = await fetch(`${server.baseUrl}${path}`, {
      method,
      headers,
      redirect: 'manual',
      signal: timeout,
      ...(body === undefined ? {} : { body }),
    });
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('text/event-stream') && !path.startsWith('/mcp')) {
      await response.body?.cancel();
      return { status: response.status, type, text: '' };
    }
    return { status: response.status, type, text: await response.text() };
  } catch (error) {
    return timeout.aborted
      ? `no response within ${hangMs} ms`
      : `broken off: ${String((error as Error).cause ?? error)}`;
  }
}

type Fit = (template: string, method: string, status: number, value: unknown) => string | undefined;

function problemOf(
  { status, type, text }: Outcome,
  { template, method, isForged }: Case,
  fits: Fit,
): string | undefined {
  if (isForged && status < 400) return `${status}, although it is forged`;
  if (status >= 500 && status !== 501) return `${status} ${text.slice(0, 200)}`;
  if (!/^application\/json/.test(type)) return status >= 400 ? `${status} is not JSON: ${type}` : undefined;
  const value: unknown = JSON.parse(text);
  // Protocol errors have a different shape.
  if (template.startsWith('/mcp') && (Array.isArray(value) || Object.hasOwn(value as object, 'jsonrpc')))
    return undefined;
  return fits(template, method, status, value);
}

function createFit(document: ApiDocument): Fit {
  const ajv = new Ajv({ strict: false, validateSchema: false, allErrors: false, logger: false });
  addFormats.default(ajv);
  ajv.addSchema(document, 'api');
  const checks = new Map<string, ValidateFunction | undefined>();
  return (template, method, status, value) => {
    const responses = document.paths[template]?.[method.toLowerCase()]?.responses ?? {};
    const wanted = [String(status), `${Math.floor(status / 100)}XX`].find((each) => responses[each] !== undefined);
    if (wanted === undefined) return `${status} is not among the documented responses`;
    if (responses[wanted]?.content?.['application/json'] === undefined) return undefined;
    const pointer = [
      'paths',
      template,
      method.toLowerCase(),
      'responses',
      wanted,
      'content',
      'application/json',
      'schema',
    ]
      .map((step) => encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1')))
      .join('/');
    if (!checks.has(pointer)) checks.set(pointer, ajv.compile({ $ref: `api#/${pointer}` }));
    const check = checks.get(pointer);
    if (check === undefined || check(value)) return undefined;
    return `${status} does not fit its schema: ${(check.errors ?? []).map(describe).join(', ')}`;
  };
}

function describe({ instancePath, message }: ErrorObject): string {
  return `${instancePath} ${message}`;
}

export async function listTools({ api }: TestServer, { headersFor }: Resources): Promise<McpTool[]> {
  const [headers = {}] = headersFor('callMcp', '/mcp', []);
  const listed = await api('POST', '/mcp', {
    ...{ headers: { ...headers, ...revision }, body: list },
  });
  return repliesOf(listed.headers.get('content-type') ?? '', listed.text)[0]?.result?.tools ?? [];
}

export function* casesOf(
  document: ApiDocument,
  resources: Resources,
  tools: McpTool[],
  values: Values = awkward,
): Generator<Case> {
  const { known, others, queries, headersFor, bodies } = resources;
  for (const [template, methods] of Object.entries(document.paths))
    for (const [lower, operation] of Object.entries(methods)) {
      const { operationId } = operation;
      const method = lower.toUpperCase();
      const action = actionOf(operationId);
      const all = headersFor(operationId, template, operation['x-callers']);
      if (template === '/mcp')
        for (const [index, headers] of all.entries())
          yield* casesOfMcp(document, resources, tools, { template, operation, headers, isFirst: index === 0, values });
      if (operationId === 'postInbound') yield* casesOfInbound(resources, template, operation);
      // Deletions name nothing that exists, so that the resources stay. Only their own parameters are awkward.
      const things =
        method === 'DELETE'
          ? { app: known.app, key: 'key', name: 'NAME' }
          : { ...known, ...others[action], ...others[operationId] };
      const body = { ...bodies[action], ...bodies[operationId] };
      for (const headers of all)
        yield* casesOfOperation(document, {
          ...{ method, template, operation, known: things, headers, body, values },
          queries: queries[action] ?? [],
        });
    }
}

/** The difference from the plain request: a parameter, or the member of the body at this path. */
type Change = { parameter?: Parameter; at?: (string | number)[]; value?: unknown };

type McpPlan = {
  template: string;
  operation: ApiOperation;
  headers: Record<string, string>;
  isFirst: boolean;
  values: Values;
};

function* casesOfMcp(
  document: ApiDocument,
  { known, others }: Resources,
  tools: McpTool[],
  { template, operation, headers, isFirst, values }: McpPlan,
): Generator<Case> {
  for (const { what, isPlain = false, body, headers: own, tool } of mcpCases(document, tools, known, others, values)) {
    // Callers differ in their rights, not in how arguments are read.
    if (!isFirst && !isPlain) continue;
    const texts = Object.entries(own).map(([name, value]) => [name, headerText(value)]);
    yield {
      ...{ name: `POST ${template} ${what}`, isPlain, operation, method: 'POST', template },
      send: () => ({
        path: template,
        headers: { ...headers, 'content-type': 'application/json', ...Object.fromEntries(texts) },
        body: writeJson(body),
      }),
      ...(tool === undefined ? {} : { tool }),
    };
  }
}

function* casesOfInbound({ known, others }: Resources, template: string, operation: ApiOperation): Generator<Case> {
  const { signedToken, signingSecret } = others.postInbound ?? {};
  const signed = { token: String(signedToken), secret: String(signingSecret) };
  for (const { what, isPlain = false, token, isForged, build } of inboundCases(String(known.token), signed))
    yield {
      ...{ name: `POST ${template} ${what}`, isPlain, operation, method: 'POST', template, isForged },
      send: () => {
        const { headers, body } = build();
        const texts = Object.entries(headers).map(([name, value]) => [name, headerText(value)]);
        return { path: template.replace('{token}', token), headers: Object.fromEntries(texts), body };
      },
    };
}

type Plan = {
  method: string;
  template: string;
  operation: ApiOperation;
  known: Known;
  headers: Record<string, string>;
  body: object;
  queries: string[];
  values: Values;
};

function* casesOfOperation(document: ApiDocument, plan: Plan): Generator<Case> {
  const { method, template, operation, known, headers, values } = plan;
  const { parameters = [], requestBody } = operation;
  const [[mediaType, content] = []] = Object.entries(requestBody?.content ?? {});
  const isMcp = template.startsWith('/mcp');
  const isJson = mediaType === 'application/json' && content !== undefined;
  const plainBody = isMcp
    ? list
    : isJson
      ? { ...(sample(document, content.schema, known) as object), ...plan.body }
      : undefined;
  const sendsJson = isJson || isMcp;
  const type: Record<string, string> = sendsJson
    ? { 'content-type': 'application/json', ...(isMcp ? revision : {}) }
    : mediaType === undefined
      ? {}
      : mediaType === '*/*'
        ? { 'content-type': 'text/plain', 'x-filename': 'a.txt' }
        : mediaType === 'multipart/form-data'
          ? uploadForm.headers
          : { 'content-type': mediaType };
  const bytes = mediaType === 'multipart/form-data' ? uploadForm.body : 'bytes';
  for (const { name, in: place, required } of parameters)
    if (place === 'header' && required) type[name] ??= String(known[name] ?? 'text');
  const build = (change: Change, what: string): Case => ({
    ...{ name: `${method} ${template} ${what}`, isPlain: what === 'plain', operation, method, template },
    send: () => {
      const { parameter, value = '', at } = change;
      const given = { ...headers, ...type };
      if (parameter?.in === 'header') given[parameter.name] = headerText(String(value));
      const json = () => (at === undefined ? JSON.stringify(plainBody) : writeJson(withValue(plainBody, at, value)));
      return {
        ...{ path: pathOf(template, parameters, known, change, plan.queries), headers: given },
        ...(sendsJson ? { body: json() } : mediaType === undefined ? {} : { body: bytes }),
      };
    },
  });
  yield build({}, 'plain');
  for (const parameter of parameters)
    for (const [index, value] of values.texts.entries())
      yield build({ parameter, value }, `${parameter.in} ${parameter.name} = text ${index}`);
  if (!isJson) return;
  for (const path of memberPaths(document, content.schema))
    for (const [index, value] of [...values.texts, ...values.json].entries())
      yield build({ at: path, value }, `body ${path.join('.')} = value ${index}`);
}

function pathOf(
  template: string,
  parameters: Parameter[],
  known: Known,
  { parameter: changed, value }: Change,
  queries: string[],
): string {
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const awkward = changed?.in === 'path' && changed.name === name;
    return percentEncode(String(awkward ? value : (known[name] ?? 'nothing')));
  });
  const query = parameters
    .filter((parameter) => parameter.in === 'query')
    .flatMap((parameter) => {
      if (parameter === changed) return [[parameter.name, String(value)]];
      return parameter.required || queries.includes(parameter.name)
        ? [[parameter.name, String(known[parameter.name] ?? 'text')]]
        : [];
    })
    .map(([name = '', value = '']) => `${percentEncode(name)}=${percentEncode(value)}`);
  return query.length === 0 ? path : `${path}?${query.join('&')}`;
}

/** Like encodeURIComponent, but sends the bytes of lone surrogates instead of rejecting them. */
function percentEncode(text: string): string {
  return text
    .split(/([\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff])/)
    .map((piece, index) => (index % 2 === 1 ? '%ED%A0%80' : encodeURIComponent(piece)))
    .join('');
}

/** A header cannot contain every byte. Values that no client could send are left out. */
function headerText(value: string): string {
  return Buffer.from(value, 'utf8')
    .toString('latin1')
    .replace(/[\0\r\n]/g, '');
}

function writeJson(value: unknown): string {
  const raw: string[] = [];
  const text = JSON.stringify(value, (_, each: unknown) =>
    each instanceof RawJson ? `raw-json-${raw.push(each.text) - 1}` : each,
  );
  return text.replace(/"raw-json-(\d+)"/g, (_, index: string) => raw[Number(index)] ?? '');
}
