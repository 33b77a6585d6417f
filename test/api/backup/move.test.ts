import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { runQuarry } from '../../support/command.ts';
import type { FileBody } from '../../support/files.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';

const directory = mkdtempSync(join(tmpdir(), 'quarry-move-'));
const [one, other] = await Promise.all([startTestServer(), startTestServer()]);
after(async () => {
  await Promise.all([one.close(), other.close()]);
  rmSync(directory, { recursive: true, force: true });
});
const [{ secretKey: fromKey }, { secretKey: toKey }] = [await one.provision.app(), await other.provision.app()];

async function create<T = { id: string }>(path: string, body: object): Promise<T> {
  const answer = await one.api<T>('POST', `/api/v1${path}`, { key: fromKey, body });
  assert.ok(answer.status < 300, `${path}: ${answer.text}`);
  return answer.body;
}

const moveOnce = () =>
  runQuarry(['move', '--from', one.baseUrl, '--map', join(directory, 'map.json')], {
    env: { QUARRY_DATA_DIR: join(directory, 'no-data'), QUARRY_API_URL: other.baseUrl, QUARRY_API_KEY: toKey },
    input: `${fromKey}\n`,
  });

test('the command moves an app to another server by the public API, and repeats nothing that is already there', async () => {
  const org = await create('/orgs', { name: 'Org', slug: 'org' });
  const user = await create('/users', { email: 'ada@example.com', name: 'Ada', org: org.id, org_role: 'admin' });
  const team = await create('/teams', { name: 'Team', org: org.id });
  await create(`/teams/${team.id}/members`, { user: user.id, role: 'admin' });
  const agent = await create('/agents', { name: 'Agent', lookup_key: 'agent', team: team.id });
  const file = await create<FileBody>('/files', {
    ...{ filename: 'ä b.txt', content_type: 'text/plain', data: Buffer.from('hello').toString('base64') },
    ...{ user: user.id, acl: { grants: [{ principal_type: 'team', principal: team.id, actions: ['read'] }] } },
  });
  await one.api('PUT', '/api/v1/kv/a%2Fb', { key: fromKey, body: { value: 'v', user: user.id } });
  const source = await create('/knowledge_sources', { type: 'knowledge/documents', agent: agent.id });
  await knowledgeOf(one, { key: fromKey }).ingest(source.id, {
    ...{ content: { data: '# Quarries\n\nStone is cut here.' }, title: 'Quarries', metadata: { shelf: 3 } },
  });
  const workflow = { kind: 'WorkflowGraph', version: 1, start_node: 'end', nodes: [{ id: 'end', kind: 'complete' }] };
  await create('/automations', { name: 'Ends', lookup_key: 'ends', type: 'invoked', workflow });

  const first = await moveOnce();
  assert.match(first.stdout, /files: 1 moved, 0 there already, 0 left/);
  const second = await moveOnce();
  assert.doesNotMatch(second.stdout, /[1-9]\d* moved/);

  const list = async <T>(path: string) =>
    (await other.api<{ data: T[] }>('GET', `/api/v1${path}`, { key: toKey })).body.data;
  const [there] = await list<{ id: string; email: string; org_role: string }>('/users');
  assert.deepEqual([there?.email, there?.org_role], ['ada@example.com', 'admin']);
  const [copied] = await list<FileBody>('/files');
  assert.deepEqual([copied?.filename, copied?.checksum, copied?.user], ['ä b.txt', file.checksum, there?.id]);
  assert.equal(copied?.acl?.grants[0]?.principal_type, 'team');
  const entry = await other.api<{ value: string }>('GET', `/api/v1/kv/a%2Fb?user=${there?.id}`, { key: toKey });
  assert.equal(entry.body.value, 'v');
  const [sourceThere] = await list<{ id: string; agent: string }>('/knowledge_sources');
  const [ingestion] = await list<{ id: string }>(`/knowledge_sources/${sourceThere?.id}/ingestions`);
  await knowledgeOf(other, { key: toKey }).waitForIngestion(ingestion?.id ?? '');
  const found = await other.api<{ data: { title: string; metadata: object }[] }>(
    'POST',
    `/api/v1/knowledge_sources/${sourceThere?.id}/search`,
    { key: toKey, body: { query: 'stone' } },
  );
  assert.equal(found.body.data[0]?.title, 'Quarries', found.text);
  const [automation] = await list<{ lookup_key: string; status: string }>('/automations');
  assert.deepEqual([automation?.lookup_key, automation?.status], ['ends', 'draft']);
});
