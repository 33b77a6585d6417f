import { parseId } from '../../src/lib/ids.ts';
import { hashPassword } from '../../src/users/passwords.ts';
import { AssistantFlow, callback } from '../support/assistant.ts';
import { AutomationsClient, graphOf } from '../support/automations.ts';
import { encodePng } from '../support/pictures.ts';
import { pixel } from '../support/reference/tenants.ts';
import type { TestServer } from '../support/server.ts';
import { setJobAside } from '../support/set-aside-job.ts';
import { storeResponse } from '../support/stored-response.ts';
import { until } from '../support/until.ts';
import { metadataOf, tus } from '../support/uploads.ts';
import type { Known } from './api-document.ts';
import {
  type Create,
  createApprovals,
  createErasures,
  createGroups,
  createModels,
  createPrograms,
  createSyncs,
  createVersions,
  type Made,
  type Outside,
  type World,
} from './api-work.ts';

export type { Outside };

/**
 * What requests name, so that each operation can succeed. Keys are operation ids, for both kinds of path unless one
 * is named.
 */
export type Resources = {
  known: Known;
  /** Resources that some operations use instead, so that they do not change the shared ones. */
  others: Record<string, Known>;
  /** The headers of operations for a secret key, and of those for an end user. Each set is sent alone. */
  headersFor(operationId: string, template: string, callers: string[]): Record<string, string>[];
  /** Query parameters that an operation needs although not every caller must send them. */
  queries: Record<string, string[]>;
  /** Members that a body needs although its schema does not require them. */
  bodies: Record<string, object>;
};

/** As long as the bytes that are sent. */
const uploadHeaders = {
  ...tus,
  'upload-length': '5',
  'upload-metadata': metadataOf({ filename: 'a.txt', content_type: 'text/plain' }),
};

