import assert from 'node:assert/strict';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from '../automations.ts';
import type { TestApp } from '../provisioner.ts';
import type { TestServer } from '../server.ts';
import { setJobAside } from '../set-aside-job.ts';
import { offsetType, tus, uploadHeaders } from '../uploads.ts';
import { WebhookReceiver } from '../webhook-receiver.ts';
import type { Recorder } from './recorder.ts';
import { pixel, type Tenants } from './tenants.ts';

type Output = { outputs?: unknown[] };

/** Records files, extractions and config entries. */
export async function recordFiles(recorder: Recorder, app: TestApp, { user }: Tenants, page: string): Promise<void> {
  const data = Buffer.from('# Opening hours\n\nWe open at nine.\n').toString('base64');
  const file = await recorder.record('createFile', {
    body: { filename: 'hours.md', content_type: 'text/markdown', data, user },
  });
  const path = { file: file.id };
  await recorder.record('listFiles');
  const { url } = await recorder.record<{ url: string }>('getFile', { path });
  await recorder.recordUrl('downloadFile', url);
  const { body: shared } = await recorder.send<{ id: string; share_url: string }>('createFile', {
    body: { filename: 'pixel.png', content_type: 'image/png', data: pixel, share: true },
  });
  await recorder.recordUrl('fetchSharedFile', shared.share_url);
  const { body: small } = await recorder.send<{ picture_url: string }>('getFile', {
    path: { file: shared.id },
    query: { width: '64' },
  });
  await recorder.recordUrl('downloadFilePicture', small.picture_url);
  const acl = { add: [{ principal_type: 'everyone', actions: ['read'] }] };
  await recorder.record('updateFile', { path, body: { provider_metadata: { source: 'shop' }, acl } });
  const filename = 'report.pdf';
  const link = await recorder.record<{ url: string }>('createFileUploadUrl', {
    body: { filename, content_type: 'application/pdf', size: 1_048_576, user },
  });
  const token = new URL(link.url).searchParams.get('token') ?? '';
  await recorder.record('uploadFileByUrl', { as: {}, query: { token }, body: '%PDF-1.7' });
  const headers = { 'x-filename': filename, 'content-type': 'application/pdf' };
  await recorder.record('uploadFile', { as: { key: app.secretKey, headers }, query: { user }, body: '%PDF-1.7' });
  const upload = await recorder.record('createUpload', {
    as: { key: app.secretKey, headers: uploadHeaders({ filename, content_type: 'application/pdf' }) },
  });
  const ofUpload = { path: { upload: upload.id } };
  await recorder.record('listUploads');
  await recorder.record('getUpload', ofUpload);
  const patch = { ...tus, ...offsetType, 'upload-offset': '0' };
  await recorder.record('appendToUpload', { ...ofUpload, as: { key: app.secretKey, headers: patch }, body: '%' });
  await recorder.record('deleteUpload', ofUpload);

  const destination = { destination_kind: 'config', destination_path: 'handbook' };
  const extraction = await recorder.record('createExtraction', { body: { ...destination, file: file.id } });
  const ofExtraction = { path: { extraction: extraction.id } };
  await recorder.record('getExtraction', ofExtraction);
  await recorder.record('streamExtraction', ofExtraction);
  await recorder.record('listConfigs');
  await recorder.record('getConfig', { path: { path: 'handbook/hours.md' } });
  const text = { content: 'Be brief.\n', content_type: 'text/markdown' };
  await recorder.record('putConfig', { path: { path: 'prompts/support.md' }, body: text });
  await recorder.record('deleteConfig', { path: { path: 'prompts/support.md' } });
  await recorder.record<Output & { id: string }>('createExtraction', {
    body: { url: page, mode: 'link', destination_kind: 'storage' },
  });
  await recorder.record('listExtractions');
  await recorder.record('deleteExtraction', ofExtraction);
  await recorder.record('deleteFile', { path });
}

