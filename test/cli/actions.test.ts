import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { writeCredentialsFile } from '../../src/boot/credentials-file.ts';
import { type Action, actions } from '../../src/cli/client/action-kinds.ts';
import { type ActionValues, runAction } from '../../src/cli/client/actions.ts';
import { connect } from '../../src/cli/client/client.ts';
import { Progress } from '../../src/cli/client/progress.ts';
import { graphOf } from '../support/automations.ts';
import { type CallOptions, callQuarry, runQuarry, startQuarry } from '../support/command.ts';
import { startTestServer } from '../support/server.ts';
import { until } from '../support/until.ts';

/* The commands that send one request each, with names in place of ids; and those that stream. */

const server = await startTestServer();
const { app, org } = await server.provision.world();
const key = app.secretKey;
const directory = mkdtempSync(join(tmpdir(), 'quarry-actions-'));
const env = { QUARRY_DATA_DIR: join(directory, 'no-data'), QUARRY_API_URL: server.baseUrl, QUARRY_API_KEY: key };
after(async () => {
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});

async function post<T = { id: string }>(path: string, body: unknown): Promise<T> {
  const made = await server.api<T>('POST', `/api/v1${path}`, { key, body });
  assert.ok(made.status < 300, made.text);
  return made.body;
}

const ran = new Set<Action>();

/** Runs a command of the table in this process. Returns what it prints and says. */
async function run(group: string, verb: string, given: string[] = [], values: ActionValues = {}, credential = { key }) {
  const action = actions[group]?.find(({ usage }) => usage.split(' ')[0] === verb);
  assert.ok(action, `${group} ${verb}`);
  ran.add(action);
  let printed = '';
  let said = '';
  const session = {
    client: connect({ url: server.baseUrl, ...credential }, new AbortController().signal),
    ...{ json: false, progress: new Progress({ write: () => {} }), signal: new AbortController().signal },
    onInterrupt() {},
    async print(text: string | Uint8Array) {
      printed += String(text);
    },
    say(text: string) {
      said += `${text}\n`;
    },
  };
  const names = [...action.usage.matchAll(/<(\w+)>/g)].map(([, name = '']) => name);
  const words = Object.fromEntries(names.map((name, at) => [name, given[at] ?? '']));
  assert.equal(await runAction(session, action, words, values), 0);
  return { printed, said, rows: printed.split('\n').filter(Boolean) };
}

const quarry = (args: string[], options: CallOptions = {}) =>
  callQuarry(args, { ...options, env: { ...env, ...options.env } });
const download = (name: string) => runQuarry(['files', 'download', name], { env, cwd: directory });

test('webhooks are paused, resumed, tested and followed by their URL', async () => {
  const url = 'https://receiver.invalid/hook';
  const { secret } = await post<{ secret: string }>('/webhooks', { url, events: ['order.paid'] });
  assert.match((await run('webhooks', 'pause', [url])).printed, /^status +paused$/m);
  assert.match((await run('webhooks', 'resume', [url])).printed, /^status +active$/m);
  const rotated = await run('webhooks', 'rotate-secret', [url], { overlap_seconds: 0 });
  assert.match(rotated.printed, /^whsec_\S+\n$/);
  assert.notEqual(rotated.printed.trim(), secret);
  assert.match(rotated.said, /not shown again/);
  assert.match((await run('webhooks', 'test', [url])).printed, /^type +webhook.test$/m);
  await run('events', 'emit', ['order.paid'], { payload: '{"total": 7}' });
  const types = async (values: ActionValues = {}) =>
    (await run('webhooks', 'deliveries', [url], values)).rows.map((row) => row.split('\t')[1]).sort();
  for (let listed = await types(); listed.length < 2; listed = await types());
  assert.deepEqual(await types(), ['order.paid', 'webhook.test']);
  assert.deepEqual(await types({ type: 'order.paid' }), ['order.paid']);
  const [row = ''] = (await run('webhooks', 'deliveries', [url], { limit: 1 })).rows;
  assert.match((await run('webhooks', 'redeliver', [url, row.split('\t')[0] ?? ''])).printed, /^attempts +\d+$/m);
  await assert.rejects(run('webhooks', 'redeliver', [url, 'the last']), /"the last" is not an id/);
});

