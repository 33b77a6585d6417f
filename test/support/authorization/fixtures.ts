import assert from 'node:assert/strict';
import { formatId, newUuid, parseId } from '../../../src/lib/ids.ts';
import { connectAssistant } from '../assistant.ts';
import type { TestUser } from '../provisioner.ts';
import type { TestServer } from '../server.ts';
import { setJobAside } from '../set-aside-job.ts';
import { storeResponse } from '../stored-response.ts';
import { until } from '../until.ts';
import { uploadHeaders } from '../uploads.ts';
import type { Ownership, Tenants } from './tenants.ts';

/** What a request needs: the resource that it names, and who owns it. */
export type Target = { id: string; parent?: string; whose: Ownership };

/** Creates resources of every kind for every ownership, through the API and with the key of their app or sandbox. */
export function createFixtures({ api, provision, services }: TestServer, tenants: Tenants) {
  const { app, sandbox, people, agent, scopes, owners } = tenants;

  type Made = { id: string };
  const keyOf = (whose: Ownership) => scopes[whose].secretKey;
  const ownerIds = (whose: Ownership) =>
    Object.fromEntries(Object.entries(owners[whose]).map(([member, { id }]) => [member, id]));
  const persons: Partial<Record<Ownership, TestUser>> = {
    'other-org': people.outsider,
    'other-app': people.stranger,
    sandbox: people.sandboxed,
  };
  const userOf = (whose: Ownership) => persons[whose] ?? people.owner;

  /** Creates a resource through the API, with the key of its app or sandbox. */
  async function post(whose: Ownership, path: string, body: object): Promise<Target> {
    const made = await api<Made>('POST', `/api/v1${path}`, { key: keyOf(whose), body });
    assert.equal(made.status, 201, `${path} ${whose}: ${made.text}`);
    return { id: made.body.id, whose };
  }

  /** Runs an operation that must return 200. */
  async function change(whose: Ownership, path: string, body: object): Promise<Made> {
    const answer = await api<Made>('POST', `/api/v1${path}`, { key: keyOf(whose), body });
    assert.equal(answer.status, 200, `${path} ${whose}: ${answer.text}`);
    return answer.body;
  }

  /** A readable document of a source: its ingestion has ended. */
  async function documentOf({ whose, id: source }: Target): Promise<Target> {
    const ingestion = await post(whose, `/knowledge_sources/${source}/ingest`, { content: { data: 'Text.' } });
    const path = `/api/v1/knowledge_ingestions/${ingestion.id}`;
    let document: string | undefined;
    await until(async () => {
      const { body } = await api<{ status: string; metadata: { document: string } }>('GET', path, {
        key: keyOf(whose),
      });
      assert.notEqual(body.status, 'failed');
      if (body.status === 'succeeded') document = body.metadata.document;
      return document !== undefined;
    });
    return { id: document ?? '', parent: source, whose };
  }

  const text = { filename: 'a.txt', content_type: 'text/plain', data: Buffer.from('Text.').toString('base64') };
  const make = {
    file: (whose: Ownership) => post(whose, '/files', { ...text, ...ownerIds(whose) }),
    /** An upload of one byte, by the user of this ownership. */
    async upload(whose: Ownership): Promise<Target> {
      const headers = uploadHeaders({ filename: 'a', content_type: 'x/y' });
      const made = await api<Made>('POST', '/api/v1/uploads', { token: userOf(whose).token, headers });
      assert.equal(made.status, 201, made.text);
      return { id: made.body.id, whose };
    },
    agent: (whose: Ownership) => post(whose, '/agents', { name: 'Agent', ...ownerIds(whose) }),
    issuer: (whose: Ownership) =>
      post(whose, '/identity_issuers', { issuer: `https://${newUuid()}.example.com`, audience: 'quarry' }),
    group: (whose: Ownership) => post(whose, '/groups', { namespace: 'test', external_id: newUuid() }),
    /** A finished erasure of a user. */
    async erasure(whose: Ownership): Promise<Target> {
      const user = await make.spareUser(whose);
      const key = keyOf(whose);
      const made = await api<Made>('POST', '/api/v1/erasures', { key, body: { user: user.id } });
      assert.equal(made.status, 202, made.text);
      await until(async () => {
        const found = await api<{ status: string }>('GET', `/api/v1/erasures/${made.body.id}`, { key });
        return found.body.status === 'done';
      });
      return { id: made.body.id, whose };
    },
    async groupMember(whose: Ownership): Promise<Target> {
      const group = await make.group(whose);
      const user = await make.spareUser(whose);
      const path = `/api/v1/groups/${group.id}/members`;
      const added = await api('POST', path, { key: keyOf(whose), body: { user: user.id } });
      assert.equal(added.status, 201, added.text);
      return { ...user, parent: group.id };
    },
    thread: (whose: Ownership) => post(whose, '/threads', { title: 'Thread', ...ownerIds(whose) }),
    async installation(whose: Ownership) {
      const { id } = whose === 'agent' ? agent : await make.agent(whose);
      return post(whose, '/installations', { agent: id, kind: 'webhook/inbound' });
    },
    async org(whose: Ownership): Promise<Target> {
      if (whose === 'org') return { id: tenants.org.id, whose };
      if (whose === 'other-org') return { id: tenants.otherOrg.id, whose };
      return post(whose, '/orgs', { name: 'Org' });
    },
    /** A team with a member who can be removed. */
    async team(whose: Ownership): Promise<Target> {
      const scope = scopes[whose];
      const spared = await provision.user(scope);
      const members: NonNullable<Parameters<typeof provision.team>[1]>['members'] = [[spared, 'member']];
      if (whose === 'team') members.push([people.owner, 'owner'], [people.teammate, 'member']);
      const made = await provision.team(scope, {
        ...(whose === 'team' ? { org: tenants.org } : whose === 'other-org' ? { org: tenants.otherOrg } : {}),
        members,
      });
      // Otherwise, a change by SQL takes effect only when its notification arrives.
      services.credentials.forget();
      return { id: spared.id, parent: made.id, whose };
    },
    user: async (whose: Ownership): Promise<Target> => ({ id: userOf(whose).id, whose }),
    spareUser: async (whose: Ownership): Promise<Target> => ({ id: (await provision.user(scopes[whose])).id, whose }),
    async token(whose: Ownership): Promise<Target> {
      const user = userOf(whose).id;
      return { ...(await post(whose, `/users/${user}/tokens`, { type: 'personal' })), parent: user };
    },
    /** An assistant that the user of this ownership connected. */
    async assistant(whose: Ownership): Promise<Target> {
      const id = newUuid();
      await connectAssistant(services.db, { app: scopes[whose].app.uuid, user: userOf(whose).uuid, id });
      return { id: formatId('assistant', id), whose };
    },
    sandbox: async (whose: Ownership): Promise<Target> => ({
      id: whose === 'sandbox' ? sandbox.sandbox.id : whose,
      whose,
    }),
    spareSandbox: async (whose: Ownership): Promise<Target> => ({
      id: (await provision.sandbox(app)).sandbox.id,
      whose,
    }),
    /** A set-aside job of an ingestion. */
    async setAsideJob(whose: Ownership): Promise<Target> {
      const ingestion = await make.ingestion(whose);
      await setJobAside(services.db, 'ingest', {
        appId: parseId('app', scopes[whose].app.id),
        ingestionId: parseId('ingestion', ingestion.id),
      });
      const found = await api<{ data: (Made & { about: string })[] }>('GET', '/api/v1/jobs', { key: keyOf(whose) });
      return { id: found.body.data.find(({ about }) => about === ingestion.id)?.id ?? '', whose };
    },
    apiKey: (whose: Ownership) => post(whose, '/keys', { type: 'publishable' }),
    /** An extraction that belongs to its agent, to the requesting user, or to the org that a key names. */
    async extraction(whose: Ownership): Promise<Target> {
      const file = await make.file(whose);
      const body = { file: file.id, destination_kind: 'storage' };
      const user = owners[whose].user;
      if (user === undefined) return post(whose, '/extractions', { ...body, ...(await agentOwners(whose)) });
      const made = await api<Made>('POST', '/api/v1/extractions', { token: userOf(whose).token, body });
      assert.equal(made.status, 201, made.text);
      return { id: made.body.id, whose };
    },
    /** An entry of the owner, each at a path of its own. */
    async config(whose: Ownership): Promise<Target> {
      const file = await make.file(whose);
      const shelf = `shelf/${file.id}`;
      const body = { file: file.id, destination_kind: 'config', destination_path: shelf };
      const as = whose === 'mine' ? { token: people.owner.token } : { key: keyOf(whose) };
      const made = await api('POST', '/api/v1/extractions', {
        ...as,
        body: { ...body, ...(whose === 'mine' ? {} : ownerIds(whose)) },
      });
      assert.equal(made.status, 201, made.text);
      return { id: `${shelf}/a.md`, whose };
    },
    source: (whose: Ownership) =>
      post(whose, '/knowledge_sources', { type: 'knowledge/documents', ...oneOwner(whose) }),
    /** A source that keeps versions of its documents. */
    keepingSource: (whose: Ownership) =>
      post(whose, '/knowledge_sources', {
        ...{ type: 'knowledge/documents', version_retention_days: 30 },
        ...oneOwner(whose),
      }),
    /** The source of a webhook installation. */
    async inbound(whose: Ownership): Promise<Target> {
      const { id } = await make.installation(whose);
      const found = await api<{ data: Made[] }>('GET', `/api/v1/knowledge_sources?installation=${id}`, {
        key: keyOf(whose),
      });
      return { id: found.body.data[0]?.id ?? '', whose };
    },
    async ingestion(whose: Ownership): Promise<Target> {
      const source = await make.source(whose);
      return post(whose, `/knowledge_sources/${source.id}/ingest`, { content: { data: 'Text.' } });
    },
    /** A readable document: its ingestion has ended. */
    document: async (whose: Ownership): Promise<Target> => ({ whose, id: (await make.storeFile(whose)).id }),
    /** A document, as a file of its source. */
    async storeFile(whose: Ownership): Promise<Target> {
      return documentOf(await make.source(whose));
    },
    /** A document with an old version. */
    async changedDocument(whose: Ownership): Promise<Target> {
      const document = await documentOf(await make.keepingSource(whose));
      const path = `/api/v1/knowledge_documents/${document.id}`;
      const body = { content: { data: 'Other text.' } };
      assert.equal((await api('PATCH', path, { key: keyOf(whose), body })).status, 201);
      await until(async () => (await api<{ version: number }>('GET', path, { key: keyOf(whose) })).body.version === 2);
      return { id: document.id, whose };
    },
    /** A sync that has just begun. */
    async sync(whose: Ownership): Promise<Target> {
      const source = await make.source(whose);
      return post(whose, `/knowledge_sources/${source.id}/syncs`, { mode: 'full' });
    },
    emptySync: (whose: Ownership): Promise<Target> => make.sync(whose),
    abortedSync: (whose: Ownership): Promise<Target> => make.sync(whose),
    async batch(whose: Ownership): Promise<Target> {
      const source = await make.source(whose);
      const items = [{ content: { data: 'Text.' } }];
      return { ...(await post(whose, `/knowledge_sources/${source.id}/ingest/batch`, { items })), parent: source.id };
    },
    /** A thread of an agent that ingests its messages. */
    async agentThread(whose: Ownership): Promise<Target> {
      const { id } = whose === 'agent' ? agent : await make.agent(whose);
      await post(whose, '/installations', { agent: id, kind: 'thread/messages' });
      return post(whose, '/threads', { agent: id });
    },
    model: (whose: Ownership) =>
      post(whose, '/models', { name: `model-${++entries}`, provider: 'anthropic', model: 'm' }),
    /** A model, by its name. */
    async modelOf(whose: Ownership): Promise<Target> {
      const { id } = await make.model(whose);
      const { body } = await api<{ name: string }>('GET', `/api/v1/models/${id}`, { key: keyOf(whose) });
      return { id: body.name, whose };
    },
    async modelAlias(whose: Ownership): Promise<Target> {
      const { id } = await make.modelOf(whose);
      return post(whose, '/model_aliases', { name: `alias-${++entries}`, models: [id] });
    },
    modelBudget: (whose: Ownership) => post(whose, '/model_budgets', { subject: 'user', period: 'day', tokens: 1 }),
    /** The record of a call, for the app. */
    async modelCall(whose: Ownership): Promise<Target> {
      const { id } = await make.model(whose);
      const call = newUuid();
      await services.db`
        insert into model_calls (app_id, id, sandbox_id, model, provider, provider_model, reserved_tokens, created_at)
        select app_id, ${call}, sandbox_id, name, provider, model, 1, now() from models
        where id = ${parseId('model', id) ?? ''}`;
      return { id: formatId('modelCall', call), whose };
    },
    /** A stored response of the user. */
    response: async (whose: Ownership): Promise<Target> => ({
      id: await storeResponse(services.db, userOf(whose).uuid),
      whose,
    }),
    webhook: (whose: Ownership) =>
      post(whose, '/webhooks', { url: 'https://receiver.invalid/hook', events: ['never'] }),
    async delivery(whose: Ownership): Promise<Target> {
      const webhook = await make.webhook(whose);
      return { ...(await post(whose, `/webhooks/${webhook.id}/test`, {})), parent: webhook.id };
    },
    /** An automation without a workflow, whose runs wait to be claimed. */
    async automation(whose: Ownership): Promise<Target> {
      const made = await post(whose, '/automations', { name: 'Automation', type: 'invoked', ...oneOwner(whose) });
      await change(whose, `/automations/${made.id}/activate`, {});
      return made;
    },
    async automationWithGraph(whose: Ownership): Promise<Target> {
      const nodes = [{ id: 'start', kind: 'trigger' }];
      const workflow = { kind: 'WorkflowGraph', version: 1, start_node: 'start', nodes };
      const body = { name: 'Automation', type: 'invoked', workflow, ...oneOwner(whose) };
      return post(whose, '/automations', body);
    },
    async run(whose: Ownership): Promise<Target> {
      const automation = await make.automation(whose);
      const { id } = await change(whose, `/automations/${automation.id}/invoke`, {});
      return { id, whose };
    },
    async endedRun(whose: Ownership): Promise<Target> {
      const { id } = await make.run(whose);
      await change(whose, `/automation_runs/${id}/cancel`, {});
      return { id, whose };
    },
    async claimedRun(whose: Ownership): Promise<Target> {
      const automation = await make.automation(whose);
      await change(whose, `/automations/${automation.id}/invoke`, {});
      const { id } = await change(whose, `/automations/${automation.id}/claim`, { lease_seconds: 600 });
      return { id, whose };
    },
    /** An approval for the owner: a user, a team, or the members of an organisation. */
    async approval(whose: Ownership): Promise<Target> {
      const { user, team, org } = ownerIds(whose);
      const audience =
        user !== undefined
          ? { users: [user] }
          : team !== undefined
            ? { teams: [team] }
            : { org, roles: ['member', 'admin'] };
      const nodes = [{ id: 'ask', kind: 'approve', question: 'Sure?', ...audience }];
      const workflow = { kind: 'WorkflowGraph', version: 1, start_node: 'ask', nodes };
      const automation = await post(whose, '/automations', { name: 'Asks', type: 'invoked', workflow });
      await change(whose, `/automations/${automation.id}/activate`, {});
      const run = await change(whose, `/automations/${automation.id}/invoke`, {});
      let approval: string | undefined;
      await until(async () => {
        const path = `/api/v1/approvals?run=${run.id}`;
        const { body } = await api<{ data: Made[] }>('GET', path, { key: keyOf(whose) });
        approval = body.data[0]?.id;
        return approval !== undefined;
      });
      return { id: approval ?? '', whose };
    },
    async secret(whose: Ownership): Promise<Target> {
      const id = `SECRET_${++entries}`;
      const made = await api('PUT', `/api/v1/secrets/${id}`, { key: keyOf(whose), body: { value: 'v' } });
      assert.equal(made.status, 200, made.text);
      return { id, whose };
    },
    async entry(whose: Ownership): Promise<Target> {
      const key = `key-${++entries}`;
      const made = await api('PUT', `/api/v1/kv/${key}`, {
        key: keyOf(whose),
        body: { value: 'v', user: userOf(whose).id },
      });
      assert.equal(made.status, 200, made.text);
      return { id: key, whose };
    },
  };
  let entries = 0;

  /** A single owner. The server adds its org. */
  function oneOwner(whose: Ownership): Record<string, string> {
    const { org, ...individual } = ownerIds(whose);
    return Object.keys(individual).length > 0 || org === undefined ? individual : { org };
  }

  /** A team's job belongs to one of the team's agents. */
  async function agentOwners(whose: Ownership): Promise<Record<string, string>> {
    if (whose !== 'team') return ownerIds(whose);
    return { agent: (await make.agent('team')).id };
  }

  return { make, userOf, oneOwner, post, text };
}

export type Fixtures = ReturnType<typeof createFixtures>;