/** Records a webhook to this address, and its deliveries. */
export async function recordWebhooks(recorder: Recorder, url: string): Promise<void> {
  const { id } = await recorder.record('createWebhook', { body: { url, events: ['order.paid'], lookup_key: 'shop' } });
  const path = { webhook: id };
  await recorder.record('listWebhooks');
  await recorder.record('getWebhook', { path });
  await recorder.record('updateWebhook', { path, body: { description: 'Orders for the shop.' } });
  const { id: delivery } = await recorder.record('testWebhook', { path });
  type Deliveries = { data: { state: string }[] };
  await recorder.until('listWebhookDeliveries', { path }, (body) =>
    (body as Deliveries).data.every(({ state }) => state === 'delivered'),
  );
  await recorder.record('redeliverWebhookDelivery', { path: { ...path, delivery } });
  await recorder.record('pauseWebhook', { path });
  await recorder.record('resumeWebhook', { path });
  await recorder.record('rotateWebhookSecret', { path, body: { overlap_seconds: 3_600 } });
  await recorder.record('deleteWebhook', { path });
}

/** Records key-value entries of one user. */
export async function recordEntries(recorder: Recorder, { user }: Tenants): Promise<void> {
  const ofUser = { query: { user } };
  await recorder.record('createKvEntry', { body: { key: 'theme', value: 'dark', user } });
  await recorder.record('listKvEntries', ofUser);
  await recorder.record('listKvEntriesByKey', ofUser);
  const path = { key: 'theme' };
  await recorder.record('getKvEntry', { path, ...ofUser });
  await recorder.record('putKvEntry', { path, body: { value: 'light', ttl_seconds: 86_400, user } });
  await recorder.record('incrementKvEntry', { body: { key: 'visits', by: 1, user } });
  await recorder.record('batchKvEntries', {
    body: {
      user,
      operations: [
        { op: 'put', key: 'language', value: 'en', if_none_match: '*' },
        { op: 'increment', key: 'visits' },
        { op: 'get', key: 'theme' },
      ],
    },
  });
  await recorder.record('deleteKvEntry', { path, body: { user } });
}

