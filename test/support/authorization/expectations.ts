import type { TestServer } from '../server.ts';
import { offsetType, tus, uploadHeaders } from '../uploads.ts';
import { approvalExpectations } from './approvals.ts';
import type { Fixtures, Target } from './fixtures.ts';
import { type Expectation, type Row, readMatrix } from './matrix.ts';
import { openAiExpectations } from './openai.ts';
import { permissionExpectations } from './permissions.ts';
import {
  apiKeys,
  config,
  createOfAgent,
  createOfOrg,
  createOwned,
  deleteOwned,
  everybody,
  extract,
  fileUnderOrg,
  keysOnly,
  kv,
  managed,
  orgs,
  readOwned,
  runOutput,
  sandboxes,
  sources,
  teams,
  updateOwned,
  users,
} from './tables.ts';
import type { CallerName, Ownership, Tenants } from './tenants.ts';
import { versionExpectations } from './versions.ts';

/** Streams that do not end. HEAD gets the same status. */
export const unending = new Set(['GET /api/v1/events/stream', 'GET /api/v1/kv_watch']);

export const rows = (table: Row[], ...kept: Ownership[]) => table.filter(({ whose }) => kept.includes(whose));
export const without = (table: Row[], ...left: Ownership[]) => table.filter(({ whose }) => !left.includes(whose));

const newThing = (path: string, table: Row[], body: object): Record<string, Expectation> => ({
  [`POST ${path}`]: { table, send: () => ({ body }) },
});

