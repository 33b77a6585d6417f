import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { formatId, newUuid } from '../../../src/lib/ids.ts';
import type { FileBody } from '../../support/files.ts';
import type { TestUser } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const { api, provision } = server;
const { app, org, otherOrg, admin, member, viewer, otherUser, loner, otherApp, stranger } = await provision.world();
const key = app.secretKey;
const team = await provision.team(app, { members: [[loner, 'member']] });
const agent = await provision.agent(app, { user: otherUser });

type Grant = { principal_type: string; principal?: string; actions: string[] };

async function upload(acl?: object, who: object = { token: member.token }): Promise<FileBody> {
  const body = { filename: 'a.txt', content_type: 'text/plain', data: 'eA==', ...(acl ? { acl } : {}) };
  const answer = await api<FileBody>('POST', '/api/v1/files', { ...who, body });
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
}

const grant = (principal_type: string, principal?: string, ...actions: string[]): Grant => ({
  principal_type,
  ...(principal === undefined ? {} : { principal }),
  actions: actions.length === 0 ? ['read'] : actions,
});
const patch = <T = FileBody>(id: string, body: object, who: object = { key }) =>
  api<T>('PATCH', `/api/v1/files/${id}`, { ...who, body });
const sees = async (user: TestUser, file: FileBody) =>
  (await api('GET', `/api/v1/files/${file.id}`, { token: user.token })).status === 200;

test('each kind of principal opens the file only to the callers that it names', async () => {
  const people = { admin, viewer, otherUser, loner };
  for (const [principal_type, principal, expected] of [
    ['user', loner.id, ['loner']],
    ['team', team.id, ['loner']],
    ['org', otherOrg.id, ['otherUser']],
    ['org_role', 'viewer', ['viewer']],
    ['org_role', 'admin', ['admin']],
    ['everyone', undefined, ['admin', 'viewer', 'otherUser', 'loner']],
    ['agent', agent.id, []],
  ] as const) {
    // The file is of a member of `org`, so `org_role` means roles there.
    const file = await upload();
    await patch(file.id, { acl: { grants: [grant(principal_type, principal)] } });
    const seeing: string[] = [];
    for (const [name, user] of Object.entries(people)) if (await sees(user, file)) seeing.push(name);
    assert.deepEqual(seeing, expected, principal_type);
    assert.equal(await sees(stranger, file), false);
    assert.equal(await sees(member, file), true);
    const listed = await api<{ data: FileBody[] }>('GET', '/api/v1/files?page_size=100', { token: loner.token });
    assert.equal(
      listed.body.data.some(({ id }) => id === file.id),
      (expected as readonly string[]).includes('loner'),
    );
  }
});

test('grants replaces, add and remove patch, at upload and by PATCH', async () => {
  const file = await upload({ add: [grant('everyone')] });
  assert.deepEqual(file.acl, { grants: [grant('everyone')] });
  const acl = async (change: object) => (await patch(file.id, { acl: change })).body.acl?.grants;
  assert.deepEqual(await acl({ grants: [grant('user', loner.id), grant('org_role', 'viewer')] }), [
    grant('user', loner.id),
    grant('org_role', 'viewer'),
  ]);
  assert.deepEqual(await acl({ add: [grant('user', loner.id, 'write'), grant('org', org.id, 'read', 'comment')] }), [
    grant('user', loner.id, 'read', 'write'),
    grant('org_role', 'viewer'),
    grant('org', org.id, 'read', 'comment'),
  ]);
  assert.deepEqual(await acl({ remove: [{ principal_type: 'org_role', principal: 'viewer' }] }), [
    grant('user', loner.id, 'read', 'write'),
    grant('org', org.id, 'read', 'comment'),
  ]);
  assert.equal((await acl({}))?.length, 2);
  assert.deepEqual(await acl({ grants: [] }), []);
  assert.equal(await sees(loner, file), false);
});