/** Records sources, ingestions, documents and searches. */
export async function recordKnowledge(recorder: Recorder, tenants: Tenants): Promise<void> {
  const { agent } = tenants;
  type Kinds = { data: unknown[] };
  await recorder.record<Kinds>('listKnowledgeSourceKinds', {}, ({ data }) => ({ data: data.slice(0, 2) }));
  const source = await recorder.record('createKnowledgeSource', {
    body: { type: 'knowledge/documents', agent, lookup_key: 'handbook', metadata: { topic: 'shop' } },
  });
  const path = { source: source.id };
  await recorder.record('listKnowledgeSources');
  await recorder.record('getKnowledgeSource', { path });
  await recorder.record('updateKnowledgeSource', { path, body: { metadata: { topic: 'opening hours' } } });
  const hasEnded = ({ status }: Record<string, unknown>) => ['succeeded', 'failed'].includes(String(status));
  // A response waits two seconds for the end of the work, which a busy machine may not reach. The example always
  // shows the end.
  const atItsEnd = ({ id }: { id: string }) =>
    recorder.waitFor('getKnowledgeIngestion', { path: { ingestion: id } }, hasEnded);
  const hours = {
    content: { data: 'We open at nine and close at six.', content_type: 'text/plain' },
    title: 'Opening hours',
    metadata: { year: 2026 },
  };
  const ingestion = await recorder.record('ingestIntoKnowledgeSource', { path, body: hours }, atItsEnd);
  const ended = await recorder.until('getKnowledgeIngestion', { path: { ingestion: ingestion.id } }, hasEnded);
  assert.equal(ended.status, 'succeeded');
  await recorder.record('streamKnowledgeIngestion', { path: { ingestion: ingestion.id } });
  await recorder.record('listKnowledgeIngestions', { path });
  const { document } = ended.metadata as { document: string };
  await recorder.record('listKnowledgeDocuments', { query: { source: source.id } });
  await recorder.record('getKnowledgeDocument', { path: { document } });
  await recorder.record('getKnowledgeDocumentContent', { path: { document }, query: { offset: '1', limit: '10' } });
  await recorder.record('listKnowledgeDocumentChunks', { path: { document } });
  const query = 'When do you open?';
  await recorder.record('searchKnowledgeSource', { path, body: { query, max_results: 3 } });
  await recorder.record('searchKnowledge', { body: { query, max_results: 3 } });
  await recorder.record('createAnswer', { body: { query, sources: [source.id] } });
  await recorder.record('verifyCitations', { body: { quotes: ['We open at nine'], documents: [document] } });
  await recorder.record('searchAgentKnowledge', { path: { agent }, body: { query, max_results: 3 } });

  const later = { content: { data: 'We open at ten and close at six.' } };
  await recorder.record('updateKnowledgeDocument', { path: { document }, body: later }, atItsEnd);
  const items = [
    { content: { data: 'Parcels arrive on Mondays.' }, title: 'Parcels' },
    { content: { data: 'Returns are free for a month.' }, title: 'Returns' },
  ];
  await recorder.record('ingestBatchIntoKnowledgeSource', { path, body: { items, on_active: 'queue' } }, atItsEnd);
  const grants = [{ principal_type: 'org_role', principal: 'admin' }];
  await recorder.record('updateKnowledgeDocumentAcl', { path: { document }, body: { grants } });
  await recorder.record('deleteKnowledgeDocumentAcl', { path: { document } });
  await recorder.record('deleteKnowledgeDocument', { path: { document } });
  await recorder.record('deleteKnowledgeSource', { path });

  await recordSyncs(recorder, agent);
  await recordVersions(recorder, agent, atItsEnd);

  const webhook = { agent, kind: 'webhook/inbound' };
  const { body: installation } = await recorder.send<{ id: string }>('createInstallation', { body: webhook });
  const found = await recorder.send<{ data: { id: string }[] }>('listKnowledgeSources', {
    query: { installation: installation.id },
  });
  const inbound = { path: { source: found.body.data[0]?.id ?? '' } };
  await recorder.record('getInboundUrl', inbound);
  const { url } = await recorder.record<{ url: string }>('rotateInboundUrl', inbound);
  const token = url.split('/').at(-1) ?? '';
  await recorder.record('postInbound', { as: {}, path: { token }, body: 'A new order arrived.' });
  await recorder.record('setInboundSecret', { ...inbound, body: { overlap_seconds: 3_600 } });
  await recorder.record('deleteInboundSecret', inbound);
}

/** Records a source that keeps what its documents were. */
async function recordVersions(
  recorder: Recorder,
  agent: string,
  atItsEnd: (ingestion: { id: string }) => Promise<unknown>,
): Promise<void> {
  const { body: made } = await recorder.send<{ id: string; versions_from: string }>('createKnowledgeSource', {
    body: { type: 'knowledge/documents', agent, version_retention_days: 90 },
  });
  const path = { source: made.id };
  const write = async (operation: string, where: Record<string, string>, data: string) => {
    const body = { content: { data }, title: 'Opening hours' };
    const { body: started } = await recorder.send<{ id: string }>(operation, { path: where, body });
    const { metadata } = (await atItsEnd(started)) as { metadata: { document: string } };
    return metadata.document;
  };
  const document = await write('ingestIntoKnowledgeSource', path, 'We open at nine.\nWe close at six.\n');
  await write('updateKnowledgeDocument', { document }, 'We open at ten.\nWe close at six.\n');
  await recorder.record('listKnowledgeDocumentVersions', { path: { document } });
  const first = { path: { document, version: '1' } };
  await recorder.record('getKnowledgeDocumentVersion', first);
  await recorder.record('compareKnowledgeDocumentVersions', {
    path: { document, version: '2' },
    query: { base: '1' },
  });
  await recorder.record('restoreKnowledgeDocumentVersion', first, atItsEnd);
  await recorder.send('deleteKnowledgeDocument', { path: { document } });
  await recorder.record('listDeletedKnowledgeDocuments', { path });
  await recorder.record('planKnowledgeSourceRestore', { path, query: { at: made.versions_from } });
  await recorder.record('restoreKnowledgeSource', { path, body: { at: made.versions_from } }, atItsEnd);
}