/** Each route under `/api/v1` that requires a caller, with the table that applies to it. */
export function expectationsByRoute(
  { provision }: TestServer,
  tenants: Tenants,
  { make, userOf, oneOwner, post, text }: Fixtures,
): Record<string, Expectation> {
  const { people, scopes, owners } = tenants;
  let names = 0;
  const teamOrg = (whose: Ownership) => (owners[whose].org ? { org: owners[whose].org } : {});

  /** The key of the caller's own scope. */
  const publishableKeyOf = (caller: CallerName) => {
    if (caller === 'stranger' || caller === 'otherKey') return tenants.otherApp.publishableKey;
    if (caller === 'sandboxed' || caller === 'sandboxKey') return tenants.sandbox.publishableKey;
    return tenants.app.publishableKey;
  };

  /** Teams and orgs have no owner except their org, app or sandbox. */
  const tenantRows = (...first: Ownership[]) => rows(managed, ...first, 'other-app', 'sandbox');
  /** Automations belong to users, teams and orgs, not to agents. */
  const ofPeople = (table: Row[]) => without(table, 'agent');
  /** Uploads belong to the user who created them. */
  const ofUser = (table: Row[]) => rows(table, 'mine', 'other-org', 'other-app', 'sandbox');
  const named = (body: object) => ({ send: ({ whose }: Target) => ({ body: { ...body, ...oneOwner(whose) } }) });
  const ownerQuery = ({ whose }: Target) => new URLSearchParams(oneOwner(whose)).toString();
  const isKey = (caller: CallerName) => /key$/i.test(caller);
  const kvUser = ({ whose }: Target, caller: CallerName) => (isKey(caller) ? { user: userOf(whose).id } : {});
  const kvPath = (target: Target, caller: CallerName) =>
    `/api/v1/kv/${target.id}?${new URLSearchParams(kvUser(target, caller)).toString()}`;

  return {
    'GET /api/v1/files': { table: everybody },
    'POST /api/v1/files': { table: [...createOwned, ...createOfAgent, ...fileUnderOrg], ...named(text) },
    'POST /api/v1/files/uploads': {
      table: [...createOwned, ...createOfAgent, ...fileUnderOrg],
      send: (target) => ({
        path: `/api/v1/files/uploads?${ownerQuery(target)}`,
        body: 'bytes',
        headers: { 'x-filename': 'a.txt', 'content-type': 'text/plain' },
      }),
    },
    'POST /api/v1/files/upload_urls': {
      table: [...createOwned, ...createOfAgent, ...fileUnderOrg],
      ...named({ filename: 'a.txt', content_type: 'text/plain' }),
    },
    'GET /api/v1/files/:file': { table: readOwned, make: make.file },
    'PATCH /api/v1/files/:file': { table: updateOwned, make: make.file },
    'DELETE /api/v1/files/:file': { table: deleteOwned, make: make.file, consumes: true },

    'GET /api/v1/uploads': { table: everybody },
    'POST /api/v1/uploads': {
      table: [...createOwned, ...createOfAgent, ...fileUnderOrg],
      send: ({ whose }) => ({
        body: 'x',
        headers: { ...offsetType, ...uploadHeaders({ filename: 'a', content_type: 'x/y', ...oneOwner(whose) }) },
      }),
    },
    'GET /api/v1/uploads/:upload': { table: ofUser(readOwned), make: make.upload },
    'PATCH /api/v1/uploads/:upload': {
      table: ofUser(readOwned),
      make: make.upload,
      send: () => ({ body: 'x', headers: { ...tus, ...offsetType, 'upload-offset': '0' } }),
      consumes: true,
    },
    'DELETE /api/v1/uploads/:upload': { table: ofUser(readOwned), make: make.upload, consumes: true },

    'POST /api/v1/extractions': {
      table: [...extract],
      make: make.file,
      send: ({ id }) => ({ body: { file: id, destination_kind: 'storage' } }),
    },
    'GET /api/v1/extractions/:extraction': { table: readOwned, make: make.extraction },
    'GET /api/v1/extractions': { table: everybody },
    'DELETE /api/v1/extractions/:extraction': { table: deleteOwned, make: make.extraction, consumes: true },
    'GET /api/v1/extractions/:extraction/stream': { table: readOwned, make: make.extraction },
    'GET /api/v1/config': {
      table: [...everybody, ...config.listed],
      send: (target) => ({ path: `/api/v1/config?${target.whose === 'mine' ? '' : ownerQuery(target)}` }),
    },
    'GET /api/v1/config/*': {
      table: [...config.mine, ...config.named],
      make: make.config,
      send: (target) => ({
        path: `/api/v1/config/${target.id}?${target.whose === 'mine' ? '' : ownerQuery(target)}`,
      }),
    },

    'PUT /api/v1/config/*': {
      table: config.written,
      make: make.config,
      send: ({ id, whose }) => ({ path: `/api/v1/config/${id}`, body: { content: 'Text.', ...oneOwner(whose) } }),
    },
    'DELETE /api/v1/config/*': {
      table: config.written,
      make: make.config,
      send: (target) => ({ path: `/api/v1/config/${target.id}?${ownerQuery(target)}` }),
      consumes: true,
    },

    'GET /api/v1/agents': { table: everybody },
    'POST /api/v1/agents': { table: [...createOwned, ...createOfOrg], ...named({ name: 'Agent' }) },
    'GET /api/v1/agents/:agent': { table: without(readOwned, 'agent'), make: make.agent },
    'PATCH /api/v1/agents/:agent': { table: without(updateOwned, 'agent'), make: make.agent },
    'DELETE /api/v1/agents/:agent': { table: without(deleteOwned, 'agent'), make: make.agent, consumes: true },

    'GET /api/v1/teams': { table: everybody },
    'POST /api/v1/teams': {
      table: teams.create,
      send: ({ whose }) => ({
        body: { name: 'Team', ...(whose === 'mine' ? {} : { org: teamOrg(whose).org?.id }) },
      }),
    },
    'GET /api/v1/teams/:team': { table: teams.read, make: make.team },
    'PATCH /api/v1/teams/:team': { table: teams.manage, make: make.team },
    'DELETE /api/v1/teams/:team': { table: teams.manage, make: make.team, consumes: true },
    'GET /api/v1/teams/:team/members': { table: teams.read, make: make.team },
    'POST /api/v1/teams/:team/members': {
      table: teams.manage,
      make: make.team,
      // The new member is a user whom the caller sees: themselves, or a new user for a key.
      send: async ({ whose }, caller) => {
        const newcomer = { admin: people.member, owner: people.member, outsider: people.outsider }[caller as 'admin'];
        return { body: { user: (newcomer ?? (await provision.user(scopes[whose]))).id } };
      },
      consumes: true,
    },
    'DELETE /api/v1/teams/:team/members': {
      table: teams.manage,
      make: make.team,
      send: ({ id }) => ({ body: { user: id } }),
      consumes: true,
    },
    'GET /api/v1/teams/:team/members/:member': { table: teams.read, make: make.team },
    'PATCH /api/v1/teams/:team/members/:member': {
      table: teams.manage,
      make: make.team,
      send: () => ({ body: { role: 'member' } }),
    },
    'DELETE /api/v1/teams/:team/members/:member': { table: teams.manage, make: make.team, consumes: true },

    'GET /api/v1/orgs': { table: everybody },
    ...newThing('/api/v1/orgs', keysOnly, { name: 'Org' }),
    'GET /api/v1/orgs/:org': { table: orgs.read, make: make.org },
    'PATCH /api/v1/orgs/:org': { table: tenantRows('org', 'other-org'), make: make.org },
    'DELETE /api/v1/orgs/:org': {
      table: tenantRows('mine'),
      make: (whose) => post(whose, '/orgs', { name: 'Org' }),
      consumes: true,
    },

    'GET /api/v1/users/me': {
      table: readMatrix(`
                users key  sandboxKey otherKey
        mine    ok    404  404        404
      `),
    },
    'GET /api/v1/users': { table: keysOnly },
    'POST /api/v1/users': {
      table: keysOnly,
      send: () => ({ body: { email: `new-${++names}@example.test` } }),
    },
    'GET /api/v1/users/:user': { table: users.read, make: make.user },
    'PATCH /api/v1/users/:user': { table: tenantRows('mine'), make: make.user },
    'DELETE /api/v1/users/:user': { table: tenantRows('mine'), make: make.spareUser, consumes: true },
    'POST /api/v1/users/:user/tokens': { table: users.mintTokens, make: make.user },
    'POST /api/v1/users/:user/sessions/revoke': { table: users.endSessions, make: make.spareUser },
    'GET /api/v1/users/:user/tokens': { table: users.tokens, make: make.user },
    'DELETE /api/v1/users/:user/tokens/:token': { table: users.tokens, make: make.token, consumes: true },

    'GET /api/v1/threads': { table: keysOnly },
    ...newThing('/api/v1/threads', keysOnly, { title: 'Thread' }),
    'GET /api/v1/threads/:thread': { table: managed, make: make.thread },
    'PATCH /api/v1/threads/:thread': { table: managed, make: make.thread },
    'DELETE /api/v1/threads/:thread': { table: managed, make: make.thread, consumes: true },

    'GET /api/v1/installations': { table: keysOnly },
    'POST /api/v1/installations': {
      table: readMatrix(`
                users key  sandboxKey otherKey
        mine    403   ok   422        422
        sandbox 403   422  ok         422
      `),
      make: make.agent,
      send: ({ id }) => ({ body: { agent: id, kind: 'webhook/inbound' } }),
    },
    'GET /api/v1/installations/:installation': { table: managed, make: make.installation },
    'PATCH /api/v1/installations/:installation': { table: managed, make: make.installation },
    'DELETE /api/v1/installations/:installation': { table: managed, make: make.installation, consumes: true },

    ...permissionExpectations(make, tenantRows('mine')),
    'GET /api/v1/sandboxes': { table: sandboxes.collection },
    ...newThing('/api/v1/sandboxes', sandboxes.collection, { name: 'Sandbox' }),
    'GET /api/v1/sandboxes/:sandbox': { table: sandboxes.one, make: make.sandbox },
    'PATCH /api/v1/sandboxes/:sandbox': { table: sandboxes.one, make: make.sandbox },
    'DELETE /api/v1/sandboxes/:sandbox': { table: sandboxes.one, make: make.spareSandbox, consumes: true },

    'GET /api/v1/usage': { table: keysOnly },
    'GET /api/v1/audit': { table: keysOnly },
    'GET /api/v1/credential_uses': { table: keysOnly },
    'GET /api/v1/ledger': { table: keysOnly },
    'GET /api/v1/ledger/verification': { table: keysOnly },
    'GET /api/v1/jobs': { table: keysOnly },
    'POST /api/v1/jobs/:job/retry': { table: tenantRows('mine'), make: make.setAsideJob, consumes: true },
    'GET /api/v1/keys': { table: keysOnly },
    ...newThing('/api/v1/keys', keysOnly, { type: 'publishable' }),
    'GET /api/v1/keys/:key': { table: apiKeys, make: make.apiKey },
    'DELETE /api/v1/keys/:key': { table: apiKeys, make: make.apiKey, consumes: true },

    'GET /api/v1/knowledge_sources/kinds': { table: everybody },
    'POST /api/v1/answers': { table: everybody, send: () => ({ body: { query: 'words of a question' } }) },
    'POST /api/v1/citations/verify': { table: everybody, send: () => ({ body: { quotes: ['words of a quote'] } }) },
    'POST /api/v1/knowledge_search': { table: everybody, send: () => ({ body: { query: 'text' } }) },
    'GET /api/v1/invocable_automations': { table: everybody },
    'GET /api/v1/knowledge_sources': { table: everybody },
    'POST /api/v1/knowledge_sources': {
      table: [...createOwned, ...createOfAgent, ...createOfOrg],
      send: ({ whose }) => ({ body: { type: 'knowledge/documents', ...oneOwner(whose) } }),
    },
    'GET /api/v1/knowledge_sources/:source': { table: sources.read, make: make.source },
    'PATCH /api/v1/knowledge_sources/:source': { table: sources.update, make: make.source },
    'DELETE /api/v1/knowledge_sources/:source': { table: sources.delete, make: make.source, consumes: true },
    'GET /api/v1/knowledge_sources/:source/embedding': { table: tenantRows('mine'), make: make.source },
    'GET /api/v1/knowledge_sources/:source/inbound_url': { table: sources.update, make: make.inbound },
    'POST /api/v1/knowledge_sources/:source/inbound_url': { table: sources.update, make: make.inbound },
    'POST /api/v1/knowledge_sources/:source/inbound_url/signing_secret': { table: sources.update, make: make.inbound },
    'DELETE /api/v1/knowledge_sources/:source/inbound_url/signing_secret': {
      table: sources.update,
      make: make.inbound,
    },
    'POST /api/v1/knowledge_sources/:source/ingest': {
      table: sources.update,
      make: make.source,
      send: () => ({ body: { content: { data: 'Text.' } } }),
    },
    'POST /api/v1/knowledge_sources/:source/ingest/batch': {
      table: sources.update,
      make: make.source,
      send: () => ({ body: { items: [{ content: { data: 'Text.' } }] } }),
    },
    'GET /api/v1/knowledge_sources/:source/ingestions': { table: sources.read, make: make.source },
    'POST /api/v1/knowledge_sources/:source/search': {
      table: sources.read,
      make: make.source,
      send: () => ({ body: { query: 'text' } }),
    },
    'POST /api/v1/agents/:agent/search': {
      table: without(readOwned, 'agent'),
      make: make.agent,
      send: () => ({ body: { query: 'text' } }),
    },
    'GET /api/v1/knowledge_ingestions/:ingestion': { table: sources.read, make: make.ingestion },
    'GET /api/v1/knowledge_ingestions/:ingestion/stream': { table: sources.read, make: make.ingestion },
    'GET /api/v1/knowledge_sources/:source/syncs': { table: sources.read, make: make.source },
    'POST /api/v1/knowledge_sources/:source/syncs': {
      table: sources.update,
      make: make.source,
      send: () => ({ body: { mode: 'full', take_over: true } }),
    },
    'GET /api/v1/knowledge_syncs/:sync': { table: sources.read, make: make.sync },
    'PUT /api/v1/knowledge_syncs/:sync/batches/:number': {
      table: sources.update,
      make: make.sync,
      send: ({ id }) => ({ path: `/api/v1/knowledge_syncs/${id}/batches/1`, body: { fence: 1 } }),
    },
    'POST /api/v1/knowledge_syncs/:sync/complete': {
      table: sources.update,
      make: make.emptySync,
      send: () => ({ body: { batches: 0, documents: 0 } }),
    },
    'POST /api/v1/knowledge_syncs/:sync/abort': {
      table: sources.update,
      make: make.abortedSync,
    },
    ...versionExpectations(make),
    'GET /api/v1/knowledge_documents': { table: everybody },
    'GET /api/v1/knowledge_documents/:document': { table: sources.read, make: make.document },
    'GET /api/v1/knowledge_documents/:document/content': { table: sources.read, make: make.document },
    'GET /api/v1/knowledge_documents/:document/chunks': { table: sources.read, make: make.document },
    'PATCH /api/v1/knowledge_documents/:document': {
      table: sources.update,
      make: make.document,
      send: () => ({ body: { content: { data: 'Other text.' } } }),
    },
    'DELETE /api/v1/knowledge_documents/:document': { table: sources.update, make: make.document, consumes: true },
    'POST /api/v1/threads/:thread/messages': {
      table: updateOwned,
      make: make.agentThread,
      send: () => ({ body: { content: 'Hello.' } }),
    },

    ...openAiExpectations(make),

    'POST /mcp': {
      table: everybody,
      send: () => ({
        body: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} },
        headers: { accept: 'application/json, text/event-stream' },
      }),
    },

    'POST /mcp/:key': {
      table: everybody,
      send: (_target, caller) => ({
        path: `/mcp/${publishableKeyOf(caller)}`,
        body: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} },
        headers: { accept: 'application/json, text/event-stream' },
      }),
    },

    'GET /api/v1/automations': { table: keysOnly },
    ...newThing('/api/v1/automations', keysOnly, { name: 'Automation', type: 'invoked' }),
    'POST /api/v1/automations/check': { table: keysOnly, send: () => ({ body: { text: 'name: Automation' } }) },
    'GET /api/v1/automations/:automation': { table: ofPeople(managed), make: make.automation },
    'PATCH /api/v1/automations/:automation': { table: ofPeople(managed), make: make.automation },
    'DELETE /api/v1/automations/:automation': { table: ofPeople(managed), make: make.automation, consumes: true },
    'POST /api/v1/automations/:automation/activate': { table: ofPeople(managed), make: make.automation },
    'POST /api/v1/automations/:automation/pause': { table: ofPeople(managed), make: make.automation, consumes: true },
    'GET /api/v1/automations/:automation/runs': { table: ofPeople(managed), make: make.automation },
    'POST /api/v1/automations/:automation/invoke': { table: ofPeople(readOwned), make: make.automation },
    'POST /api/v1/automations/:automation/claim': {
      table: ofPeople(managed),
      make: make.automation,
      send: () => ({ body: { lease_seconds: 60 } }),
    },
    'GET /api/v1/automations/:automation/versions': { table: ofPeople(managed), make: make.automation },
    'GET /api/v1/automations/:automation/versions/:version': {
      table: ofPeople(managed),
      make: make.automationWithGraph,
      send: ({ id }) => ({ path: `/api/v1/automations/${id}/versions/1` }),
    },
    'GET /api/v1/automation_runs': { table: everybody },
    'GET /api/v1/automation_runs/:automation_run': { table: ofPeople(readOwned), make: make.endedRun },
    'GET /api/v1/automation_runs/:automation_run/journal': { table: ofPeople(readOwned), make: make.endedRun },
    'GET /api/v1/automation_runs/:automation_run/stream': { table: ofPeople(readOwned), make: make.endedRun },
    'GET /api/v1/automation_runs/:automation_run/output_stream': {
      table: runOutput,
      make: make.endedRun,
    },
    'POST /api/v1/automation_runs/:automation_run/status': {
      table: ofPeople(managed),
      make: make.claimedRun,
      send: () => ({ body: { status: 'running' } }),
    },
    ...approvalExpectations(make),
    'POST /api/v1/events': { table: keysOnly, send: () => ({ body: { name: 'happened' } }) },
    'GET /api/v1/events/stream': { table: everybody },
    'GET /api/v1/models': { table: keysOnly },
    'POST /api/v1/models': {
      table: keysOnly,
      send: () => ({ body: { name: `new-model-${++names}`, provider: 'google', model: 'm' } }),
    },
    'GET /api/v1/models/:model': { table: tenantRows('mine'), make: make.model },
    'PATCH /api/v1/models/:model': { table: tenantRows('mine'), make: make.model },
    'DELETE /api/v1/models/:model': { table: tenantRows('mine'), make: make.model, consumes: true },
    'POST /api/v1/models/:model/test': { table: tenantRows('mine'), make: make.model },
    'GET /api/v1/available_models': { table: keysOnly },
    'GET /api/v1/model_aliases': { table: keysOnly },
    'POST /api/v1/model_aliases': {
      table: readMatrix(`
                users key  sandboxKey otherKey
        mine    403   ok   422        422
        sandbox 403   422  ok         422
      `),
      make: make.modelOf,
      send: ({ id }) => ({ body: { name: `new-alias-${++names}`, models: [id] } }),
    },
    'GET /api/v1/model_aliases/:model_alias': { table: tenantRows('mine'), make: make.modelAlias },
    'PATCH /api/v1/model_aliases/:model_alias': { table: tenantRows('mine'), make: make.modelAlias },
    'DELETE /api/v1/model_aliases/:model_alias': {
      table: tenantRows('mine'),
      make: make.modelAlias,
      consumes: true,
    },
    'GET /api/v1/model_budgets': { table: keysOnly },
    ...newThing('/api/v1/model_budgets', keysOnly, { subject: 'user', period: 'day', tokens: 1_000 }),
    'GET /api/v1/model_budgets/:model_budget': { table: tenantRows('mine'), make: make.modelBudget },
    'PATCH /api/v1/model_budgets/:model_budget': { table: tenantRows('mine'), make: make.modelBudget },
    'DELETE /api/v1/model_budgets/:model_budget': {
      table: tenantRows('mine'),
      make: make.modelBudget,
      consumes: true,
    },
    'GET /api/v1/model_budgets/:model_budget/uses': { table: tenantRows('mine'), make: make.modelBudget },
    'GET /api/v1/usage/models': { table: keysOnly },
    'GET /api/v1/usage/models/csv': { table: keysOnly },
    'GET /api/v1/model_calls': { table: keysOnly },
    'GET /api/v1/model_calls/:model_call': { table: tenantRows('mine'), make: make.modelCall },

    'GET /api/v1/webhooks': { table: keysOnly },
    ...newThing('/api/v1/webhooks', keysOnly, { url: 'https://example.com/hook', events: ['*'] }),
    'GET /api/v1/webhooks/:webhook': { table: tenantRows('mine'), make: make.webhook },
    'PATCH /api/v1/webhooks/:webhook': { table: tenantRows('mine'), make: make.webhook },
    'DELETE /api/v1/webhooks/:webhook': { table: tenantRows('mine'), make: make.webhook, consumes: true },
    'POST /api/v1/webhooks/:webhook/pause': { table: tenantRows('mine'), make: make.webhook, consumes: true },
    'POST /api/v1/webhooks/:webhook/resume': { table: tenantRows('mine'), make: make.webhook },
    'POST /api/v1/webhooks/:webhook/rotate_secret': { table: tenantRows('mine'), make: make.webhook },
    'POST /api/v1/webhooks/:webhook/test': { table: tenantRows('mine'), make: make.webhook },
    'GET /api/v1/webhooks/:webhook/deliveries': { table: tenantRows('mine'), make: make.webhook },
    'POST /api/v1/webhooks/:webhook/deliveries/:delivery/redeliver': {
      table: tenantRows('mine'),
      make: make.delivery,
    },
    'GET /api/v1/secrets': { table: keysOnly },
    'PUT /api/v1/secrets/:name': {
      table: keysOnly,
      send: () => ({ path: '/api/v1/secrets/PLACE', body: { value: 'v' } }),
    },
    'DELETE /api/v1/secrets/:name': { table: tenantRows('mine'), make: make.secret, consumes: true },

    'GET /api/v1/kv': { table: everybody },
    'POST /api/v1/kv': {
      table: kv.write,
      send: (target, caller) => ({ body: { key: `new-key-${++names}`, value: 'v', ...kvUser(target, caller) } }),
    },
    'GET /api/v1/kv/:key': { table: kv.entry, make: make.entry, send: (...given) => ({ path: kvPath(...given) }) },
    'PUT /api/v1/kv/:key': {
      table: kv.write,
      send: (target, caller) => ({
        path: `/api/v1/kv/key-${++names}`,
        body: { value: 'v', ...kvUser(target, caller) },
      }),
    },
    'GET /api/v1/kv_entries': {
      table: kv.write,
      send: (...given) => ({ path: `/api/v1/kv_entries?${new URLSearchParams(kvUser(...given))}` }),
    },
    'GET /api/v1/kv_watch': {
      table: kv.write,
      send: (...given) => ({ path: `/api/v1/kv_watch?${new URLSearchParams(kvUser(...given))}` }),
    },
    'POST /api/v1/kv_increment': {
      table: kv.write,
      send: (...given) => ({ body: { key: `count-${++names}`, ...kvUser(...given) } }),
    },
    'POST /api/v1/kv_batch': {
      table: kv.write,
      send: (...given) => ({
        body: { operations: [{ op: 'put', key: `key-${++names}`, value: 'v' }], ...kvUser(...given) },
      }),
    },
    'DELETE /api/v1/kv/:key': {
      table: kv.entry,
      make: make.entry,
      send: (...given) => ({ path: kvPath(...given) }),
      consumes: true,
    },
  };
}