/** One resource of each kind, so that a request with one awkward value is otherwise valid. */
export async function createResources(server: TestServer, outside: Outside): Promise<Resources> {
  const { api, provision, db } = server;
  const app = await provision.app();
  const user = await provision.user(app);
  const password = 'long enough';
  const passwordHash = await hashPassword(password);
  await db`update users set password_hash = ${passwordHash} where app_id = ${app.app.uuid} and id = ${user.uuid}`;
  const key = app.secretKey;
  const create: Create = async <Body>(path: string, body?: object) => {
    const made = await api<Body>('POST', `/api/v1${path}`, { key, ...(body === undefined ? {} : { body }) });
    if (made.status >= 300) throw new Error(`${path}: ${made.text}`);
    return made.body;
  };
  const read: Create = async <Body>(path: string) => (await api<Body>('GET', `/api/v1${path}`, { key })).body;
  const post = async (path: string, body?: object): Promise<string> => (await create(path, body)).id;
  const world = { server, outside, app, user, password };

  const org = await post('/orgs', { name: 'Org' });
  await api('PATCH', `/api/v1/users/${user.id}`, { key, body: { org, org_role: 'admin' } });
  const team = await post('/teams', { name: 'Team', org });
  const agent = await post('/agents', { name: 'Agent', user: user.id });
  const file = await post('/files', { filename: 'a.txt', content_type: 'text/plain', data: 'VGV4dC4=', user: user.id });
  await api('PUT', '/api/v1/secrets/NAME', { key, body: { value: 'x' } });
  for (const name of ['kept', 'spare'])
    await api('PUT', `/api/v1/kv/${name}`, { key, body: { value: 'x', user: user.id } });
  await create(`/teams/${team}/members`, { user: user.id, role: 'owner' });
  const knowledge = await createKnowledge(server, create, key, user.id);
  const automations = await createAutomations(world, create);
  const webhooks = await createWebhooks(outside, create);
  const installations = await createInstallations(server, create, key, agent);
  const signIn = await createSignIn(world, create);
  // The first call reads all migrations.
  await api('GET', '/readyz');
  const upload = async () => {
    const made = await api<Made>('POST', '/api/v1/uploads', { key, headers: uploadHeaders });
    if (made.status !== 201) throw new Error(made.text);
    return made.body.id;
  };
  const jobs = await setJobsAside(world);
  const assistants = await createAssistants(world, read);

  const models = await createModels(world, create);
  const groups = await createGroups(world, create);
  const syncs = await createSyncs(world, create);
  const versions = await createVersions(world, create);
  const erasures = await createErasures(world);
  const programs = await createPrograms(world, create);
  const approvals = await createApprovals(world, create);
  const openai = await createOpenAiThings(create, file, knowledge, user.id);

  const known: Known = {
    app: app.app.id,
    user: user.id,
    ...{
      org,
      team,
      agent,
      file,
      file_id: file,
      ...knowledge,
      automation: automations.automation,
      automation_run: automations.run,
    },
    ...{ ...models.known, ...groups.known, ...erasures.known, ...syncs.known, ...approvals.known },
    connected_assistant: assistants.connected,
    response: await storeResponse(server.db, user.uuid),
    thread: await post('/threads', { title: 'Thread', agent }),
    installation: await post('/installations', { agent, kind: 'thread/messages' }),
    token: installations.token,
    sandbox: (await provision.sandbox(app)).sandbox.id,
    extraction: await post('/extractions', { file, agent, destination_kind: 'config', destination_path: 'a' }),
    webhook: webhooks.webhook,
    identity_issuer: signIn.issuer,
    upload: await upload(),
    ...uploadHeaders,
    'upload-offset': '0',
    content_type: 'text/plain',
    mime_type: 'image/png',
    data: 'VGV4dC4=',
    key: 'key',
    path: 'a/a.md',
    member: user.id,
    destination_kind: 'storage',
    query: 'text',
    slug: 'slug',
    name: 'NAME',
    password,
    nodes: [{ id: 'a', kind: 'complete' }],
  };
  const spareUser = await provision.user(app);
  const spareAgent = async (name: string) => post('/agents', { name, user: user.id });
  const hook = { url: `${outside.origin}/hook`, events: ['order.paid'] };
  return {
    known,
    others: {
      // Both end the sessions of the user with whose token the other requests are sent.
      updateUser: { user: spareUser.id },
      revokeUserSessions: { user: spareUser.id },
      // A different `lookup_key` would make the agent match a path that deletes it.
      updateAgent: { agent: await spareAgent('Spare') },
      developerUpdateAgent: { agent: await spareAgent('Another') },
      getKey: { key: await post('/keys', { type: 'publishable' }) },
      getConfig: { agent },
      getKvEntry: { key: 'kept' },
      appendToUpload: { upload: await upload() },
      getAssistantRequest: { request: assistants.request },
      ...openai.others,
      ...(await createFileUrls(create, read, file, user.id)),
      ...automations.others,
      ...models.others,
      ...groups.others,
      ...syncs.others,
      ...versions.others,
      ...programs.others,
      ...approvals.others,
      ...webhooks.others,
      ...installations.others,
      ...signIn.others,
      ...jobs,
    },
    queries: {
      getKvEntry: ['user'],
      listKvEntriesByKey: ['user'],
      watchKvEntries: ['user'],
      getConfig: ['agent'],
      finishExternalSignIn: ['code', 'state'],
    },
    headersFor(operationId, template, callers) {
      const own: Record<string, Record<string, string>> = { ...signIn.headers, ...programs.headers };
      if (operationId in own) return [own[operationId] ?? {}];
      if (template.startsWith('/protected/')) return [{ authorization: `Bearer ${app.developerToken}` }];
      if (template.startsWith('/api/v1/auth/')) return [{ 'x-api-key': app.publishableKey }];
      const asUser = callers.includes('user') ? [{ authorization: `Bearer ${user.token}` }] : [];
      // What only users may do.
      if (template === '/api/v1/assistant_request') return asUser;
      return [{ 'x-api-key': key }, ...asUser];
    },
    bodies: {
      ...signIn.bodies,
      ...openai.bodies,
      decideAssistantRequest: { request: assistants.request, decision: 'allow' },
      registerAssistant: { redirect_uris: [callback] },
      ...models.bodies,
      ...groups.bodies,
      ...erasures.bodies,
      ...syncs.bodies,
      ...versions.bodies,
      ...programs.bodies,
      ...approvals.bodies,
      updateKnowledgeDocumentAcl: { grants: [{ principal_type: 'everyone', actions: ['read'] }] },
      openConsoleSession: { developer_token: app.developerToken },
      developerCreateUser: { email: 'another@example.test' },
      addTeamMember: { agent },
      developerAddTeamMember: { agent: await spareAgent('Other') },
      removeNamedTeamMember: { agent },
      createKvEntry: { key: 'created', user: user.id },
      putKvEntry: { user: user.id },
      incrementKvEntry: { key: 'count', user: user.id },
      batchKvEntries: { user: user.id },
      createAgent: { user: user.id },
      createThread: { user: user.id },
      createKnowledgeSource: { user: user.id, type: 'knowledge/documents' },
      ingestBatchIntoKnowledgeSource: { items: [{ content: { data: 'Text.' } }] },
      ingestIntoKnowledgeSource: { content: { data: 'Text.' } },
      updateKnowledgeDocument: { content: { data: 'Other text.' } },
      createExtraction: { file },
      createAutomation: { user: user.id, type: 'invoked' },
      createWebhook: hook,
      // Either a text or quotes.
      verifyCitations: { text: 'Text.' },
    },
  };
}

