import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sweepBlobs } from '../../../src/files/sweep.ts';
import { type FileBody, pixel } from '../../support/files.ts';
import type { TestResource } from '../../support/provisioner.ts';
import { type ApiOptions, startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/** What goes when its owner goes, and what stays. */

const server = await startTestServer();
after(() => server.close());
const { api, provision, db, services, dataDir } = server;
const app = await provision.app();
const key = app.secretKey;

type Made = { id: string };
const picture = { data: pixel.toString('base64'), filename: 'p.png', mime_type: 'image/png' };
const text = { filename: 'a.txt', content_type: 'text/plain', data: Buffer.from('Text.').toString('base64') };

async function post<T = Made>(path: string, body: object, who: ApiOptions = { key }): Promise<T> {
  const answer = await api<T>('POST', `/api/v1${path}`, { ...who, body });
  assert.ok(answer.status === 201 || answer.status === 200, `${path} ${answer.text}`);
  return answer.body;
}
const remove = async (path: string) => assert.equal((await api('DELETE', `/api/v1${path}`, { key })).status, 204, path);
const there = async (path: string) => (await api('GET', `/api/v1${path}`, { key })).status === 200;
const fetchStatus = async (url: string) => (await fetch(url)).status;

/** The blobs on disk once the sweep has run. */
async function blobsAfterSweep(): Promise<number> {
  await sweepBlobs({ db, blobs: services.blobs });
  const entries = readdirSync(join(dataDir, 'blobs'), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).length;
}

type Estate = { [kind: string]: string };

/** One of everything that an owner can have, by its path. */
async function estate(owner: object, as: ApiOptions = { key }): Promise<Estate> {
  const file = await post<FileBody>('/files', { ...text, ...owner }, as);
  const agent = await post('/agents', { name: 'A', ...owner, profile_picture: picture }, as);
  const agentFile = await post('/files', { ...text, agent: agent.id }, as);
  const agentJob = await post('/extractions', { file: agentFile.id, destination_kind: 'storage', agent: agent.id }, as);
  const agentConfig = await post(
    '/extractions',
    { file: agentFile.id, destination_kind: 'config', destination_path: 'c', agent: agent.id },
    as,
  );
  const source = await post('/knowledge_sources', { type: 'knowledge/documents', ...owner }, as);
  const agentSource = await post('/knowledge_sources', { type: 'knowledge/documents', agent: agent.id }, as);
  const thread = await post('/threads', { title: 'T', ...owner });
  const installation = await post('/installations', { agent: agent.id, kind: 'webhook/inbound' });
  return {
    file: `/files/${file.id}`,
    agent: `/agents/${agent.id}`,
    agentFile: `/files/${agentFile.id}`,
    agentJob: `/extractions/${agentJob.id}`,
    agentConfig: `/extractions/${agentConfig.id}`,
    source: `/knowledge_sources/${source.id}`,
    agentSource: `/knowledge_sources/${agentSource.id}`,
    thread: `/threads/${thread.id}`,
    installation: `/installations/${installation.id}`,
  };
}

async function assertThere(things: Estate, expected: boolean): Promise<void> {
  for (const [kind, path] of Object.entries(things)) assert.equal(await there(path), expected, `${kind} ${path}`);
}

test('deleting a user deletes their files, agents, sources, threads, entries and memberships, and the bytes of all', async () => {
  const org = await provision.org(app);
  const user = await provision.user(app, { org });
  const team = await provision.team(app, { members: [[user, 'owner']] });
  const before = await blobsAfterSweep();
  const things = await estate({ user: user.id });
  const shared = await post<FileBody>('/files', { ...text, content_type: 'image/png', share: true, user: user.id });
  await api('PUT', '/api/v1/kv/k', { key, body: { value: 'v', user: user.id } });
  const own = await post('/files', text, { token: user.token });
  const job = await post('/extractions', { file: own.id, destination_kind: 'storage' }, { token: user.token });
  await assertThere(things, true);
  assert.equal(await fetchStatus(shared.share_url ?? ''), 200);
  assert.ok((await blobsAfterSweep()) > before);

  await remove(`/users/${user.id}`);
  await assertThere({ ...things, job: `/extractions/${job.id}`, own: `/files/${own.id}` }, false);
  assert.equal(await fetchStatus(shared.share_url ?? ''), 404);
  assert.equal(await fetchStatus(shared.url), 404);
  assert.equal(await there(`/teams/${team.id}`), true);
  const members = await api<{ total_entries: number }>('GET', `/api/v1/teams/${team.id}/members`, { key });
  assert.equal(members.body.total_entries, 0);
  const entries = await api<{ total_entries: number }>('GET', `/api/v1/kv?user=${user.id}`, { key });
  assert.equal(entries.body.total_entries, 0);
  assert.equal(await blobsAfterSweep(), before);
});

test('deleting a team deletes its resources and memberships, but not its people', async () => {
  const user = await provision.user(app);
  const team = await provision.team(app, { members: [[user, 'owner']] });
  const before = await blobsAfterSweep();
  const things = await estate({ team: team.id });
  await assertThere(things, true);
  await remove(`/teams/${team.id}`);
  await assertThere(things, false);
  assert.equal(await there(`/users/${user.id}`), true);
  assert.equal(await blobsAfterSweep(), before);
});

test('deleting an agent deletes its files, jobs, config entries, sources, installations and picture', async () => {
  const user = await provision.user(app);
  const before = await blobsAfterSweep();
  type Agent = Made & { profile_picture: { url: string; file: string } };
  const agent = await post<Agent>('/agents', { name: 'A', user: user.id, profile_picture: picture });
  const file = await post('/files', { ...text, agent: agent.id });
  const job = { file: file.id, agent: agent.id };
  const stored = await post('/extractions', { ...job, destination_kind: 'storage' });
  const configured = await post('/extractions', { ...job, destination_kind: 'config', destination_path: 'x' });
  const installation = await post('/installations', { agent: agent.id, kind: 'thread/messages' });
  const things = {
    stored: `/extractions/${stored.id}`,
    configured: `/extractions/${configured.id}`,
    installation: `/installations/${installation.id}`,
    config: `/config/x/a.md?agent=${agent.id}`,
  };
  await assertThere(things, true);
  assert.equal(await fetchStatus(agent.profile_picture.url), 200);
  await remove(`/agents/${agent.id}`);
  await assertThere(things, false);
  assert.equal(await fetchStatus(agent.profile_picture.url), 404);
  assert.equal(await there(`/files/${agent.profile_picture.file}`), false);
  assert.equal(await blobsAfterSweep(), before - 0);
});

test('deleting an org deletes org-level resources; those of people, teams and agents stay, without an org', async () => {
  const org = await post<Made & { logo: { url: string } }>('/orgs', { name: 'O', logo: picture });
  const resource: TestResource = { id: org.id, uuid: '' };
  const user = await post('/users', { email: 'org-life@example.test', org: resource.id, org_role: 'admin' });
  const team = await post('/teams', { name: 'T', org: org.id });
  const orgLevel = await estate({ org: org.id });
  const job = { file: orgLevel.file?.slice(7), org: org.id };
  const jobs = {
    stored: `/extractions/${(await post('/extractions', { ...job, destination_kind: 'storage' })).id}`,
    config: `/extractions/${(await post('/extractions', { ...job, destination_kind: 'config', destination_path: 'o' })).id}`,
  };
  const configFile = await api<{ file: string }>('GET', `/api/v1/config/o/a.md?org=${org.id}`, { key });
  const individual = {
    file: `/files/${(await post('/files', { ...text, user: user.id, org: org.id })).id}`,
    teamFile: `/files/${(await post('/files', { ...text, team: team.id, org: org.id })).id}`,
    agent: `/agents/${(await post('/agents', { name: 'A', user: user.id })).id}`,
    source: `/knowledge_sources/${(await post('/knowledge_sources', { type: 'knowledge/documents', user: user.id })).id}`,
    thread: `/threads/${(await post('/threads', { user: user.id })).id}`,
  };
  assert.equal(await fetchStatus(org.logo.url), 200);
  await remove(`/orgs/${org.id}`);

  await assertThere({ ...orgLevel, ...jobs, configFile: `/files/${configFile.body.file}` }, false);
  assert.equal(await fetchStatus(org.logo.url), 404);
  await assertThere({ ...individual, user: `/users/${user.id}`, team: `/teams/${team.id}` }, true);
  for (const path of [...Object.values(individual), `/users/${user.id}`, `/teams/${team.id}`]) {
    const { body } = await api<{ org?: string | null; org_role?: string }>('GET', `/api/v1${path}`, { key });
    assert.ok(body.org === undefined || body.org === null, path);
    assert.equal(body.org_role, undefined, path);
  }
});

test('deleting a sandbox deletes everything in it, and nothing in production', async () => {
  const before = await blobsAfterSweep();
  const sandbox = await provision.sandbox(app);
  const here = { key: sandbox.secretKey };
  const org = await post('/orgs', { name: 'O', logo: picture }, here);
  const user = await post('/users', { email: 'sandboxed@example.test', org: org.id }, here);
  const file = await post('/files', { ...text, user: user.id }, here);
  const appFile = await post('/files', text, here);
  await post('/extractions', { file: appFile.id, destination_kind: 'config', destination_path: 'x' }, here);
  const agent = await post('/agents', { name: 'A', profile_picture: picture, lookup_key: 'a' }, here);
  await post('/knowledge_sources', { type: 'knowledge/documents', agent: agent.id }, here);
  await api('PUT', '/api/v1/kv/k', { ...here, body: { value: 'v', user: user.id } });
  const produced = await post('/files', text);
  await remove(`/sandboxes/${sandbox.sandbox.id}`);
  // A job purges it, and deletes its row last.
  await until(async () => (await db`select from sandboxes where id = ${sandbox.sandbox.uuid}`).length === 0);
  for (const table of [
    'orgs',
    'users',
    'files',
    'agents',
    'extractions',
    'configs',
    'kv_entries',
    'kv_counters',
    'api_keys',
  ])
    assert.equal(
      (
        await db<{ count: number }[]>`
        select count(*)::integer as count from ${db(table)} where sandbox_id = ${sandbox.sandbox.uuid}`
      )[0]?.count,
      0,
      table,
    );
  assert.equal(await there(`/files/${produced.id}`), true);
  assert.equal(await there(`/files/${file.id}`), false);
  await remove(`/files/${produced.id}`);
  assert.equal(await blobsAfterSweep(), before);
});

test('when a source file is deleted, its extraction and output stay; when an output is deleted, its extraction says so', async () => {
  const file = await post('/files', text);
  type Job = Made & { file?: string; outputs: { file?: FileBody; state: string }[] };
  const job = await post<Job>('/extractions', { file: file.id, destination_kind: 'storage' });
  await remove(`/files/${file.id}`);
  const read = async () => (await api<Job>('GET', `/api/v1/extractions/${job.id}`, { key })).body;
  assert.equal((await read()).outputs[0]?.state, 'done');
  await remove(`/files/${job.outputs[0]?.file?.id}`);
  const after = await read();
  assert.deepEqual([after.outputs.length, after.outputs[0]?.file], [1, undefined]);
});

test('removing an extraction leaves its files', async () => {
  const file = await post('/files', text);
  type Job = Made & { outputs: { file: FileBody }[] };
  const job = await post<Job>('/extractions', { file: file.id, destination_kind: 'storage' });
  await remove(`/extractions/${job.id}`);
  assert.equal(await there(`/extractions/${job.id}`), false);
  assert.equal(await there(`/files/${job.outputs[0]?.file.id}`), true);
  assert.equal((await api('DELETE', `/api/v1/extractions/${job.id}`, { key })).status, 404);
});

test('deleting a parent source leaves its children, without a parent', async () => {
  const agent = await post('/agents', { name: 'A' });
  const parent = await post('/knowledge_sources', { type: 'knowledge/documents', agent: agent.id });
  const child = await post('/knowledge_sources', {
    type: 'knowledge/documents',
    agent: agent.id,
    parent_source: parent.id,
  });
  await remove(`/knowledge_sources/${parent.id}`);
  const read = await api<{ parent_source: null }>('GET', `/api/v1/knowledge_sources/${child.id}`, { key });
  assert.deepEqual([read.status, read.body.parent_source], [200, null]);
});