/** Records a connector that fills a source. */
async function recordSyncs(recorder: Recorder, agent: string): Promise<void> {
  const { body: made } = await recorder.send<{ id: string }>('createKnowledgeSource', {
    body: { type: 'knowledge/documents', agent },
  });
  const path = { source: made.id };
  const { id, fence } = await recorder.record<{ id: string; fence: number }>('startKnowledgeSync', {
    path,
    body: { mode: 'full' },
  });
  const content = { data: 'We open at nine and close at five.' };
  const upserts = [{ external_id: 'pages/42', order: 3, title: 'Opening hours', content }];
  const batch = { fence, upserts, deletes: [{ external_id: 'pages/41' }], cursor: 'page 2' };
  // A worker may have begun with the batch, or ended with it, before the response.
  const asReceived = (body: { stats: Record<string, unknown> }) => {
    const counts = Object.entries(body.stats).map(([name, count]) => [name, typeof count === 'number' ? 0 : count]);
    return { ...body, pending: 2, stats: Object.fromEntries(counts) };
  };
  await recorder.record('putKnowledgeSyncBatch', { path: { sync: id, number: '1' }, body: batch }, asReceived);
  const counts = { fence, batches: 1, documents: 1 };
  await recorder.record(
    'completeKnowledgeSync',
    { path: { sync: id }, body: counts },
    (body: Parameters<typeof asReceived>[0]) => {
      return { ...asReceived(body), status: 'completing', completed_at: null };
    },
  );
  await recorder.until('getKnowledgeSync', { path: { sync: id } }, ({ status }) => status === 'succeeded');
  await recorder.record('listKnowledgeSyncs', { path });
  const { body: next } = await recorder.send<{ id: string; fence: number }>('startKnowledgeSync', {
    path,
    body: { mode: 'changes' },
  });
  await recorder.record('abortKnowledgeSync', { path: { sync: next.id }, body: { fence: next.fence } });
}

const workflow = graphOf(
  { id: 'start', kind: 'trigger', on_success: 'wait' },
  { id: 'wait', kind: 'wait_for_signal', name: 'decision', on_success: 'done' },
  { id: 'done', kind: 'transform', value: '{{$nodes.wait}}' },
);