test('an invalid ACL is 422 on its member, at upload and by PATCH', async () => {
  const file = await upload();
  const everyone = grant('everyone');
  for (const [acl, field] of [
    [{ grants: [], add: [] }, 'acl.add'],
    [{ grants: [everyone], remove: [] }, 'acl.remove'],
    [{ grants: [{ ...everyone, principal: member.id }] }, 'acl.grants.0.principal'],
    [{ grants: [grant('user')] }, 'acl.grants.0.principal'],
    [{ grants: [everyone, grant('user', team.id)] }, 'acl.grants.1.principal'],
    [{ add: [grant('org_role', 'owner')] }, 'acl.add.0.principal'],
    [{ add: [grant('user', formatId('user', newUuid()))] }, 'acl.add.0.principal'],
    [{ add: [grant('user', stranger.id)] }, 'acl.add.0.principal'],
    [{ add: [grant('team', formatId('team', newUuid()))] }, 'acl.add.0.principal'],
    [{ add: [grant('org', formatId('org', newUuid()))] }, 'acl.add.0.principal'],
    [{ add: [grant('agent', formatId('agent', newUuid()))] }, 'acl.add.0.principal'],
    [{ remove: [{ principal_type: 'user', principal: formatId('user', newUuid()) }] }, 'acl.remove.0.principal'],
    [{ remove: [{ principal_type: 'everyone', actions: ['read'] }] }, 'acl.remove.0.actions'],
    [{ grants: null }, 'acl.grants'],
    [{ other: [] }, 'acl.other'],
  ] as [object, string][]) {
    const changed = await patch<ErrorBody>(file.id, { acl });
    assert.deepEqual([changed.status, changed.body.error.fields[0]?.field], [422, field], JSON.stringify(acl));
    const uploaded = await api<ErrorBody>('POST', '/api/v1/files', {
      key,
      body: { filename: 'a', content_type: 'text/plain', data: '', acl },
    });
    assert.deepEqual([uploaded.status, uploaded.body.error.fields[0]?.field], [422, field], JSON.stringify(acl));
  }
  assert.deepEqual((await patch(file.id, {})).body.acl, { grants: [] });
});

test('a reader changes nothing, a writer only the name and metadata; neither sees the ACL', async () => {
  const file = await upload({ grants: [grant('user', viewer.id), grant('user', admin.id, 'write')] });
  const reader = { token: viewer.token };
  const writer = { token: admin.token };
  for (const body of [{ filename: 'b' }, { share: false }, { acl: {} }, {}])
    assert.equal((await patch(file.id, body, reader)).status, 403, JSON.stringify(body));
  assert.equal((await api('DELETE', `/api/v1/files/${file.id}`, reader)).status, 403);
  const renamed = await patch(file.id, { filename: 'b.txt', provider_metadata: { a: 1 } }, writer);
  assert.deepEqual([renamed.status, renamed.body.filename, renamed.body.acl], [200, 'b.txt', undefined]);
  for (const body of [{ share: false }, { acl: { grants: [] } }, { filename: 'c', share: false }])
    assert.equal((await patch(file.id, body, writer)).status, 403, JSON.stringify(body));
  assert.equal((await api('DELETE', `/api/v1/files/${file.id}`, writer)).status, 403);
  const seen = await api<FileBody>('GET', `/api/v1/files/${file.id}`, reader);
  assert.deepEqual([seen.status, seen.body.acl], [200, undefined]);
  const owned = await api<FileBody>('GET', `/api/v1/files/${file.id}`, { token: member.token });
  assert.equal(owned.body.acl?.grants.length, 2);
  const custom = await upload({ grants: [grant('user', viewer.id, 'comment')] });
  assert.equal(await sees(viewer, custom), false);
});

test('a grant ends with its principal, and a list that was read can be sent back', async () => {
  const guest = await provision.user(app, { org });
  const file = await upload({ grants: [grant('user', guest.id), grant('everyone')] });
  const hidden = await patch(file.id, { acl: { add: [grant('user', loner.id)] } });
  // The member does not see `loner`, but their grant is there already and may stay.
  const echoed = await patch(file.id, { acl: hidden.body.acl }, { token: member.token });
  assert.deepEqual([echoed.status, echoed.body.acl], [200, hidden.body.acl]);
  assert.equal((await api('DELETE', `/api/v1/users/${guest.id}`, { key })).status, 204);
  const left = await api<FileBody>('GET', `/api/v1/files/${file.id}`, { key });
  assert.deepEqual(left.body.acl?.grants, [grant('everyone'), grant('user', loner.id)]);
});

test('everyone means everyone of the app, never another app or sandbox', async () => {
  const file = await upload({ grants: [grant('everyone', undefined, 'write')] });
  const sandbox = await provision.sandbox(app);
  const sandboxed = await provision.user(sandbox);
  assert.equal(await sees(sandboxed, file), false);
  assert.equal(await sees(stranger, file), false);
  assert.equal((await api('GET', `/api/v1/files/${file.id}`, { key: otherApp.secretKey })).status, 404);
});
