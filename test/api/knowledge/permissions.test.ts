import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Json, knowledgeOf } from '../../support/knowledge.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const world = await server.provision.world();
const { member, viewer, admin, loner } = world;
const app = knowledgeOf(server, { key: world.app.secretKey });
const as = (user: { token: string }) => knowledgeOf(server, { token: user.token });
const org = { org: world.org.id };
const grant = (principal_type: string, principal?: string) => ({ principal_type, ...(principal ? { principal } : {}) });
const acl = (...grants: Json[]) => ({ acl: { grants } });
const wrong = (status: number, body: unknown) => ({ status, fields: (body as ErrorBody).error.fields });

async function createGroup(external: string, users: { id: string }[], namespace = 'test'): Promise<string> {
  const made = await app.send<{ id: string }>('POST', '/groups', { namespace, external_id: external });
  assert.equal(made.status, 201, made.text);
  const set = await app.send('PUT', `/groups/${made.body.id}/members`, { users: users.map(({ id }) => id) });
  assert.equal(set.status, 204, set.text);
  return made.body.id;
}

const sees = async (user: { token: string }, document: string) =>
  (await as(user).send('GET', `/knowledge_documents/${document}`)).status === 200;

test('a document is visible to those readers of its source whom its grants name', async () => {
  const source = await app.createSource(org);
  const team = await server.provision.team(world.app, { members: [[viewer, 'member']] });
  const group = await createGroup('visible', [viewer, loner]);
  const cases: [Json, { member: boolean; viewer: boolean; admin: boolean }][] = [
    [grant('user', member.id), { member: true, viewer: false, admin: false }],
    [grant('team', team.id), { member: false, viewer: true, admin: false }],
    [grant('group', group), { member: false, viewer: true, admin: false }],
    [grant('org', world.org.id), { member: true, viewer: true, admin: true }],
    [grant('org', world.otherOrg.id), { member: false, viewer: false, admin: false }],
    [grant('org_role', 'admin'), { member: false, viewer: false, admin: true }],
    [grant('everyone'), { member: true, viewer: true, admin: true }],
  ];
  for (const [one, expected] of cases) {
    const document = await app.push(source, `Lapwings ${JSON.stringify(one)}.`, acl(one));
    const seen = {
      member: await sees(member, document),
      viewer: await sees(viewer, document),
      admin: await sees(admin, document),
    };
    assert.deepEqual(seen, expected, JSON.stringify(one));
    // A grant narrows the readers of the source, and adds none.
    assert.equal(await sees(loner, document), false);
    assert.equal(await sees(world.otherUser, document), false);
    const found = (await as(member).search(source, { query: 'lapwings', max_results: 50 })).map((hit) => hit.document);
    assert.equal(found.includes(document), expected.member);
  }
  const none = await app.push(source, 'Nobody.', acl());
  for (const user of [member, viewer, admin]) assert.equal(await sees(user, none), false);
  const { body } = await app.send<Json>('GET', `/knowledge_documents/${none}`);
  assert.deepEqual(body.acl, { grants: [] });
});

test('a change of grants or memberships is effective for the next request', async () => {
  const source = await app.createSource(org);
  const group = await createGroup('next request', []);
  const document = await app.push(source, 'Redshanks wade.', acl(grant('group', group)));
  const finds = async () => (await as(member).search(source, 'redshanks')).length > 0;
  assert.equal(await finds(), false);
  await app.send('POST', `/groups/${group}/members`, { user: member.id });
  assert.equal(await finds(), true);
  await app.send('DELETE', `/groups/${group}/members/${member.id}`);
  assert.equal(await finds(), false);
  const added = await app.send<Json>('PATCH', `/knowledge_documents/${document}/acl`, {
    add: [grant('user', member.id)],
  });
  assert.equal(added.status, 200, added.text);
  assert.deepEqual(added.body.acl, {
    grants: [
      { principal_type: 'group', principal: group, actions: ['read'] },
      { principal_type: 'user', principal: member.id, actions: ['read'] },
    ],
  });
  assert.equal(await finds(), true);
  await app.send('PATCH', `/knowledge_documents/${document}/acl`, { remove: [grant('user', member.id)] });
  assert.equal(await finds(), false);
  assert.equal((await app.send('DELETE', `/knowledge_documents/${document}/acl`)).status, 204);
  assert.equal(await finds(), true);
  assert.equal((await app.send<Json>('GET', `/knowledge_documents/${document}`)).body.acl, undefined);
});