test('members of teams are added, promoted and removed by e-mail and lookup key', async () => {
  await post('/teams', { name: 'Support' });
  await post('/users', { email: 'ada@example.com', name: 'Ada' });
  await post('/agents', { name: 'Helper', lookup_key: 'helper' });
  await run('teams', 'add-member', ['support'], { user: 'ada@example.com', role: 'admin' });
  await run('teams', 'add-member', ['support'], { agent: 'helper' });
  assert.match((await run('teams', 'set-role', ['Support', 'ADA@example.com', 'owner'])).printed, /^role +owner$/m);
  const members = async () => (await run('teams', 'members', ['Support'])).rows.map((row) => row.split('\t')[2]).sort();
  assert.deepEqual(await members(), ['Ada', 'Helper']);
  await run('teams', 'remove-member', ['Support', 'helper']);
  assert.deepEqual(await members(), ['Ada']);
  await assert.rejects(run('teams', 'remove-member', ['Support', 'helper']), /No member has/);
});

test('tokens and sessions of users end by name', async () => {
  const user = await server.provision.user(app);
  const created = await server.api('POST', '/api/v1/users/me/tokens', { token: user.token, body: { name: 'laptop' } });
  assert.equal(created.status, 201, created.text);
  assert.equal((await run('users', 'tokens', [user.email])).rows[0]?.split('\t')[1], 'laptop');
  assert.equal((await run('users', 'revoke-token', [user.email, 'laptop'])).said, 'Revoked.\n');
  await run('users', 'revoke-sessions', [user.email]);
  const made = await post('/keys', { type: 'secret', name: 'worker' });
  assert.match((await run('token', 'show', ['worker'])).printed, new RegExp(`^id +${made.id}$`, 'm'));
});

test('inbound URLs are shown, replaced and signed', async () => {
  const agent = await post('/agents', { name: 'Inbox' });
  const { id } = await post('/installations', { agent: agent.id, kind: 'webhook/inbound' });
  const found = await server.api<{ data: { id: string }[] }>('GET', `/api/v1/knowledge_sources?installation=${id}`, {
    key,
  });
  const source = found.body.data[0]?.id ?? '';
  const { printed } = await run('sources', 'inbound-url', [source]);
  assert.match(printed, /^http:\S+\/inbound\/whs_\S+\n$/);
  assert.notEqual((await run('sources', 'replace-inbound-url', [source])).printed, printed);
  assert.match((await run('sources', 'require-signatures', [source])).printed, /^whsec_/);
  const file = join(directory, 'secret.txt');
  const secret = `whsec_${Buffer.alloc(32).toString('base64')}`;
  writeFileSync(file, `${secret}\n`);
  assert.equal((await run('sources', 'require-signatures', [source], { secret: file })).printed.trim(), secret);
  await run('sources', 'accept-unsigned', [source]);
  assert.ok((await run('sources', 'kinds')).rows.some((row) => row.startsWith('web/link\t')));
});

test('documents, their chunks and ingestions are listed; a document is read by its title', async () => {
  const source = await post('/knowledge_sources', {
    ...{ type: 'knowledge/documents', org: org.id, metadata: { name: 'Manual' } },
  });
  const text = `# Manual\n${'A line of text.\n'.repeat(2_500)}The end.`;
  const content = { data: text };
  await post(`/knowledge_sources/${source.id}/ingest`, { content, title: 'Manual' });
  const ended = async () => (await run('sources', 'ingestions', ['manual'])).rows[0]?.split('\t')[1] === 'succeeded';
  await until(ended);
  assert.match((await run('documents', 'chunks', ['Manual'])).printed, /^cim_/);
  const { stdout, code } = await quarry(['documents', 'read', 'Manual']);
  assert.deepEqual([code, stdout.trimEnd()], [0, text]);
  const listed = await quarry(['documents', 'list', '--source', 'Manual']);
  const [id = '', title] = listed.stdout.split('\t');
  assert.deepEqual([id.slice(0, 4), title], ['cdo_', 'Manual']);
  const change = ['--set', 'title=Handbook', '--set', 'content={"data":"New."}'];
  const updated = await quarry(['documents', 'update', 'Manual', ...change]);
  assert.match(updated.stdout, /^id +cig_/, updated.stderr);
  assert.equal((await quarry(['documents', 'delete', id, '--yes'])).code, 0);
});