async function createKnowledge({ api }: TestServer, create: Create, key: string, user: string) {
  const source = (await create('/knowledge_sources', { type: 'knowledge/documents', user })).id;
  const ingestion = (await create(`/knowledge_sources/${source}/ingest`, { content: { data: 'Text.' } })).id;
  await waitUntil(async () => {
    const { body } = await api<{ status: string }>('GET', `/api/v1/knowledge_ingestions/${ingestion}`, { key });
    return body.status === 'succeeded';
  });
  const documents = await api<{ data: Made[] }>('GET', '/api/v1/knowledge_documents', { key });
  return { source, ingestion, document: documents.body.data[0]?.id };
}

/** For the routes under `/v1`: a document as a file of its source, and batches. */
async function createOpenAiThings(create: Create, file: string, { source, document }: Known, user: string) {
  const batch = async () =>
    (await create(`/knowledge_sources/${source}/ingest/batch`, { items: [{ content: { data: 'Text.' } }] })).id;
  const ofStore = { file: document };
  const ofBatch = { ingestion: await batch() };
  return {
    others: {
      openaiGetVectorStoreFile: ofStore,
      openaiUpdateVectorStoreFile: ofStore,
      openaiGetVectorStoreFileContent: ofStore,
      openaiGetFileBatch: ofBatch,
      openaiListFileBatchFiles: ofBatch,
      openaiCancelFileBatch: { ingestion: await batch() },
      // In the other source, the file is still being processed.
      openaiCreateFileBatch: { source: (await create('/knowledge_sources', { type: 'knowledge/documents', user })).id },
    },
    bodies: { openaiCreateFileBatch: { file_ids: [file] } },
  };
}