/** Records automations, runs, events and secrets. */
export async function recordAutomations(recorder: Recorder, server: TestServer, app: TestApp): Promise<void> {
  const automation = await recorder.record('createAutomation', {
    body: { name: 'Approve an order', lookup_key: 'approve-order', type: 'invoked', workflow },
  });
  const path = { automation: automation.id };
  await recorder.record('listAutomations');
  await recorder.record('getAutomation', { path });
  await recorder.record('updateAutomation', { path, body: { description: 'Waits for a decision.' } });
  const text = 'name: Greet\ntype: invoked\nworkflow: {}\n';
  await recorder.record('checkAutomation', { body: { text } });
  await recorder.record('listAutomationVersions', { path });
  await recorder.record('getAutomationVersion', { path: { ...path, version: '1' } });
  await recorder.record('activateAutomation', { path });
  await recorder.record('listInvocableAutomations');
  const run = await recorder.record('invokeAutomation', {
    path,
    body: { payload: { order: 42 }, idempotency_key: 'order-42' },
  });
  const client = new AutomationsClient(server, app);
  await client.waitUntilWaiting(run.id);
  const ofRun = { path: { automation_run: run.id } };
  const body = { name: 'decision', payload: { approved: true } };
  await recorder.record('signalAutomationRun', { ...ofRun, body });
  await client.waitForEnd(run.id);
  await recorder.record('getAutomationRun', ofRun);
  await recorder.record('streamAutomationRun', ofRun);
  await recorder.record('streamAutomationRunOutput', ofRun);
  await recorder.record('getAutomationRunJournal', { ...ofRun, query: { limit: '2' } });
  await recorder.record('listAutomationRuns', { path });
  await recorder.record('listVisibleAutomationRuns');
  const retried = await recorder.record('retryAutomationRun', { ...ofRun, body: { from: { node: 'wait' } } });
  await client.waitUntilWaiting(retried.id);
  await recorder.record('cancelAutomationRun', { path: { automation_run: retried.id } });
  await recorder.record('pauseAutomation', { path });
  await recorder.record('emitEvent', { body: { name: 'order.paid', payload: { order: 42 } } });

  const manual = await client.createAutomation({ name: 'By a worker', type: 'invoked' });
  await client.invoke(manual.id);
  const claim = { path: { automation: manual.id }, body: { lease_seconds: 60 } };
  const claimed = await recorder.record('claimAutomationRun', claim);
  await recorder.record('reportAutomationRun', {
    path: { automation_run: claimed.id },
    body: { status: 'completed', result: { printed: true } },
  });
  await recordProgram(recorder, client);
  await recorder.record('deleteAutomation', { path });

  await recorder.record('putAppSecret', { path: { name: 'CRM_TOKEN' }, body: { value: 'the token of the CRM' } });
  await recorder.record('listAppSecrets');
  await recorder.record('deleteAppSecret', { path: { name: 'CRM_TOKEN' } });
}

/** Records approvals and a link to one. */
export async function recordApprovals(recorder: Recorder, server: TestServer, app: TestApp): Promise<void> {
  const client = new AutomationsClient(server, app);
  const question = 'Book the invoice of 1,200 EUR?';
  const { id } = await client.createAutomation({
    name: 'Book invoices',
    workflow: graphOf({ id: 'ask', kind: 'approve', question, timeout_seconds: 86_400 }),
  });
  const first = await client.invoke(id);
  await client.waitUntilWaiting(first.id);
  const { data } = await recorder.record<{ data: { id: string }[] }>('listApprovals', { query: { run: first.id } });
  const path = { approval: data[0]?.id ?? '' };
  await recorder.record('getApproval', { path });
  await recorder.record('answerApproval', { path, body: { data: { ok: true, comment: 'Fits the order.' } } });

  const second = await client.invoke(id);
  await client.waitUntilWaiting(second.id);
  const other = await recorder.send<{ data: { id: string }[] }>('listApprovals', { query: { run: second.id } });
  const { url } = await recorder.record<{ url: string }>('createApprovalLink', {
    path: { approval: other.body.data[0]?.id ?? '' },
    body: { to: 'ada@example.com' },
  });
  const link = { as: {}, path: { token: url.split('/').at(-1) ?? '' } };
  await recorder.record('getLinkedApproval', link);
  await recorder.record('answerLinkedApproval', { ...link, body: { data: { ok: false, comment: 'Not ours.' } } });
}

/** Records a run of a workflow in code. */
async function recordProgram(recorder: Recorder, client: AutomationsClient): Promise<void> {
  const body = {
    name: 'Book an invoice',
    type: 'invoked',
    workflow: { kind: 'WorkflowProgram', version: 1, name: 'book' },
  };
  const { id } = await client.createAutomation(body);
  const { id: run } = await client.invoke(id, { payload: { invoice: 42 } });
  const work = await recorder.record<{ id: string; claim: string; sequence: number }>('claimAutomationWork', {
    body: { automations: [id], code_version: '2026-03-02', lease_seconds: 60, wait_seconds: 30 },
  });
  const ofRun = { path: { automation_run: run } };
  const { claim, sequence } = work;
  await recorder.record('appendRunEntries', {
    ...ofRun,
    body: { claim, after_sequence: sequence, entries: [{ type: 'node_started', node_id: 'extract', kind: 'step' }] },
  });
  const { resume_cursor: cursor } = (await client.journalPage(run, '?limit=1')) as { resume_cursor: string };
  await recorder.record('readClaimedJournal', { ...ofRun, body: { claim, after_cursor: cursor } });
  await recordFunction(recorder, client);
}

