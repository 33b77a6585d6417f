import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { actionOf } from '../../src/audit/log.ts';
import { hashPassword } from '../../src/users/passwords.ts';
import type { TestServer } from '../support/server.ts';
import {
  type ApiDocument,
  type ApiOperation,
  type Known,
  memberPaths,
  type Parameter,
  sample,
  withValue,
} from './api-document.ts';
import { awkwardJson, awkwardTexts, RawJson } from './awkward-values.ts';

type SweepOptions = {
  server: TestServer;
  /** Sends one of every so many requests; 1 sends all. */
  oneOf: number;
};

type SweepReport = {
  requests: number;
  /** The number of responses by status. */
  statuses: Record<string, number>;
  /** Operations for which no request succeeded. */
  neverSucceeded: string[];
  slowestMs: number;
  slowest: string;
  problems: string[];
};

type Case = { name: string; operation: ApiOperation; method: string; template: string; send: Sent };
type Sent = { path: string; headers: Record<string, string>; body?: string };

const parallel = 8;
const hangMs = 20_000;
const problemsMax = 200;

/** Sends every parameter and member of every operation with every awkward value. */
export async function sweepApi({ server, oneOf }: SweepOptions): Promise<SweepReport> {
  const document = (await server.api<ApiDocument>('GET', '/openapi.json')).body;
  const fits = createFit(document);
  const things = await createResources(server);
  const report: SweepReport = {
    requests: 0,
    statuses: {},
    neverSucceeded: [],
    slowestMs: 0,
    slowest: '',
    problems: [],
  };
  const succeeded = new Set<string>();
  const cases = everyNth(casesOf(document, things), oneOf);
  const work = async () => {
    for (const each of cases) {
      if (report.problems.length >= problemsMax) return;
      const started = performance.now();
      const outcome = await send(server, each);
      const tookMs = Math.round(performance.now() - started);
      const status = typeof outcome === 'string' ? outcome : String(outcome.status);
      report.requests += 1;
      report.statuses[status] = (report.statuses[status] ?? 0) + 1;
      if (tookMs > report.slowestMs) Object.assign(report, { slowestMs: tookMs, slowest: each.name });
      if (/^2/.test(status)) succeeded.add(each.operation.operationId);
      const problem = typeof outcome === 'string' ? outcome : problemOf(outcome, each, fits);
      if (problem !== undefined) report.problems.push(`${each.name}: ${problem}`);
    }
  };
  await Promise.all(Array.from({ length: parallel }, work));
  for (const methods of Object.values(document.paths))
    for (const { operationId } of Object.values(methods))
      if (!succeeded.has(operationId) && !/^(developer)?(delete|remove|revoke)/i.test(operationId))
        report.neverSucceeded.push(operationId);
  return report;
}

function* everyNth(cases: Generator<Case>, oneOf: number): Generator<Case> {
  let index = 0;
  // The first case of each operation is its plain request, which every run sends.
  for (const each of cases) if (each.name.endsWith(' plain') || index++ % oneOf === 0) yield each;
}

type Outcome = { status: number; type: string; text: string };

async function send(server: TestServer, { method, send: { path, headers, body } }: Case): Promise<Outcome | string> {
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
    if (type.startsWith('text/event-stream')) {
      await response.body?.cancel();
      return { status: response.status, type, text: '' };
    }
    return { status: response.status, type, text: await response.text() };
  } catch (error) {
    return timeout.aborted ? `no answer within ${hangMs} ms` : `broken off: ${String((error as Error).cause ?? error)}`;
  }
}

type Fit = (template: string, method: string, status: number, value: unknown) => string | undefined;