/** Creates runs that wait for a worker, runs that wait for a signal, and ended runs, as each operation needs. */
async function createAutomations({ server, app, user }: World, create: Create) {
  const client = new AutomationsClient(server, app);
  const [automation, spare] = await Promise.all([1, 2].map(() => client.createAutomation({ user: user.id })));
  const run = async (of = spare) => (await client.invoke(of?.id ?? '')).id;
  const ended = async () => {
    const id = await run(automation);
    await create(`/automation_runs/${id}/cancel`);
    return id;
  };
  const { id: worked } = await client.createAutomation({ user: user.id });
  const claimed = async () => {
    await client.invoke(worked);
    return create(`/automations/${worked}/claim`, { lease_seconds: 600 }).then(({ id }) => id);
  };
  const { id: waiting } = await client.createAutomation({
    workflow: graphOf(
      { id: 'start', kind: 'trigger', on_success: 'wait' },
      { id: 'wait', kind: 'wait_for_signal', name: 'NAME' },
    ),
  });
  const signalled = async () => {
    const { id } = await client.invoke(waiting);
    await client.waitUntilWaiting(id);
    return id;
  };
  return {
    automation: automation?.id ?? '',
    run: await run(automation),
    others: {
      updateAutomation: { automation: spare?.id },
      pauseAutomation: { automation: spare?.id },
      getAutomationVersion: { automation: waiting, version: '1' },
      cancelAutomationRun: { automation_run: await run() },
      developerCancelAutomationRun: { automation_run: await run() },
      reportAutomationRun: { automation_run: await claimed() },
      developerReportAutomationRun: { automation_run: await claimed() },
      retryAutomationRun: { automation_run: await ended() },
      developerRetryAutomationRun: { automation_run: await ended() },
      signalAutomationRun: { automation_run: await signalled(), name: 'NAME' },
      developerSignalAutomationRun: { automation_run: await signalled(), name: 'NAME' },
      cancel_run: { run: await run() },
      retry_run: { run: await ended() },
      signal_run: { run: await signalled(), name: 'NAME' },
    },
  };
}

async function createWebhooks({ origin }: Outside, create: Create) {
  const webhook = async () => (await create('/webhooks', { url: `${origin}/hook`, events: ['order.paid'] })).id;
  const [shared, paused, changed] = [await webhook(), await webhook(), await webhook()];
  const { id: delivery } = await create(`/webhooks/${shared}/test`);
  return {
    webhook: shared,
    others: {
      pauseWebhook: { webhook: paused },
      updateWebhook: { webhook: changed },
      redeliverWebhookDelivery: { webhook: shared, delivery },
    },
  };
}

/** Creates installations that receive posts: one for posts, the others to rotate its URL and set its secret. */
async function createInstallations({ api }: TestServer, create: Create, key: string, agent: string) {
  const inbound = async () => {
    const { id, inbound_url: url } = await create<Made & { inbound_url: string }>('/installations', {
      ...{ agent, kind: 'webhook/inbound' },
    });
    const found = await api<{ data: Made[] }>('GET', `/api/v1/knowledge_sources?installation=${id}`, { key });
    return { token: url.split('/').at(-1), source: found.body.data[0]?.id };
  };
  const { token, source } = await inbound();
  const signed = await inbound();
  const set = await api<{ secret: string }>(
    'POST',
    `/api/v1/knowledge_sources/${signed.source}/inbound_url/signing_secret`,
    {
      key,
      body: {},
    },
  );
  return {
    token,
    others: {
      postInbound: { signedToken: signed.token, signingSecret: set.body.secret },
      getInboundUrl: { source },
      rotateInboundUrl: { source: (await inbound()).source },
      setInboundSecret: { source: (await inbound()).source },
    },
  };
}

/** URLs that open a file without another credential. */
async function createFileUrls(
  create: Create,
  read: Create,
  file: string,
  user: string,
): Promise<Record<string, Known>> {
  const picture = { filename: 'a.png', mime_type: 'image/png', data: pixel };
  const agent = await create<{ profile_picture: { url: string } }>('/agents', {
    ...{ name: 'Pictured', user, profile_picture: picture },
  });
  const org = await create<{ logo: { url: string } }>('/orgs', { name: 'Pictured', logo: picture });
  const drawn = encodePng({ width: 2, height: 2, pixels: new Uint8Array(4) });
  const image = { filename: 'b.png', content_type: 'image/png', data: Buffer.from(drawn).toString('base64') };
  const shared = await create<Made & { share_url: string; url: string }>('/files', { ...image, share: true });
  const small = await read<{ picture_url: string }>(`/files/${shared.id}?width=64`);
  const link = await create<{ url: string }>('/files/upload_urls', {
    filename: 'c.txt',
    content_type: 'text/plain',
    user,
  });
  const of = (url: string): Known => {
    const { pathname, searchParams } = new URL(url);
    return { file: pathname.split('/').at(-2) ?? file, ...Object.fromEntries(searchParams) };
  };
  return {
    fetchFileAvatar: of(agent.profile_picture.url),
    fetchFileOrgLogo: of(org.logo.url),
    fetchSharedFile: of(shared.share_url),
    downloadFile: of(shared.url),
    downloadFilePicture: of(small.picture_url),
    uploadFileByUrl: of(link.url),
  };
}