/** What a function does with the claim of the message that wakes it. */
async function recordFunction(recorder: Recorder, client: AutomationsClient): Promise<void> {
  const workflow = { kind: 'WorkflowProgram', version: 1, name: 'remind' };
  const { id } = await client.createAutomation({ name: 'Remind', type: 'invoked', workflow });
  const receiver = await WebhookReceiver.start();
  const webhook = await client.call<{ id: string }>('POST', '/webhooks', {
    url: `${receiver.origin}/`,
    automations: [id],
  });
  await client.invoke(id);
  const [message] = await receiver.waitFor('/', 1);
  const as = { headers: { authorization: `Bearer ${message?.event.data.claim}` } };
  const read = await recorder.record<{ sequence: number }>('readClaimedRun', {
    as,
    body: { code_version: '2026-03-02' },
  });
  const entries = [{ type: 'run_completed', payload: { reminded: true } }];
  await recorder.record('appendClaimedRun', { as, body: { after_sequence: read.sequence, entries } });
  await client.call('DELETE', `/webhooks/${webhook.body.id}`);
  await receiver.close();
}

/** Records what operators read, and the Model Context Protocol. */
export async function recordOperations(recorder: Recorder, server: TestServer, app: TestApp): Promise<void> {
  await recorder.record('getHealth', { as: {} });
  await recorder.record('getReadiness', { as: {} });
  type OpenApi = { openapi: string; info: { title: string; version: string } };
  await recorder.record<OpenApi>('getOpenApi', { as: {} }, ({ openapi, info: { title, version } }) => ({
    openapi,
    info: { title, version },
    paths: {},
  }));
  await recorder.record('getUsage');
  const { services } = server;
  await setJobAside(services.db, 'embed_documents', { appId: parseId('app', app.app.id) ?? '' });
  const { data } = await recorder.record<{ data: { id: string }[] }>('listSetAsideJobs');
  await recorder.record('retrySetAsideJob', { path: { job: data[0]?.id ?? '' } });
  await recorder.record('listAuditEntries', { query: { page_size: '1', action: 'createOrg' } });
  await recorder.record('listCredentialUses', { query: { page_size: '1' } });
  // The time of sealing and all digests differ between recordings.
  await recorder.record<Record<string, unknown>>('getLedgerHead', {}, (head) => ({
    ...{ ...head, segment: 57, kind: 'audit', records: 12, detail: null, key_id: 'c2b1e0a94d7f3856' },
    ...{ sealed_at: '2026-03-02T09:30:00.000000Z', last_at: '2026-03-02T09:30:00.000000Z' },
    ...Object.fromEntries(
      ['list_digest', 'previous', 'public_key', 'digest'].map((name, at) => [name, `${at}f`.repeat(32)]),
    ),
    signature: '5a'.repeat(64),
  }));
  await recorder.record<Record<string, unknown>>('verifyLedger', {}, () => ({
    problems: [],
    counts: { segments: 10, records: 412, runs: 0, entries: 0, removed: 0, unsealed: 0 },
    next_cursor: 'segments.10',
  }));

  const headers = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' };
  const body = {
    ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
    params: { name: 'list_knowledge_sources', arguments: {} },
  };
  const as = { key: app.secretKey, headers };
  await recorder.record('callMcp', { as, body });
  await recorder.record('callAppMcp', { path: { key: app.publishableKey }, as, body });
}