test('a replaced document keeps its readers, unless the replacement names others', async () => {
  const source = await app.createSource(org);
  const document = await app.push(source, 'Old knots.', acl(grant('user', viewer.id)));
  const replace = async (body: Json) => {
    const {
      body: started,
      status,
      text,
    } = await app.send<{ id: string }>('PATCH', `/knowledge_documents/${document}`, body);
    assert.equal(status, 201, text);
    await app.waitForIngestion(started.id);
  };
  await replace({ content: { data: 'New knots.' } });
  assert.deepEqual([await sees(viewer, document), await sees(member, document)], [true, false]);
  await replace({ content: { data: 'Newer knots.' }, ...acl(grant('user', member.id)) });
  assert.deepEqual([await sees(viewer, document), await sees(member, document)], [false, true]);
  await replace({ content: { data: 'Newest knots.' }, acl: null });
  assert.deepEqual([await sees(viewer, document), await sees(member, document)], [true, true]);
});

test('those who may change the source set readers, and must stay among them', async () => {
  const source = await app.createSource(org);
  const path = `/knowledge_sources/${source}/ingest`;
  const body = { content: { data: 'Godwits.' } };
  const kept = await as(member).send<Json>('POST', path, { ...body, ...acl(grant('user', member.id)) });
  assert.equal(kept.status, 201, kept.text);
  const document = (kept.body.metadata as Json).document as string;
  const lost = await as(member).send('POST', path, { ...body, ...acl(grant('user', viewer.id)) });
  assert.deepEqual([lost.status, (lost.body as ErrorBody).error.fields?.[0]?.field], [422, 'acl']);
  const change = await as(member).send('PATCH', `/knowledge_documents/${document}/acl`, { grants: [] });
  assert.deepEqual([change.status, (change.body as ErrorBody).error.fields?.[0]?.field], [422, 'grants']);
  // A viewer reads, and may neither change nor see who else reads.
  const shared = { grants: [grant('user', member.id), grant('user', viewer.id)] };
  assert.equal((await as(member).send('PATCH', `/knowledge_documents/${document}/acl`, shared)).status, 200);
  const read = await as(viewer).send<Json>('GET', `/knowledge_documents/${document}`);
  assert.deepEqual([read.status, read.body.acl], [200, undefined]);
  assert.equal((await as(viewer).send('PATCH', `/knowledge_documents/${document}/acl`, shared)).status, 403);
  assert.equal((await as(admin).send('PATCH', `/knowledge_documents/${document}/acl`, shared)).status, 404);
  assert.equal((await as(loner).send('DELETE', `/knowledge_documents/${document}/acl`)).status, 404);
});

test('unknown principals and too many grants are refused by name', async () => {
  const source = await app.createSource(org);
  const path = `/knowledge_sources/${source}/ingest`;
  const send = (grants: Json[], user?: { token: string }) =>
    (user ? as(user) : app).send('POST', path, { content: { data: 'Dunlins.' }, acl: { grants } });
  const other = await createGroup('of somebody else', [viewer]);
  const cases: [Json[], string, { token: string }?][] = [
    [[grant('everyone'), grant('group', 'grp_0000000000000000000000')], 'acl.grants.1.principal'],
    [[grant('user', world.stranger.id)], 'acl.grants.0.principal'],
    [[grant('group', member.id)], 'acl.grants.0.principal'],
    [[grant('group')], 'acl.grants.0.principal'],
    [[grant('org_role', 'king')], 'acl.grants.0.principal'],
    [[grant('user', member.id), grant('group', other)], 'acl.grants.1.principal', member],
    [[{ ...grant('everyone'), actions: ['write'] }], 'acl.grants.0.actions.0'],
    [Array.from({ length: 1_500 }, () => grant('everyone')), 'acl.grants'],
    [Array.from({ length: 10_000 }, () => grant('everyone')), 'acl'],
  ];
  for (const [grants, field, user] of cases) {
    const { status, body } = await send(grants, user);
    const found = wrong(status, body);
    assert.equal(found.status, 422, JSON.stringify(body));
    assert.ok(
      found.fields?.some((each) => each.field === field),
      `${field}: ${JSON.stringify(found.fields)}`,
    );
  }
  const nothing = await app.push(source, 'Sanderlings.');
  const empty = await app.send('PATCH', `/knowledge_documents/${nothing}/acl`, {});
  assert.equal(empty.status, 422);
  const both = await app.send('PATCH', `/knowledge_documents/${nothing}/acl`, { grants: [], add: [] });
  assert.equal(both.status, 422);
  const pull = await app.send('POST', path, { pull: true, acl: { grants: [] } });
  assert.equal(pull.status, 422);
});