test('automations are activated and paused, and their versions printed', async () => {
  const workflow = graphOf({ id: 'end', kind: 'complete' });
  await post('/automations', { name: 'Ends', type: 'invoked', workflow });
  assert.match((await run('automations', 'activate', ['Ends'])).printed, /^status +running$/m);
  const { stdout } = await quarry(['runs', 'invoke', 'Ends', '--no-wait']);
  assert.match((await run('runs', 'get', [stdout.trim()])).printed, /^type +invoked$/m);
  assert.match((await run('automations', 'invocable')).printed, /\tEnds\t/);
  assert.match((await run('automations', 'pause', ['Ends'])).printed, /^status +paused$/m);
  assert.equal((await run('automations', 'versions', ['Ends'])).rows[0]?.split('\t')[0], '1');
  const graph = JSON.parse((await run('automations', 'version', ['Ends', '1'])).printed) as { kind: string };
  assert.equal(graph.kind, 'WorkflowGraph');
  const output = await quarry(['runs', 'output', stdout.trim()]);
  assert.deepEqual([output.code, output.stdout], [0, '']);
});

test('threads take messages; files are downloaded under their name, and never over another', async () => {
  const agent = await post('/agents', { name: 'Listener' });
  await post('/installations', { agent: agent.id, kind: 'thread/messages' });
  await post('/threads', { title: 'Night watch', agent: agent.id });
  const message = await run('threads', 'message', ['Night watch', 'All is well.'], { metadata: '{"shift": 3}' });
  assert.match(message.printed, /^content +All is well\.$/m);
  await post('/files', { filename: 'report.txt', content_type: 'text/plain', data: 'VGV4dC4=' });
  const first = await download('report.txt');
  assert.equal(first.code, 0, first.stderr);
  assert.equal(readFileSync(join(directory, 'report.txt'), 'utf8'), 'Text.');
  const again = await download('report.txt');
  assert.deepEqual([again.code, again.stderr], [2, 'report.txt already exists.\n']);
  assert.equal((await quarry(['files', 'download', 'report.txt', '--out', '-'])).stdout, 'Text.');
  // Another person's name for a file neither leads out of the directory nor commands the terminal.
  const hostile = '../\u001b]0;title\u0007\u001b[2Jx.txt';
  const sent = await post('/files', { filename: hostile, content_type: 'text/plain', data: 'VGV4dC4=' });
  const written = await download(sent.id);
  assert.equal(written.code, 0, written.stderr);
  assert.equal(readFileSync(join(directory, '..--]0;title--[2Jx.txt'), 'utf8'), 'Text.');
  assert.doesNotMatch(written.stderr, /(?!\n)\p{Cc}/u);
  const refused = await download(hostile);
  assert.equal(refused.code, 2);
  assert.doesNotMatch(refused.stderr, /(?!\n)\p{Cc}/u);
  const url = await run('files', 'upload-url', ['b.txt', 'text/plain'], { expires_in: 60 });
  assert.match(url.printed, /^http:/);
});

test('secrets are set from standard input, listed and deleted', async () => {
  const set = await quarry(['secrets', 'set', 'TOKEN'], { input: 'hidden\n' });
  assert.deepEqual([set.code, set.stdout], [0, '']);
  const listed = await run('secrets', 'list');
  assert.ok(listed.printed.startsWith('TOKEN\t') && !listed.printed.includes('hidden'));
  await run('secrets', 'delete', ['TOKEN', '--yes']);
  assert.equal((await run('secrets', 'list')).said, 'None.\n');
});

test('config entries are listed and printed by path', async () => {
  const file = await post('/files', { filename: 'a.txt', content_type: 'text/plain', data: 'VGV4dC4=' });
  const body = { file: file.id, destination_kind: 'config', destination_path: 'shelf' };
  await post('/extractions', body);
  assert.match((await run('configs', 'list', [], { prefix: 'shelf/' })).printed, /^shelf\/a\.md\ttext\/markdown/);
  assert.equal((await run('configs', 'get', ['shelf/a.md'], { version: 1 })).printed, 'Text.\n');
});

