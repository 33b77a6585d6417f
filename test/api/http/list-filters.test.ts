import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { formatId, newUuid } from '../../../src/lib/ids.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import type { TestResource, TestTenants, TestUser } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
let world: TestTenants;

before(async () => {
  server = await startTestServer();
  world = await server.provision.world();
});
after(() => server.close());

type Id = { id: string };
type Ids = { data: Id[]; total_entries: number };

async function list(who: TestUser | undefined, path: string, query: Record<string, string> = {}): Promise<string[]> {
  const credential = who === undefined ? { key: world.app.secretKey } : { token: who.token };
  const answer = await server.api<Ids>('GET', `/api/v1${path}?${new URLSearchParams(query)}`, credential);
  assert.equal(answer.status, 200, `${path}: ${answer.text}`);
  assert.equal(answer.body.total_entries, answer.body.data.length, path);
  return answer.body.data.map(({ id }) => id);
}

async function make(path: string, body: unknown): Promise<string> {
  const answer = await server.api<Id>('POST', `/api/v1${path}`, { key: world.app.secretKey, body });
  assert.equal(answer.status, 201, `${path}: ${answer.text}`);
  return answer.body.id;
}

/** A row that the caller lists, and a filter that matches it by something that the caller does not see. */
async function assertHidden(who: TestUser, path: string, member: string, named: TestResource, id: string) {
  assert.ok((await list(who, path)).includes(id), `${path}: the caller does not list the row`);
  assert.deepEqual(
    await list(who, path, { [member]: named.id }),
    [],
    `${path}?${member}= of what the caller cannot see`,
  );
  assert.ok((await list(undefined, path, { [member]: named.id })).includes(id), `${path}?${member}= of a secret key`);
}

const text = { filename: 'a.txt', content_type: 'text/plain', data: 'QQ==' };

test('a list filter by an org that the caller has left gives an empty page', async () => {
  const { app, org } = world;
  const user = await server.provision.user(app, { org });
  const source = await make('/knowledge_sources', { type: 'knowledge/documents', user: user.id });
  const file = await make('/files', { ...text, user: user.id });
  const agent = await server.provision.agent(app, { org, user });
  assert.deepEqual(await list(user, '/knowledge_sources', { org: org.id }), [source]);
  const left = await server.api('PATCH', `/api/v1/users/${user.id}`, { key: app.secretKey, body: { org: null } });
  assert.equal(left.status, 200, left.text);
  await assertHidden(user, '/knowledge_sources', 'org', org, source);
  await assertHidden(user, '/files', 'org', org, file);
  await assertHidden(user, '/agents', 'org', org, agent.id);
});

test('a list filter by a team, a user, an agent or a thread that the caller cannot see gives an empty page', async () => {
  const { app, org, admin, member, loner } = world;
  const everyone = { acl: { grants: [{ principal_type: 'everyone', actions: ['read'] }] } };
  const team = await server.provision.team(app, { members: [[member, 'owner']] });
  const agent = await server.provision.agent(app, { user: member });
  const ofTeam = await make('/files', { ...text, ...everyone, team: team.id });
  const ofUser = await make('/files', { ...text, ...everyone, user: member.id });
  const ofAgent = await make('/files', { ...text, ...everyone, agent: agent.id });
  await assertHidden(loner, '/files', 'team', team, ofTeam);
  await assertHidden(loner, '/files', 'user', member, ofUser);
  await assertHidden(loner, '/files', 'agent', agent, ofAgent);

  // An admin of the org sees the sources of its users and agents, but not those agents, their threads and teams.
  const orgAgent = await server.provision.agent(app, { org, user: member });
  const thread = await make('/threads', { user: member.id });
  const installation = await make('/installations', { agent: orgAgent.id, kind: 'webhook/inbound' });
  const source = await make('/knowledge_sources', {
    type: 'knowledge/documents',
    agent: orgAgent.id,
    thread,
  });
  await server.services.db`update knowledge_sources set installation_id = (
    select id from installations where agent_id = ${orgAgent.uuid}) where agent_id = ${orgAgent.uuid}`;
  for (const [kind, id] of [
    ['thread', thread],
    ['installation', installation],
    ['agent', orgAgent.id],
  ] as const)
    await assertHidden(admin, '/knowledge_sources', kind, { id, uuid: '' }, source);
});

test('documents and extractions are filtered by what is visible to the caller', async () => {
  const { app, org, admin, member } = world;
  const agent = await server.provision.agent(app, { org, user: member });
  const source = await make('/knowledge_sources', { type: 'knowledge/documents', agent: agent.id });
  await knowledgeOf(server, { key: app.secretKey }).push(source, 'A text.', { title: 'A' });
  const documents = await list(admin, '/knowledge_documents');
  assert.equal(documents.length, 1);
  await assertHidden(admin, '/knowledge_documents', 'agent', agent, documents[0] ?? '');
});

test('a list filter by an unknown id returns an empty page', async () => {
  const nobody = { org: 'org', team: 'tem', user: 'usr', agent: 'agt', thread: 'thr', installation: 'cin' } as const;
  const of = (kind: keyof typeof nobody) => formatId(kind, newUuid());
  const filters: Record<string, (keyof typeof nobody)[]> = {
    '/agents': ['user', 'org'],
    '/files': ['agent', 'org', 'team', 'user'],
    '/config': ['agent', 'org'],
    '/extractions': ['agent'],
    '/knowledge_sources': ['team', 'thread', 'installation', 'agent', 'org'],
    '/knowledge_documents': ['installation', 'agent'],
  };
  for (const [path, members] of Object.entries(filters))
    for (const member of members)
      for (const who of [world.admin, undefined])
        assert.deepEqual(await list(who, path, { [member]: of(member) }), [], `${path}?${member}=`);
});