test('a restricted document cannot come from a file with more readers', async () => {
  const source = await app.createSource(org);
  const upload = async (more: Json) => {
    const data = Buffer.from('Curlews.').toString('base64');
    const made = await app.send<{ id: string }>('POST', '/files', {
      filename: 'a.txt',
      content_type: 'text/plain',
      data,
      ...more,
    });
    assert.equal(made.status, 201, made.text);
    return made.body.id;
  };
  const group = await createGroup('file readers', [member]);
  const cases: [Json, Json[], number][] = [
    [{}, [], 201],
    [org, [grant('user', member.id)], 422],
    [org, [grant('org', world.org.id)], 201],
    [{ user: member.id }, [grant('user', member.id)], 201],
    [{ user: member.id }, [grant('group', group)], 201],
    [{ user: viewer.id }, [grant('group', group)], 422],
    [
      { acl: { grants: [{ ...grant('org_role', 'admin'), actions: ['read'] }] }, ...org },
      [grant('org_role', 'admin')],
      422,
    ],
    [{ acl: { grants: [{ ...grant('everyone'), actions: ['read'] }] } }, [grant('org', world.org.id)], 422],
    [{ acl: { grants: [{ ...grant('everyone'), actions: ['read'] }] } }, [grant('everyone')], 201],
  ];
  for (const [owner, grants, status] of cases) {
    const file = await upload(owner);
    const made = await app.send('POST', `/knowledge_sources/${source}/ingest`, {
      file,
      ...acl(...grants),
      on_active: 'queue',
    });
    assert.equal(made.status, status, `${JSON.stringify([owner, grants])}: ${made.text}`);
    if (status === 422) assert.equal((made.body as ErrorBody).error.fields?.[0]?.field, 'file');
  }
  const file = await upload(org);
  const { metadata } = await app.ingest(source, { file, on_active: 'queue' });
  const later = await app.send('PATCH', `/knowledge_documents/${metadata.document}/acl`, { grants: [] });
  assert.equal(later.status, 422);
});

test('dedupe finds only documents with the same readers', async () => {
  const source = await app.createSource(org);
  const hidden = await app.push(source, 'Same bytes.', acl(grant('user', viewer.id)));
  const again = (more: Json, who = app) =>
    who.ingest(source, { content: { data: 'Same bytes.' }, dedupe: true, ...more });
  const open = await again({}, as(member));
  assert.deepEqual([open.metadata.document_reused, open.metadata.document === hidden], [false, false]);
  const mine = await again(acl(grant('user', member.id)), as(member));
  assert.equal(mine.metadata.document_reused, false);
  const same = await again(acl(grant('user', viewer.id)));
  assert.deepEqual([same.metadata.document_reused, same.metadata.document], [true, hidden]);
});

test('groups are managed by keys and developers, with unique names in each namespace', async () => {
  const body = { namespace: 'wiki', external_id: 'editors', name: 'Editors' };
  const made = await app.send<Json>('POST', '/groups', body);
  assert.equal(made.status, 201, made.text);
  const twice = await app.send('POST', '/groups', body);
  assert.deepEqual([twice.status, (twice.body as ErrorBody).error.code], [422, 'already_exists']);
  assert.equal((await app.send('POST', '/groups', { ...body, namespace: 'mail' })).status, 201);
  const listed = await app.send<{ data: Json[]; total_entries: number }>('GET', '/groups?namespace=wiki');
  assert.deepEqual([listed.body.total_entries, listed.body.data[0]?.id], [1, made.body.id]);
  const path = `/groups/${made.body.id}`;
  assert.equal((await app.send<Json>('PATCH', path, { name: null })).body.name, undefined);
  assert.equal((await app.send('POST', `${path}/members`, { user: member.id })).status, 201);
  assert.equal((await app.send('POST', `${path}/members`, { user: member.id })).status, 422);
  assert.equal((await app.send('POST', `${path}/members`, { user: world.stranger.id })).status, 422);
  const unknown = await app.send('PUT', `${path}/members`, { users: [viewer.id, world.stranger.id] });
  assert.deepEqual([unknown.status, (unknown.body as ErrorBody).error.fields?.[0]?.field], [422, 'users.1']);
  const members = await app.send<{ data: { user: Json }[] }>('GET', `${path}/members`);
  assert.deepEqual(
    members.body.data.map(({ user }) => user.id),
    [member.id],
  );
  const ofUser = await app.send<{ data: Json[] }>('GET', `/groups?user=${member.id}&namespace=wiki`);
  assert.deepEqual(
    ofUser.body.data.map(({ id }) => id),
    [made.body.id],
  );
  assert.equal((await app.send('DELETE', `${path}/members/${viewer.id}`)).status, 404);
  assert.equal((await as(admin).send('GET', path)).status, 403);
  assert.equal((await app.send('DELETE', path)).status, 204);
  assert.equal((await app.send('GET', path)).status, 404);
});