function problemOf({ status, type, text }: Outcome, { template, method }: Case, fits: Fit): string | undefined {
  if (status >= 500 && status !== 501) return `${status} ${text.slice(0, 200)}`;
  if (!/^application\/json/.test(type)) return status >= 400 ? `${status} is not JSON: ${type}` : undefined;
  return fits(template, method, status, JSON.parse(text));
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

type Resources = {
  known: Known;
  /** Resources that some operations use instead, so that they do not change the shared ones. */
  others: Record<string, Known>;
  /** Each is sent alone: operations for a secret key, and those for an end user. */
  headersFor(template: string, callers: string[]): Record<string, string>[];
  /** Query parameters that an operation needs, although they are not required of every caller. */
  queries: Record<string, string[]>;
  /** Members that a body needs in addition to those that its schema requires. */
  bodies: Record<string, object>;
};

/** One resource of each kind, so that a request with one awkward value is otherwise valid. */
async function createResources({ api, provision, db }: TestServer): Promise<Resources> {
  const app = await provision.app();
  const user = await provision.user(app);
  const spareUser = await provision.user(app);
  const password = 'long enough';
  const passwordHash = await hashPassword(password);
  await db`update users set password_hash = ${passwordHash} where app_id = ${app.app.uuid} and id = ${user.uuid}`;
  const key = app.secretKey;
  const post = async (path: string, body: object): Promise<string> => {
    const made = await api<{ id?: string }>('POST', `/api/v1${path}`, { key, body });
    if (made.status >= 300) throw new Error(`${path}: ${made.text}`);
    return made.body.id ?? '';
  };
  const org = await post('/orgs', { name: 'Org' });
  await api('PATCH', `/api/v1/users/${user.id}`, { key, body: { org, org_role: 'admin' } });
  const team = await post('/teams', { name: 'Team', org });
  const agent = await post('/agents', { name: 'Agent', user: user.id });
  const file = await post('/files', { filename: 'a.txt', content_type: 'text/plain', data: 'VGV4dC4=', user: user.id });
  const source = await post('/knowledge_sources', { type: 'knowledge/documents', user: user.id });
  const invoked = { name: 'A', type: 'invoked', workflow: null, user: user.id };
  const [automation = '', spare = ''] = await Promise.all([1, 2].map(() => post('/automations', invoked)));
  for (const each of [automation, spare]) await api('POST', `/api/v1/automations/${each}/activate`, { key });
  await api('PUT', '/api/v1/secrets/NAME', { key, body: { value: 'x' } });
  const invoke = async (of: string) =>
    (await api<{ id: string }>('POST', `/api/v1/automations/${of}/invoke`, { key, body: {} })).body.id;
  const ingestion = await post(`/knowledge_sources/${source}/ingest`, { content: { data: 'Text.' } });
  await waitUntil(async () => {
    const { body } = await api<{ status: string }>('GET', `/api/v1/knowledge_ingestions/${ingestion}`, { key });
    return body.status === 'succeeded';
  });
  await post('/installations', { agent, kind: 'thread/messages' });
  const inbound = await api<{ inbound_url: string }>('POST', '/api/v1/installations', {
    key,
    body: { agent, kind: 'webhook/inbound' },
  });
  await post(`/teams/${team}/members`, { user: user.id, role: 'owner' });
  const documents = await api<{ data: { id: string }[] }>('GET', '/api/v1/knowledge_documents', { key });
  const known: Known = {
    app: app.app.id,
    user: user.id,
    org,
    team,
    agent,
    file,
    source,
    automation,
    automation_run: await invoke(automation),
    thread: await post('/threads', { title: 'Thread', agent }),
    installation: await post('/installations', { agent, kind: 'thread/messages' }),
    token: inbound.body.inbound_url.split('/').at(-1),
    sandbox: (await provision.sandbox(app)).sandbox.id,
    extraction: await post('/extractions', { file, agent, destination_kind: 'config', destination_path: 'a' }),
    content_type: 'text/plain',
    mime_type: 'image/png',
    data: 'VGV4dC4=',
    key: 'key',
    path: 'a/a.md',
    document: documents.body.data[0]?.id,
    ingestion,
    member: user.id,
    destination_kind: 'storage',
    query: 'text',
    slug: 'slug',
    name: 'NAME',
    password,
    nodes: [{ id: 'a', kind: 'complete' }],
  };
  return {
    known,
    others: {
      // Both end the sessions of the user whose token the other requests use.
      updateUser: { user: spareUser.id },
      revokeUserSessions: { user: spareUser.id },
      // Another `lookup_key` would make the agent match a path that deletes it.
      updateAgent: { agent: await post('/agents', { name: 'Spare', user: user.id }) },
      updateAutomation: { automation: spare },
      pauseAutomation: { automation: spare },
      cancelAutomationRun: { automation_run: await invoke(spare) },
      getKey: { key: await post('/keys', { type: 'publishable' }) },
      getConfig: { agent },
    },
    queries: { getKvEntry: ['user'], getConfig: ['agent'] },
    headersFor(template, callers) {
      if (template.startsWith('/protected/')) return [{ authorization: `Bearer ${app.developerToken}` }];
      if (template.startsWith('/api/v1/auth/')) return [{ 'x-api-key': app.publishableKey }];
      const asUser = callers.includes('user') ? [{ authorization: `Bearer ${user.token}` }] : [];
      return [{ 'x-api-key': key }, ...asUser];
    },
    bodies: {
      login: { email: user.email, password },
      openConsoleSession: { developer_token: app.developerToken },
      addTeamMember: { agent },
      removeNamedTeamMember: { agent },
      createKvEntry: { user: user.id },
      putKvEntry: { user: user.id },
      createAgent: { user: user.id },
      createThread: { user: user.id },
      createKnowledgeSource: { user: user.id, type: 'knowledge/documents' },
      ingestBatchIntoKnowledgeSource: { items: [{ content: { data: 'Text.' } }] },
      ingestIntoKnowledgeSource: { content: { data: 'Text.' } },
      updateKnowledgeDocument: { content: { data: 'Other text.' } },
      createExtraction: { file },
      createAutomation: { user: user.id, type: 'invoked' },
    },
  };
}

function* casesOf(document: ApiDocument, { known, others, queries, headersFor, bodies }: Resources): Generator<Case> {
  for (const [template, methods] of Object.entries(document.paths))
    for (const [lower, operation] of Object.entries(methods)) {
      // It speaks JSON-RPC, errors included: test/api/mcp.test.ts.
      if (template.startsWith('/mcp')) continue;
      const method = lower.toUpperCase();
      // Deletions name nothing that exists, so that resources stay; only their own parameters are awkward.
      const action = actionOf(operation.operationId);
      const things =
        method === 'DELETE' ? { app: known.app, key: 'key', name: 'NAME' } : { ...known, ...others[action] };
      const body = bodies[action] ?? {};
      for (const headers of headersFor(template, operation['x-callers']))
        yield* casesOfOperation(document, {
          method,
          template,
          operation,
          known: things,
          headers,
          body,
          queries: queries[action] ?? [],
        });
    }
}

type Plan = {
  method: string;
  template: string;
  operation: ApiOperation;
  known: Known;
  headers: Record<string, string>;
  body: object;
  queries: string[];
};

function* casesOfOperation(document: ApiDocument, plan: Plan): Generator<Case> {
  const { method, template, operation, known, headers } = plan;
  const { parameters = [], requestBody } = operation;
  const [[mediaType, content] = []] = Object.entries(requestBody?.content ?? {});
  const isJson = mediaType === 'application/json' && content !== undefined;
  const plainBody = isJson ? { ...(sample(document, content.schema, known) as object), ...plan.body } : undefined;
  const build = (change: { parameter?: Parameter; value?: string; body?: string }, what: string): Case => {
    const name = `${method} ${template} ${what}`;
    const body = change.body ?? (isJson ? JSON.stringify(plainBody) : mediaType === undefined ? undefined : 'bytes');
    const path = pathOf(template, parameters, known, change, plan.queries);
    const type = isJson
      ? { 'content-type': 'application/json' }
      : mediaType === undefined
        ? {}
        : { 'content-type': 'text/plain', 'x-filename': 'a.txt' };
    const given: Record<string, string> = { ...headers, ...type };
    if (change.parameter?.in === 'header') given[change.parameter.name] = headerText(change.value ?? '');
    return {
      name,
      operation,
      method,
      template,
      send: { path, headers: given, ...(body === undefined ? {} : { body }) },
    };
  };
  yield build({}, 'plain');
  for (const parameter of parameters)
    for (const [index, value] of awkwardTexts.entries())
      yield build({ parameter, value }, `${parameter.in} ${parameter.name} = text ${index}`);
  if (!isJson) return;
  for (const path of memberPaths(document, content.schema))
    for (const [index, value] of [...awkwardTexts, ...awkwardJson].entries())
      yield build({ body: writeJson(withValue(plainBody, path, value)) }, `body ${path.join('.')} = value ${index}`);
}

function pathOf(
  template: string,
  parameters: Parameter[],
  known: Known,
  change: { parameter?: Parameter; value?: string },
  queries: string[],
): string {
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const awkward = change.parameter?.in === 'path' && change.parameter.name === name;
    return percentEncode(awkward ? (change.value ?? '') : String(known[name] ?? 'nothing'));
  });
  const query = parameters
    .filter((parameter) => parameter.in === 'query')
    .flatMap((parameter) => {
      if (parameter === change.parameter) return [[parameter.name, change.value ?? '']];
      return parameter.required || queries.includes(parameter.name)
        ? [[parameter.name, String(known[parameter.name] ?? 'text')]]
        : [];
    })
    .map(([name = '', value = '']) => `${percentEncode(name)}=${percentEncode(value)}`);
  return query.length === 0 ? path : `${path}?${query.join('&')}`;
}

/** Like encodeURIComponent, which rejects lone surrogates: their bytes are sent anyway. */
function percentEncode(text: string): string {
  return text
    .split(/([\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff])/)
    .map((piece, index) => (index % 2 === 1 ? '%ED%A0%80' : encodeURIComponent(piece)))
    .join('');
}

/** A header cannot contain every byte: values that no client could send are left out. */
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

async function waitUntil(holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + hangMs;
  while (!(await holds())) if (Date.now() > deadline) throw new Error('The document was not indexed in time.');
}
