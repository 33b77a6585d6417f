import { production } from '../../src/db/database.ts';
import { formatId, newUuid } from '../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from '../support/automations.ts';
import type { startProvider } from '../support/oidc-provider.ts';
import { ProgramWorker, programOf } from '../support/programs.ts';
import type { TestApp, TestUser } from '../support/provisioner.ts';
import type { TestServer } from '../support/server.ts';
import { until } from '../support/until.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

/* What requests about models, groups, syncs, workflows in code and approvals need. */

/** Servers outside: a page to send webhooks to, an issuer of identities, and the address of a language model. */
export type Outside = { origin: string; model?: string; provider: Awaited<ReturnType<typeof startProvider>> };

export type World = { server: TestServer; outside: Outside; app: TestApp; user: TestUser; password: string };
export type Made = { id: string };
/** The body that creating a resource returns. */
export type Create = <Body = Made>(path: string, body?: object) => Promise<Body>;

export async function createModels({ server, app, outside }: World, create: Create) {
  const body = { provider: 'openai', model: 'm', url: outside.model ?? outside.origin };
  const model = (await create('/models', { ...body, name: 'kept' })).id;
  const alias = (await create('/model_aliases', { name: 'alias', models: ['kept'] })).id;
  const budget = { subject: 'app', period: 'day', tokens: 10_000_000 };
  const call = newUuid();
  await server.db`
    insert into model_calls (app_id, id, sandbox_id, model, provider, provider_model, reserved_tokens, created_at)
    values (${app.app.uuid}, ${call}, ${production}, 'kept', 'openai', 'm', 1, now())`;
  const spareAlias = (await create('/model_aliases', { name: 'spare', models: ['kept'] })).id;
  const spareModel = (await create('/models', { ...body, name: 'spare-model' })).id;
  return {
    known: {
      ...{ model, model_alias: alias, model_call: formatId('modelCall', call) },
      model_budget: (await create('/model_budgets', budget)).id,
    },
    others: {
      developerCreateModel: { name: 'OTHER' },
      createModelAlias: { name: 'NEW' },
      developerCreateModelAlias: { name: 'NEWER' },
      updateModel: { model: spareModel, name: 'renamed' },
      updateModelAlias: { model_alias: spareAlias, name: 'renamed-alias' },
    },
    bodies: {
      createModel: body,
      createModelAlias: { models: ['kept'] },
      updateModelAlias: { models: ['kept'] },
      createModelBudget: budget,
    },
  };
}

export async function createGroups({ user }: World, create: Create) {
  const group = async (name: string) => (await create('/groups', { namespace: 'n', external_id: name })).id;
  return {
    known: { group: await group('shared') },
    others: {
      developerCreateGroup: { external_id: 'another' },
      addGroupMember: { group: await group('one') },
      developerAddGroupMember: { group: await group('two') },
    },
    bodies: { setGroupMembers: { users: [user.id] } },
  };
}

/** Erases users that nothing else needs. */
export async function createErasures({ server, app }: World) {
  const spare = async () => (await server.provision.user(app)).id;
  const path = '/api/v1/erasures';
  const send = { key: app.secretKey };
  const made = await server.api<Made & { status: string }>('POST', path, { ...send, body: { user: await spare() } });
  const isDone = async () =>
    (await server.api<{ status: string }>('GET', `${path}/${made.body.id}`, send)).body.status === 'done';
  await until(isDone);
  return {
    known: { erasure: made.body.id },
    bodies: { createErasure: { user: await spare() }, developerCreateErasure: { user: await spare() } },
  };
}

export async function createSyncs({ user }: World, create: Create) {
  const begin = async () => {
    const source = (await create('/knowledge_sources', { type: 'knowledge/documents', user: user.id })).id;
    return create<Made & { fence: number }>(`/knowledge_sources/${source}/syncs`, { mode: 'changes' });
  };
  const [shared, completed, aborted] = [await begin(), await begin(), await begin()];
  return {
    known: { sync: shared.id },
    others: {
      putKnowledgeSyncBatch: { sync: shared.id, number: '1' },
      completeKnowledgeSync: { sync: completed.id },
      abortKnowledgeSync: { sync: aborted.id },
    },
    bodies: {
      putKnowledgeSyncBatch: { fence: shared.fence, deletes: [{ external_id: 'a' }], cursor: 'c' },
      completeKnowledgeSync: { batches: 0, documents: 0 },
    },
  };
}

