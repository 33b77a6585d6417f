import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { formatId, newUuid } from '../../../src/lib/ids.ts';
import type { TestTenants, TestUser } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';

/* Rules of access that no single table of the matrix shows. */

let server: TestServer;
let world: TestTenants;
let key: string;

before(async () => {
  server = await startTestServer();
  world = await server.provision.world();
  key = world.app.secretKey;
});
after(() => server.close());

type Id = { id: string };
const as = (user: TestUser, method: string, path: string, body?: unknown) =>
  server.api<Id & ErrorBody>(method, `/api/v1${path}`, { token: user.token, ...(body === undefined ? {} : { body }) });

test('a team admin cannot appoint, change or remove an owner', async () => {
  const { member, viewer, loner, admin } = world;
  const { id } = await server.provision.team(world.app, {
    org: world.org,
    members: [
      [member, 'owner'],
      [viewer, 'admin'],
      [loner, 'member'],
    ],
  });
  server.services.credentials.forget();
  const members = `/teams/${id}/members`;
  const tries: [string, string, unknown?][] = [
    ['PATCH', `${members}/${viewer.id}`, { role: 'owner' }],
    ['PATCH', `${members}/${loner.id}`, { role: 'owner' }],
    ['POST', members, { user: admin.id, role: 'owner' }],
    ['PATCH', `${members}/${member.id}`, { role: 'member' }],
    ['DELETE', `${members}/${member.id}`],
    ['DELETE', members, { user: member.id }],
  ];
  for (const [method, path, body] of tries) {
    const answer = await as(viewer, method, path, body);
    assert.equal(answer.status, 403, `${method} ${path}: ${answer.text}`);
  }
  // What an admin of the team is for still works, and so does an owner's own choice of owners.
  assert.equal((await as(viewer, 'PATCH', `${members}/${loner.id}`, { role: 'admin' })).status, 200);
  assert.equal((await as(member, 'PATCH', `${members}/${loner.id}`, { role: 'owner' })).status, 200);
  assert.equal((await as(loner, 'DELETE', `${members}/${loner.id}`)).status, 204);
  assert.equal((await as(viewer, 'DELETE', `${members}/${viewer.id}`)).status, 204);
});

test('a user who leaves an org, or moves to another, loses the rights of its teams', async () => {
  const { org, otherOrg, app } = world;
  for (const [moved, next] of [
    [null, 'none'],
    [otherOrg.id, 'another'],
  ] as const) {
    const user = await server.provision.user(app, { org });
    const ofOrg = await server.provision.team(app, { org, members: [[user, 'admin']] });
    const ofNobody = await server.provision.team(app, { members: [[user, 'member']] });
    server.services.credentials.forget();
    const body = { filename: 'a.txt', content_type: 'text/plain', data: 'QQ==' };
    const file = await server.api<Id>('POST', '/api/v1/files', { key, body: { ...body, team: ofOrg.id } });
    assert.equal((await as(user, 'GET', `/files/${file.body.id}`)).status, 200);
    const changed = await server.api('PATCH', `/api/v1/users/${user.id}`, { key, body: { org: moved } });
    assert.equal(changed.status, 200, changed.text);
    assert.equal((await as(user, 'GET', `/files/${file.body.id}`)).status, 404, next);
    assert.equal((await as(user, 'GET', `/teams/${ofOrg.id}`)).status, 404, next);
    assert.equal((await as(user, 'GET', `/teams/${ofNobody.id}`)).status, 200, next);
  }
});

test('a change of a user that names the same org keeps the user’s teams', async () => {
  const user = await server.provision.user(world.app, { org: world.org });
  const team = await server.provision.team(world.app, { org: world.org, members: [[user, 'member']] });
  for (const body of [{ org: world.org.id }, { org_role: 'viewer' }, { name: 'New' }])
    assert.equal((await server.api('PATCH', `/api/v1/users/${user.id}`, { key, body })).status, 200);
  assert.equal((await as(user, 'GET', `/teams/${team.id}`)).status, 200);
});

test('a lookup key of a hidden agent gets the response of a missing one', async () => {
  const { otherUser, member, loner } = world;
  const hidden = await as(otherUser, 'POST', '/agents', { name: 'Hidden', lookup_key: 'oracle' });
  assert.equal(hidden.status, 201, hidden.text);
  const answers = [];
  for (const lookup_key of ['oracle', 'nobody-has-it'])
    answers.push((await as(member, 'POST', '/agents', { name: 'Mine', lookup_key })).status);
  assert.deepEqual(answers, [201, 201]);
  const own = await as(loner, 'POST', '/agents', { name: 'Own' });
  assert.equal((await as(loner, 'PATCH', `/agents/${own.body.id}`, { lookup_key: 'oracle' })).status, 200);
  // Each finds their own by the key, and one that they see already is still taken.
  assert.equal((await as(loner, 'GET', '/agents/oracle')).body.id, own.body.id);
  assert.equal((await as(otherUser, 'GET', '/agents/oracle')).body.id, hidden.body.id);
  const twice = await as(member, 'POST', '/agents', { name: 'Again', lookup_key: 'oracle' });
  assert.deepEqual([twice.status, twice.body.error.code], [422, 'already_exists']);
  // A key of the app sees all three: the oldest.
  assert.equal((await server.api<Id>('GET', '/api/v1/agents/oracle', { key })).body.id, hidden.body.id);
  const byKey = await server.api<ErrorBody>('POST', '/api/v1/agents', {
    key,
    body: { name: 'App', lookup_key: 'oracle' },
  });
  assert.equal(byKey.body.error.code, 'already_exists');
});

test('a lookup key that looks like an id is 422, on create and on update', async () => {
  const { member } = world;
  const own = await as(member, 'POST', '/agents', { name: 'Own' });
  for (const kind of ['agent', 'user', 'file'] as const) {
    const lookup_key = formatId(kind, newUuid());
    for (const [method, path, body] of [
      ['POST', '/agents', { name: 'A', lookup_key }],
      ['PATCH', `/agents/${own.body.id}`, { lookup_key }],
    ] as const) {
      const answer = await as(member, method, path, body);
      assert.deepEqual([answer.status, answer.body.error.fields[0]?.field], [422, 'lookup_key'], lookup_key);
    }
  }
});

test('an end user who creates a token for another user gets 403 for every name', async () => {
  const { member, admin, stranger } = world;
  for (const other of [admin.id, stranger.id, formatId('user', newUuid()), 'usr_x', 'nobody']) {
    const answer = await as(member, 'POST', `/users/${other}/tokens`, {});
    assert.deepEqual([answer.status, answer.body.error.code], [403, 'forbidden'], other);
  }
});
