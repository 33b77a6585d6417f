import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { PlatformClient } from '@archastro/sdk';
import { agentSchema, storageFileSchema } from '@archastro/sdk/dist/types/common.js';
import { extractionSchema } from '@archastro/sdk/dist/types/extractions.js';
import { teamMembershipSchema, teamSchema } from '@archastro/sdk/dist/types/teams.js';
import { userSchema } from '@archastro/sdk/dist/types/users.js';
import { pixel } from '../../support/files.ts';
import { startTestServer } from '../../support/server.ts';

/*
 * The published client, unchanged but for its base URL, from sign-in to a document's text. Every answer also has to
 * pass the client's own runtime schemas, which refuse a null where they know only "absent".
 */

let now = Date.now();
const server = await startTestServer({ clock: { now: () => new Date(now) } });
after(() => server.close());
const { baseUrl, api, provision } = server;
const { app, org, admin, loner } = await provision.world();
const password = 'correct horse battery';

async function newUser(): Promise<{ id: string; email: string }> {
  const email = `sdk-${Math.random().toString(36).slice(2)}@example.test`;
  const made = await api<{ id: string }>('POST', '/api/v1/users', {
    key: app.secretKey,
    body: { email, name: 'Ada', password, org: org.id, org_role: 'member' },
  });
  assert.equal(made.status, 201, made.text);
  return { id: made.body.id, email };
}

test('the client signs in, and refreshes by itself when the access token has expired', async () => {
  const { id, email } = await newUser();
  const client = await PlatformClient.withCredentials(app.publishableKey, email, password, baseUrl);
  const me = await client.users.me();
  userSchema.parse(me);
  assert.equal(me.id, id);
  const first = client.refreshToken;
  assert.ok(first?.startsWith('rt_'));

  now += 2 * 3600 * 1000;
  assert.equal((await client.users.me()).id, id);
  assert.notEqual(client.refreshToken, first, 'the refresh token was rotated');

  // A token that was used before ends the whole session, for every holder.
  await assert.rejects(client.auth.refresh(first ?? ''), (error: { status?: number }) => error.status === 401);
  now += 2 * 3600 * 1000;
  await assert.rejects(client.users.me(), (error: { status?: number }) => error.status === 401);
  now -= 4 * 3600 * 1000;
});

test('the client gets the same 401 for a wrong password and an unknown address', async () => {
  const { email } = await newUser();
  for (const [address, secret] of [
    [email, 'wrong'],
    ['nobody@example.test', password],
  ] as const)
    await assert.rejects(
      PlatformClient.withCredentials(app.publishableKey, address, secret, baseUrl),
      (error: { status?: number }) => error.status === 401,
    );
});

test('the client reads users and keeps personal tokens', async () => {
  const { id, email } = await newUser();
  const client = await PlatformClient.withCredentials(app.publishableKey, email, password, baseUrl);
  userSchema.parse(await client.users.get(id));
  userSchema.parse(await client.users.get(admin.id));
  const token = await client.users.tokens.create('me', { name: 'Laptop', expires_in_days: 7 });
  const value = (token as { token?: string }).token ?? '';
  const other = new PlatformClient({ accessToken: value, baseUrl });
  assert.equal((await other.users.me()).id, id);
  const listed = await client.users.tokens.list('me');
  assert.deepEqual(
    listed.data.map((each: { id: string }) => each.id),
    [(token as { id?: string }).id],
  );
  await client.users.tokens.delete('me', listed.data[0]?.id ?? '');
  await assert.rejects(other.users.me(), (error: { status?: number }) => error.status === 401);
});

test('the client creates a team and manages its members', async () => {
  const client = PlatformClient.withToken(app.publishableKey, admin.token, baseUrl);
  const friend = await newUser();
  const team = await client.teams.create({ name: 'Research', description: 'Reads papers' });
  teamSchema.parse(team);
  const member = await client.teams.members.create(team.id, { user: friend.id, role: 'member' });
  teamMembershipSchema.parse(member);
  const agent = await client.agents.create({ name: 'Reader', team: team.id });
  const agentMember = await client.teams.members.create(team.id, { agent: agent.id, role: 'member' });
  teamMembershipSchema.parse(agentMember);
  const members = await client.teams.members.list(team.id);
  assert.equal(members.data.length, 3);
  for (const each of members.data) teamMembershipSchema.parse(each);
  const raised = await client.teams.members.update(team.id, friend.id, { role: 'admin' });
  assert.equal(raised.role, 'admin');
  const listed = await client.teams.list({ membership: 'joined' });
  assert.ok(listed.data.some((each: { id: string }) => each.id === team.id));
  teamSchema.parse(await client.teams.update(team.id, { name: 'Reading' }));
  assert.equal((await client.teams.get(team.id)).name, 'Reading');
  await client.teams.delete(team.id);
  await assert.rejects(client.teams.get(team.id), (error: { status?: number }) => error.status === 404);
});

test('the client creates, finds, changes and deletes agents', async () => {
  const client = PlatformClient.withToken(app.publishableKey, admin.token, baseUrl);
  const key = `helper-${Date.now()}`;
  const agent = await client.agents.create({
    name: 'Helper',
    lookup_key: key,
    identity: 'You help.',
    metadata: { tier: 1 },
    profile_picture: { data: pixel.toString('base64'), filename: 'p.png', mime_type: 'image/png' },
  });
  agentSchema.parse(agent);
  assert.equal((await client.agents.get(key)).id, agent.id);
  const listed = await client.agents.list({ search: 'helper' });
  assert.ok(listed.data.some((each: { id: string }) => each.id === agent.id));
  const changed = await client.agents.update(agent.id, { name: 'Helper 2' });
  agentSchema.parse(changed);
  assert.equal(changed.name, 'Helper 2');
  const stranger = PlatformClient.withToken(app.publishableKey, loner.token, baseUrl);
  await assert.rejects(stranger.agents.get(agent.id), (error: { status?: number }) => error.status === 404);
  await client.agents.delete(agent.id);
  await assert.rejects(client.agents.get(agent.id), (error: { status?: number }) => error.status === 404);
});

test('the client lists the orgs of the caller', async () => {
  const client = PlatformClient.withToken(app.publishableKey, admin.token, baseUrl);
  const orgs = (await client.orgs.list()) as { data: { id: string }[] };
  assert.deepEqual(
    orgs.data.map(({ id }) => id),
    [org.id],
  );
});

for (const [who, make] of [
  ['an end user', () => PlatformClient.withToken(app.publishableKey, admin.token, baseUrl)],
  ['a secret key', () => PlatformClient.withSecretKey(app.secretKey, baseUrl)],
] as const)
  test(`the client uploads a document and gets its text, as ${who}`, async () => {
    const client = make();
    const file = await client.files.create({
      filename: 'report.html',
      content_type: 'text/html',
      data: Buffer.from('<h1>Report</h1><p>All is well.</p>').toString('base64'),
    });
    storageFileSchema.parse(file);
    const extraction = await client.extractions.create({
      file: file.id,
      destination_kind: 'config',
      destination_path: 'reports',
    });
    extractionSchema.parse(extraction);
    assert.deepEqual([extraction.state, extraction.kind, extraction.output_count], ['done', 'document', 1]);
    const again = await client.extractions.get(extraction.id);
    extractionSchema.parse(again);
    const url = again.outputs?.[0]?.file?.url ?? '';
    assert.match(await (await fetch(url)).text(), /# Report\s+All is well\./);
  });