/** A source that keeps versions, with a document that has two. */
export async function createVersions({ server, app, user }: World, create: Create) {
  const body = { type: 'knowledge/documents', user: user.id, version_retention_days: 30 };
  const source = await create<Made & { versions_from: string }>('/knowledge_sources', body);
  const path = '/api/v1/knowledge_documents';
  const send = { key: app.secretKey };
  await create(`/knowledge_sources/${source.id}/ingest`, { content: { data: 'One.' } });
  const listOf = async () =>
    (await server.api<{ data: (Made & { version: number })[] }>('GET', `${path}?source=${source.id}`, send)).body.data;
  await until(async () => (await listOf()).length === 1);
  const document = (await listOf())[0]?.id ?? '';
  await server.api('PATCH', `${path}/${document}`, { ...send, body: { content: { data: 'Two.' } } });
  await until(async () => (await listOf())[0]?.version === 2);
  const version = { document, version: '1' };
  const ofSource = { source: source.id };
  return {
    others: {
      listKnowledgeDocumentVersions: { document },
      getKnowledgeDocumentVersion: version,
      compareKnowledgeDocumentVersions: { document, version: '2' },
      restoreKnowledgeDocumentVersion: version,
      listDeletedKnowledgeDocuments: ofSource,
      planKnowledgeSourceRestore: { ...ofSource, at: source.versions_from },
      restoreKnowledgeSource: ofSource,
    },
    bodies: { restoreKnowledgeSource: { at: source.versions_from, confirm_deletions: true } },
  };
}

export async function createPrograms({ server, app }: World, create: Create) {
  const client = new AutomationsClient(server, app);
  const { id } = await client.createAutomation({ workflow: programOf('fuzz') });
  const worker = new ProgramWorker(client);
  const take = async () => {
    await client.invoke(id);
    return worker.take(id, { lease_seconds: 600 });
  };
  const [read, written] = [await take(), await take()];
  // A journal of one page has no cursor.
  await read.write([{ type: 'node_started', node_id: 'a', kind: 'step' }]);
  const journal = await client.call<{ after_cursor: string }>('GET', `/automation_runs/${read.run}/journal?limit=1`);
  const [reader = '', writer = ''] = await createClaims(server, client, create);
  return {
    headers: { readClaimedRun: { authorization: reader }, appendClaimedRun: { authorization: writer } },
    others: {
      readClaimedJournal: { automation_run: read.run },
      appendRunEntries: { automation_run: written.run },
    },
    bodies: {
      claimAutomationWork: { automations: [id], code_version: 'v1', lease_seconds: 60 },
      readClaimedJournal: { claim: read.claimed.claim, after_cursor: journal.body.after_cursor },
      appendRunEntries: {
        ...{ claim: written.claimed.claim, after_sequence: written.sequence },
        entries: [{ type: 'node_started', node_id: 'a', kind: 'step' }],
      },
      readClaimedRun: {},
      appendClaimedRun: { after_sequence: 1, entries: [] },
    },
  };
}

/** The credentials of functions that were woken for two runs, and a long time for them. */
async function createClaims(server: TestServer, client: AutomationsClient, create: Create): Promise<string[]> {
  const { id } = await client.createAutomation({ workflow: programOf('fuzz-function') });
  const receiver = await WebhookReceiver.start();
  await create('/webhooks', { url: `${receiver.origin}/`, automations: [id] });
  for (let n = 0; n < 2; n++) await client.invoke(id);
  const messages = await receiver.waitFor('/', 2);
  await receiver.close();
  await server.db`
    update automation_program_work set lease_seconds = 3600, lease_until = now() + interval '1 day', ready_at = now() + interval '1 day'
    where woken_by is not null`;
  return messages.map(({ event }) => `Bearer ${event.data.claim}`);
}

export async function createApprovals({ server, app, user }: World, create: Create) {
  const client = new AutomationsClient(server, app);
  const ask = { id: 'ask', kind: 'approve', question: 'Sure?', users: [user.id] };
  const { id } = await client.createAutomation({ workflow: graphOf(ask) });
  const approval = async () => {
    const run = await client.invoke(id);
    let found: string | undefined;
    await until(async () => {
      const { body } = await client.call<{ data: Made[] }>('GET', `/approvals?run=${run.id}`);
      found = body.data[0]?.id;
      return found !== undefined;
    });
    return found ?? '';
  };
  const link = async () => {
    const { url } = await create<{ url: string }>(`/approvals/${await approval()}/links`, { to: 'a@example.test' });
    return new URL(url).pathname.split('/').at(-1) ?? '';
  };
  return {
    known: { approval: await approval() },
    others: {
      answerApproval: { approval: await approval() },
      getLinkedApproval: { token: await link() },
      answerLinkedApproval: { token: await link() },
    },
    bodies: {
      answerApproval: { data: { ok: true } },
      answerLinkedApproval: { data: { ok: true } },
      createApprovalLink: { to: 'a@example.test' },
    },
  };
}
