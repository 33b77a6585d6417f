import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { knowledgeOf } from '../../support/knowledge.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startTestServer } from '../../support/server.ts';
import { startIssuer } from '../../support/token-issuer.ts';

const clock = new ManualClock(new Date('2030-01-01T00:00:00.500Z'));
const server = await startTestServer({ clock, env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
const { api, provision } = server;
const audience = 'https://quarry.example';
const issuer = await startIssuer(() => clock.now(), audience);
after(async () => {
  await server.close();
  await issuer.close();
});
const app = await provision.app();
const org = await provision.org(app);
const owner = knowledgeOf(server, { key: app.secretKey });
const claims = { groups: { claim: 'groups' }, org: { claim: 'org', values: { acme: org.id } } };
await api('POST', '/api/v1/identity_issuers', {
  key: app.secretKey,
  body: { issuer: issuer.issuer, audience, create_users: true, claims },
});

type Group = { id: string; namespace: string; external_id: string };
const groupsOf = async (user: string) =>
  (await owner.send<{ data: Group[] }>('GET', `/groups?user=${user}`)).body.data
    .map(({ namespace, external_id }) => `${namespace} ${external_id}`)
    .sort();
async function signIn(subject: string, payload: Record<string, unknown>) {
  clock.advance(2_000);
  const token = await issuer.sign(subject, { org: 'acme', ...payload });
  const found = await api<{ id: string; groups_overage?: true }>('GET', '/api/v1/users/me', {
    key: app.publishableKey,
    token,
  });
  assert.equal(found.status, 200, found.text);
  return { ...found.body, token };
}

test('a token’s groups are groups of its issuer, and follow the youngest token', async () => {
  const ada = await signIn('ada', { groups: ['editors', 'readers', 7, '', 'a\0b'] });
  assert.deepEqual(await groupsOf(ada.id), [`${issuer.issuer} editors`, `${issuer.issuer} readers`]);
  const [group] = (await owner.send<{ data: Group[] }>('GET', `/groups?namespace=${issuer.issuer}&external_id=editors`))
    .body.data;
  const source = await owner.createSource({ org: org.id });
  const acl = { grants: [{ principal_type: 'group', principal: group?.id ?? '' }] };
  await owner.push(source, 'Plovers.', { acl });
  const finds = async (token: string) => {
    const options = { key: app.publishableKey, token, body: { query: 'plovers' } };
    const found = await api<{ data: unknown[] }>('POST', `/api/v1/knowledge_sources/${source}/search`, options);
    assert.equal(found.status, 200, found.text);
    return found.body.data.length;
  };
  assert.equal(await finds(ada.token), 1);
  const less = await signIn('ada', { groups: ['readers'] });
  assert.deepEqual(await groupsOf(ada.id), [`${issuer.issuer} readers`]);
  assert.deepEqual([await finds(less.token), await finds(ada.token)], [0, 0]);
});

test('groups are found by a part of their name, or of their name in the namespace', async () => {
  for (const group of [
    { external_id: 'g-17', name: 'Harbour Pilots' },
    { external_id: 'pilots-abroad' },
    { external_id: 'g-18', name: 'Crews' },
  ])
    assert.equal((await owner.send('POST', '/groups', { namespace: 'port', ...group })).status, 201);
  const found = await owner.send<{ data: Group[] }>('GET', '/groups?namespace=port&search=PILOTS');
  assert.deepEqual(found.body.data.map((one) => one.external_id).sort(), ['g-17', 'pilots-abroad']);
});

test('an equal name of another namespace is another group', async () => {
  const made = await owner.send<Group>('POST', '/groups', { namespace: 'wiki', external_id: 'editors' });
  const bob = await signIn('bob', { groups: ['editors'] });
  assert.deepEqual(await groupsOf(bob.id), [`${issuer.issuer} editors`]);
  await owner.send('POST', `/groups/${made.body.id}/members`, { user: bob.id });
  await signIn('bob', { groups: [] });
  assert.deepEqual(await groupsOf(bob.id), ['wiki editors']);
});

test('a token that leaves out its groups grants none and reports it', async () => {
  const before = await signIn('eve', { groups: ['editors'] });
  assert.equal(before.groups_overage, undefined);
  const over = await signIn('eve', { _claim_names: { groups: 'src1' }, _claim_sources: { src1: {} } });
  assert.equal(over.groups_overage, true);
  assert.deepEqual(await groupsOf(over.id), []);
  assert.equal((await owner.send<{ groups_overage?: true }>('GET', `/users/${over.id}`)).body.groups_overage, true);
  assert.equal((await signIn('eve', { hasgroups: true })).groups_overage, true);
  // A token of somebody without groups just has none.
  assert.equal((await signIn('eve', {})).groups_overage, undefined);
  const back = await signIn('eve', { groups: ['editors'] });
  assert.deepEqual([back.groups_overage, (await groupsOf(back.id)).length], [undefined, 1]);
});