/** An assistant that is connected, and the request of another. */
async function createAssistants({ server, app, user }: World, read: Create) {
  const flow = new AssistantFlow(server, app.publishableKey, user.token);
  const { clientId } = await flow.connect();
  const { data } = await read<{ data: Made[] }>('/connected_assistants');
  return { connected: data[0]?.id, request: await flow.request(flow.parameters(clientId)) };
}

/** A session to refresh, a console session, and a sign-in at an issuer that is almost complete. */
async function createSignIn({ server: { api }, outside, app, user, password }: World, create: Create) {
  const client = { client_id: 'console', client_secret: 'console-secret' };
  const audience = 'https://quarry.example';
  const { id: issuer } = await create('/identity_issuers', {
    ...{ issuer: outside.provider.issuer, audience, create_users: true, console: client },
  });
  const publishable = { publishable_key: app.publishableKey };
  const login = { email: user.email, password };
  const session = await api<{ refresh_token: string }>('POST', '/api/v1/auth/login', {
    ...{ key: app.publishableKey, body: login },
  });
  const opened = await api<{ csrf_token: string }>('POST', '/console/session', {
    body: { developer_token: app.developerToken },
  });
  const started = await api<{ url: string }>('POST', '/console/oidc/start', {
    body: { ...publishable, identity_issuer: issuer },
  });
  const callback = new URL(await outside.provider.signIn(started.body.url, 'ada'));
  return {
    issuer,
    headers: {
      getConsoleSession: { cookie: cookieOf(opened.headers) },
      finishExternalSignIn: { cookie: cookieOf(started.headers) },
      getMcpResourceMetadata: {},
    } as Record<string, Record<string, string>>,
    others: {
      listSignInIssuers: publishable,
      startExternalSignIn: publishable,
      finishExternalSignIn: Object.fromEntries(callback.searchParams),
      getMcpResourceMetadata: { key: app.publishableKey },
      getAuthorizationServerMetadata: { key: app.publishableKey },
      registerAssistant: { key: app.publishableKey },
      authorizeAssistant: { key: app.publishableKey },
      exchangeAssistantToken: { key: app.publishableKey },
      revokeAssistantToken: { key: app.publishableKey },
      callAppMcp: { key: app.publishableKey },
    },
    bodies: {
      login,
      refreshSession: { refresh_token: session.body.refresh_token },
      createIdentityIssuer: { issuer: 'https://one.example.com', audience },
      developerCreateIdentityIssuer: { issuer: 'https://two.example.com', audience },
      startExternalSignIn: { ...publishable, identity_issuer: issuer },
    },
  };
}

function cookieOf(headers: Headers): string {
  return (headers.get('set-cookie') ?? '').split(';')[0] ?? '';
}

async function setJobsAside({ server: { api, services }, app }: World): Promise<Record<string, Known>> {
  const appId = parseId('app', app.app.id) ?? '';
  for (const number of [1, 2]) await setJobAside(services.db, 'embed_documents', { appId, number });
  const { body } = await api<{ data: Made[] }>('GET', '/api/v1/jobs', { key: app.secretKey });
  return { retrySetAsideJob: { job: body.data[0]?.id }, developerRetrySetAsideJob: { job: body.data[1]?.id } };
}

async function waitUntil(holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 300_000;
  await until(async () => {
    if (Date.now() > deadline) throw new Error('The document was not indexed in time.');
    return holds();
  });
}