test('the audit log and the use of credentials are listed', async () => {
  const listed = await run('audit', 'list', [], { action: 'createTeam', limit: 5 });
  assert.match(listed.printed, /\tcreateTeam\t/);
  const uses = await run('audit', 'credentials');
  assert.match(uses.printed + uses.said, /secret_key|None/);
});

test('batches run all operations or none; entries are listed by key', async () => {
  const user = ['--user', 'ada@example.com'];
  const operations = [
    { op: 'put', key: 'a/1', value: 'one' },
    { op: 'increment', key: 'a/2' },
  ];
  const batch = await quarry(['kv', 'batch', '-', ...user], { input: JSON.stringify(operations) });
  assert.deepEqual([batch.code, batch.stderr], [0, '2 operations done.\n']);
  const bad = [...operations, { op: 'increment', key: 'a/1' }];
  const refused = await quarry(['kv', 'batch', '-', ...user], { input: JSON.stringify(bad) });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /operations\.2/);
  const listed = await quarry(['kv', 'entries', '--prefix', 'a/', '--limit', '1', ...user]);
  assert.equal(listed.stdout, 'a/1  one\n');
  const cursor = /--cursor (\S+)/.exec(listed.stderr)?.[1] ?? '';
  assert.equal((await quarry(['kv', 'entries', '--prefix', 'a/', '--cursor', cursor, ...user])).stdout, 'a/2  1\n');
});

test('events are printed as they happen', async () => {
  const watching = startQuarry(['events', 'watch', '--type', 'order.sent', '--limit', '1'], { env });
  while (!watching.errors().includes('Watching.'))
    await new Promise((resolve) => watching.child.stderr.once('data', resolve));
  await run('events', 'emit', ['order.opened']);
  await run('events', 'emit', ['order.sent'], { payload: '{"total": 7}' });
  const { code, stdout } = await watching.ended;
  assert.equal(code, 0);
  assert.match(stdout, /^\S+ {2}\d+ {2}order\.sent {2}\{"total":7\}\n$/);
});

test('a developer lists, creates and renames apps', async () => {
  const developer = { ...env, QUARRY_API_KEY: '', QUARRY_TOKEN: app.developerToken };
  const made = await quarry(['apps', 'create', 'Shop'], { env: developer });
  assert.match(made.stdout, /^dap_/, made.stderr);
  const renamed = await quarry(['apps', 'update', 'Shop', '--set', 'name=Store'], { env: developer });
  assert.match(renamed.stdout, /^name +Store$/m, renamed.stderr);
  assert.match((await quarry(['apps', 'list'], { env: developer })).stdout, /\tStore\t/);
  const withKey = { ...env, QUARRY_TOKEN: app.developerToken, QUARRY_APP: 'dap_0000000000000000000000' };
  assert.match((await quarry(['apps', 'list'], { env: withKey })).stdout, /\tStore\t/, 'beside a key and an app');
  const dataDir = join(directory, 'data');
  mkdirSync(dataDir);
  writeCredentialsFile(dataDir, {
    base_url: server.baseUrl,
    app: app.app.id,
    publishable_key: app.publishableKey,
    secret_key: app.secretKey,
    developer_token: app.developerToken,
  });
  const own = { QUARRY_DATA_DIR: dataDir, QUARRY_API_URL: '', QUARRY_API_KEY: '' };
  const listed = await quarry(['apps', 'list'], { env: own });
  assert.match(listed.stdout, /\tStore\t/, listed.stderr);
});

test('a webhook with an event that nothing emits is created with a warning', async () => {
  const made = await quarry(['webhooks', 'create', 'https://example.com/', '--set', 'events=["file.creatd"]']);
  assert.deepEqual([made.code, made.stdout.slice(0, 4)], [0, 'whk_']);
  assert.match(
    made.stderr,
    /Warning: Nothing has emitted an event "file\.creatd" so far\. Did you mean "file\.created"\?/,
  );
});

test('every command of the table has run', () => {
  const all = Object.values(actions).flat();
  assert.deepEqual(
    all.filter((action) => !ran.has(action)).map(({ usage }) => usage),
    [],
  );
});
