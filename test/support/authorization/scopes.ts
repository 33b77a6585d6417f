/*
 * What each scope of a secret key allows. The areas are stated here again, by the words of the paths, so that an operation
 * in the wrong area fails the matrix.
 */

/** By the first word of the path below /api/v1 or /v1. */
const areas: Record<string, string[]> = {
  files: ['files', 'uploads'],
  extractions: ['extractions', 'config'],
  knowledge: ['knowledge_*', 'threads', 'installations', 'vector_stores', 'answers', 'citations', 'responses'],
  automations: [
    ...['automations', 'automation_runs', 'automation_work', 'invocable_automations', 'approvals', 'events', 'secrets'],
  ],
  kv: ['kv', 'kv_*'],
  webhooks: ['webhooks', 'events/stream'],
  people: [
    'orgs',
    'users',
    'teams',
    'groups',
    'agents',
    'identity_issuers',
    'connected_assistants',
    'assistant_request',
  ],
  app: [
    'sandboxes',
    'keys',
    'usage',
    'jobs',
    'audit',
    'credential_uses',
    'ledger',
    'erasures',
    'models',
    'model_*',
    'available_models',
  ],
};
/**
 * Operations that no scope alone allows: a key with scopes creates no keys, naming a file needs reading files too, and
 * erasing something needs deleting it.
 */
const beyondOne = new Set([
  'POST /api/v1/keys',
  'POST /api/v1/extractions',
  'POST /api/v1/erasures',
  'POST /v1/vector_stores/:source/files',
  'POST /v1/vector_stores/:source/file_batches',
]);
/** `everything` is not an area: only `read` allows reading it. */
const exceptions: Record<string, string> = { 'agents/:agent/search': 'knowledge', 'users/:user/export': 'everything' };
const searches = /search$|^automations\/check$|^citations\/verify$/;
const root = /^(?:\/api)?\/v1\//;

/** Every scope that a key may have. */
export const keyScopes = ['read', ...Object.keys(areas), ...Object.keys(areas).map((area) => `${area}:read`)];

/** What an operation or tool needs. */
type Need = { area: string; reads: boolean };

/** Whether a key with this scope alone may use an operation. Any key may use those of MCP, whose tools have scopes. */
export function allowsOperation(scope: string, method: string, path: string): boolean {
  return path.startsWith('/mcp') || (!beyondOne.has(`${method} ${path}`) && allows(scope, needOf(method, path)));
}

/** Whether several scopes together allow an operation that none of them allows alone. */
export const needsSeveral = (method: string, path: string): boolean =>
  beyondOne.has(`${method} ${path}`) || exceptions[path.replace(root, '')] === 'everything';

function needOf(method: string, path: string): Need {
  const rest = path.replace(root, '');
  const reads = (method === 'GET' || (method === 'POST' && searches.test(rest))) && !rest.endsWith('/inbound_url');
  return { area: areaOf(rest), reads };
}

function areaOf(rest: string): string {
  const first = rest.split('/')[0] ?? '';
  const named = (names: string[]) =>
    names.some(
      (name) => name === rest || name === first || (name.endsWith('*') && first.startsWith(name.slice(0, -1))),
    );
  const exact = Object.entries(areas).find(([, names]) => names.includes(rest));
  const found = exceptions[rest] ?? (exact ?? Object.entries(areas).find(([, names]) => named(names)))?.[0];
  if (found === undefined)
    throw new Error(`Give ${rest} its area of key scopes in test/support/authorization/scopes.ts.`);
  return found;
}

/** Whether a key with this scope alone may do what needs this. */
export function allows(scope: string, { area, reads }: Need): boolean {
  return scope === area || (reads && (scope === 'read' || scope === `${area}:read`));
}
