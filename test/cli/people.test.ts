import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { unzipSync } from 'fflate';
import packageFile from '../../package.json' with { type: 'json' };
import { writeCredentialsFile } from '../../src/boot/credentials-file.ts';
import { type CallOptions, type CommandResult, callQuarry, runQuarry, startQuarry } from '../support/command.ts';
import { htmlPage, responses, startSite } from '../support/fixture-site.ts';
import { startTestServer } from '../support/server.ts';
import { until } from '../support/until.ts';

/*
 * The commands for people, against a real server. What depends on pipes and signals is run as the real program.
 */

const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
const { provision, baseUrl } = server;
const { app, org, member, otherApp } = await provision.world();
const directory = mkdtempSync(join(tmpdir(), 'quarry-people-'));
const nowhere = join(directory, 'no-data');
const env = { QUARRY_DATA_DIR: nowhere, QUARRY_API_URL: baseUrl, QUARRY_API_KEY: app.secretKey };
const site = await startSite({
  '/': htmlPage('Start', ['/a', '/b', '/missing']),
  '/a': htmlPage('Page A'),
  '/b': htmlPage('Page B'),
});
after(async () => {
  await site.close();
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});

const quarry = (args: string[], options: CallOptions = {}) =>
  callQuarry(args, { ...options, env: { ...env, ...options.env } });

function write(name: string, content: string | Uint8Array): string {
  const path = join(directory, name);
  writeFileSync(path, content);
  return path;
}

/** The values that `--json` printed, one on each line. */
function jsonOf(ran: CommandResult): Record<string, unknown>[] {
  assert.equal(ran.code, 0, ran.stderr);
  return ran.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

test('--version prints the version, and nothing else', async () => {
  const ran = await runQuarry(['--version']);
  assert.deepEqual([ran.code, ran.stdout, ran.stderr], [0, `${packageFile.version}\n`, '']);
});

test('a closed pipe ends no command with an error', async () => {
  const { child, ended } = startQuarry(['openapi'], { env });
  child.stdout.destroy();
  const ran = await ended;
  assert.deepEqual([ran.code, ran.stderr], [0, '']);
});

test('wrong use points to the help', async () => {
  const ran = await quarry(['extract']);
  assert.equal(ran.code, 2);
  assert.match(ran.stderr, /^error: missing required argument 'source'\n\n?`quarry --help` lists the commands/);
});

test('upload streams files from disk, and names each by its id', async () => {
  const big = write('big.bin', Buffer.alloc(9 * 1024 * 1024, 7));
  const text = write('Grüße & more.txt', 'Hello.');
  const ran = await quarry(['upload', big, text, '--json']);
  const [first, second] = jsonOf(ran);
  assert.deepEqual([first?.size, first?.content_type], [9 * 1024 * 1024, 'application/octet-stream']);
  assert.deepEqual([second?.filename, second?.content_type, second?.size], ['Grüße & more.txt', 'text/plain', 6]);
  const plain = await quarry(['upload', text]);
  assert.match(plain.stdout, /^fil_\w{22} {2}Grüße & more\.txt {2}6 B\n$/);
  const piped = jsonOf(await quarry(['upload', '-', '--name', 'piped.md', '--json'], { input: '# Piped' }));
  assert.deepEqual([piped[0]?.filename, piped[0]?.content_type, piped[0]?.size], ['piped.md', 'text/markdown', 7]);
});

test('upload continues with the other files when the server refuses one', async () => {
  const image = write('p.txt', 'no image');
  const ran = await quarry(['upload', image, image, '--share']);
  assert.equal(ran.code, 1);
  assert.equal(ran.stderr.match(/p\.txt: 422: /g)?.length, 2, ran.stderr);
});

test('extract prints the Markdown of a file and nothing else', async () => {
  const file = write('report.html', '<h1>Report</h1><p>All is well.</p>');
  const ran = await quarry(['extract', file]);
  assert.deepEqual([ran.code, ran.stderr], [0, '']);
  assert.match(ran.stdout, /^# Report\n+All is well\.\n$/);
  const [json] = jsonOf(await quarry(['extract', file, '--json']));
  assert.deepEqual([json?.state, json?.output_count], ['done', 1]);
  const kept = [await quarry(['files', 'list', '--json']), await quarry(['extractions', 'list', '--json'])];
  assert.equal((await quarry(['extract', file])).code, 0);
  const left = [await quarry(['files', 'list', '--json']), await quarry(['extractions', 'list', '--json'])];
  const ids = (lists: CommandResult[]) =>
    lists.map((list) => (jsonOf(list) as { data: { id: string }[] }[]).flatMap(({ data }) => data.map(({ id }) => id)));
  assert.deepEqual(ids(left), ids(kept), 'a local file leaves nothing on the server');
  assert.equal((await quarry(['extract', file, '--keep'])).code, 0);
  const [files = []] = ids([await quarry(['files', 'list', '--json'])]);
  assert.equal(files.length, (ids(kept)[0]?.length ?? 0) + 2);
  const broken = await quarry(['extract', write('broken.pdf', '%PDF-1.7 and nothing more')]);
  assert.equal(broken.code, 1);
  assert.match(broken.stderr, /^422: /);
  assert.equal(broken.stdout, '');
});

test('extract reads a page, and a site page by page or into a directory', async () => {
  const page = await quarry(['extract', `${site.origin}/a`]);
  assert.deepEqual([page.code, page.stderr], [0, '']);
  assert.match(page.stdout, /This is the page called Page A/);
  assert.doesNotMatch(page.stdout, /<!--/);

  const all = await quarry(['extract', `${site.origin}/`, '--site', '--max-pages', '10']);
  assert.equal(all.code, 0, all.stderr);
  assert.equal(all.stdout.match(/<!-- http/g)?.length, 3, all.stdout);
  assert.match(all.stderr, /\/missing: /);

  const out = join(directory, 'pages');
  const written = await quarry(['extract', `${site.origin}/`, '--site', '--exclude', '/missing', '--out', out]);
  assert.deepEqual([written.code, written.stdout], [0, '']);
  assert.match(readFileSync(join(out, 'b.md'), 'utf8'), /Page B/);

  const gone = await quarry(['extract', `${site.origin}/gone`]);
  assert.equal(gone.code, 1);
  assert.match(gone.stderr, /ext_\w+ failed: /);
});

test('Ctrl-C ends the wait quietly and says what continues', async () => {
  const slow = await startSite({ '/': responses.silent });
  const { child, ended } = startQuarry(['extract', `${slow.origin}/`], { env });
  await slow.waitForRequest('/');
  child.kill('SIGINT');
  const { code, stdout: out, stderr: err } = await ended;
  await slow.close();
  assert.deepEqual([code, out], [130, '']);
  assert.match(err, /^ext_\w+ continues on the server and stores its pages as files there\.\n$/);
});

test('Ctrl-C ends a wait for input, too', async () => {
  const silent = createServer();
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const { child, ended } = startQuarry(['upload', '-', '--url', url], { env, input: null });
  child.stdin.write('x');
  await once(silent, 'request');
  child.kill('SIGINT');
  const { code, stdout: out, stderr: err } = await ended;
  silent.closeAllConnections();
  silent.close();
  assert.deepEqual([code, out, err], [130, '', '']);
});

test('ingest accepts files, standard input and pages; search finds them, for a source and for an agent', async () => {
  const agent = await provision.agent(app, { org });
  const made = await server.api<{ id: string }>('POST', '/api/v1/knowledge_sources', {
    key: app.secretKey,
    body: { type: 'knowledge/documents', agent: agent.id },
  });
  const source = made.body.id;
  const files = [
    write('refunds.md', '# Refunds\n\nRefunds take five days.'),
    write('ship.txt', 'Parcels leave at noon.'),
  ];
  const ran = await quarry(['ingest', source, ...files]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /^cdo_\w+ {2}refunds\.md {2}1 chunk\ncdo_\w+ {2}ship\.txt {2}1 chunk\n$/);
  const again = await quarry(['ingest', source, files[0] ?? '', '--dedupe']);
  assert.match(again.stdout, /already existed/);
  const piped = await quarry(['ingest', source, '-', '--title', 'From a pipe', '--metadata', '{"year":2026}'], {
    input: 'Penguins cannot fly.',
  });
  assert.equal(piped.code, 0, piped.stderr);
  const page = await quarry(['ingest', source, `${site.origin}/a`, '--json']);
  assert.equal(jsonOf(page)[0]?.status, 'succeeded');

  const found = await quarry(['search', source, 'how', 'long', 'do', 'refunds', 'take']);
  assert.match(
    found.stdout,
    /^1\. refunds\.md {2}\(cdo_\w+ lines \d+-\d+, score [\d.]+\)\n {3}# Refunds\n\n {3}Refunds take five days\./,
  );
  const filtered = jsonOf(await quarry(['search', agent.id, 'penguins', '--filter', '{"year":2026}', '--json']));
  const hits = filtered[0]?.data as { title: string }[];
  assert.deepEqual(
    hits.map(({ title }) => title),
    ['From a pipe'],
  );
  const none = await quarry(['search', agent.id, 'xylophone', '--mode', 'fulltext']);
  assert.deepEqual([none.code, none.stdout, none.stderr], [0, '', 'No results.\n']);
});

test('ingest says when a source cannot be ingested into, and pulls on request', async () => {
  const bad = await quarry(['ingest', 'cso_0000000000000000000000', write('x.txt', 'x')]);
  assert.equal(bad.code, 1);
  assert.match(bad.stderr, /^404: /);
  const made = await server.api<{ id: string }>('POST', '/api/v1/knowledge_sources', {
    key: app.secretKey,
    body: { type: 'web/link', org: org.id, payload: { url: `${site.origin}/b` } },
  });
  const pulled = await quarry(['ingest', made.body.id, '--pull', '--json']);
  assert.equal(jsonOf(pulled)[0]?.status, 'succeeded');
});

test('kv counts, lets entries expire and prints changes as they happen', async () => {
  const user = ['--user', member.id];
  assert.equal((await quarry(['kv', 'increment', 'n', '40', ...user])).stdout, '40\n');
  let ended = false;
  const watching = runQuarry(['kv', 'watch', '--prefix', 'n', '--limit', '2', ...user], { env }).finally(() => {
    ended = true;
  });
  await until(async () => {
    assert.equal((await quarry(['kv', 'increment', 'n', ...user])).code, 0);
    return ended;
  });
  const watched = await watching;
  const [, first = '', second = ''] = /^put {2}n {2}(\d+)\nput {2}n {2}(\d+)\n$/.exec(watched.stdout) ?? [];
  assert.deepEqual([watched.code, Number(second)], [0, Number(first) + 1]);
  const put = await quarry(['kv', 'put', 'short', 'v', '--ttl', '60', '--json', ...user]);
  assert.match(put.stdout, /"expires_at"/);
  const word = await quarry(['kv', 'increment', 'short', ...user]);
  assert.equal(word.code, 1);
  assert.match(word.stderr, /its value is not a 64-bit integer/);
});

test('kv keeps values byte for byte, through pipes, under any key', async () => {
  const user = ['--user', member.id];
  const value = 'line one\nline two\n';
  assert.deepEqual(await quarry(['kv', 'put', 'a/b ?#%', ...user], { input: value }), {
    code: 0,
    stdout: '',
    stderr: '',
  });
  assert.equal((await quarry(['kv', 'get', 'a/b ?#%', ...user])).stdout, value);
  for (const key of ['..', '.', 'ключ']) {
    assert.equal((await quarry(['kv', 'put', key, 'v', ...user])).code, 0);
    assert.equal((await quarry(['kv', 'get', key, ...user])).stdout, 'v');
  }
  const listed = await quarry(['kv', 'list', ...user, '--prefix', 'a/']);
  assert.equal(listed.stdout, `${member.id}  a/b ?#%  line one\\nline two\\n\n`);
  const own = await quarry(['kv', 'list', '--prefix', 'a/', '--token', member.token]);
  assert.equal(own.stdout, 'a/b ?#%  line one\\nline two\\n\n');
  assert.equal((await quarry(['kv', 'delete', 'a/b ?#%', ...user, '--yes'])).code, 0);
  const gone = await quarry(['kv', 'get', 'a/b ?#%', ...user]);
  assert.deepEqual([gone.code, gone.stdout], [1, '']);
  const nobody = await quarry(['kv', 'get', 'x']);
  assert.equal(nobody.code, 1);
  assert.match(nobody.stderr, /Name the user with --user\./);
});

test('runs are invoked by lookup key and watched to their end', async () => {
  const workflow = (kind: object) => ({
    kind: 'WorkflowGraph',
    version: 1,
    start_node: 'end',
    nodes: [{ id: 'end', ...kind }],
  });
  for (const [key, kind] of [
    ['greet', { kind: 'complete', result: 'Hello {{$.name}}' }],
    ['break', { kind: 'fail', message: 'Never.' }],
  ] as const) {
    const made = await server.api<{ id: string }>('POST', '/api/v1/automations', {
      key: app.secretKey,
      body: { name: key, lookup_key: key, type: 'invoked', workflow: workflow(kind) },
    });
    assert.equal(made.status, 201, made.text);
    await server.api('POST', `/api/v1/automations/${made.body.id}/activate`, { key: app.secretKey });
  }
  const payload = write('payload.json', '{"name":"Ada"}');
  const ran = await quarry(['runs', 'invoke', 'greet', '--payload', `@${payload}`]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stderr, /^run atr_\w+\n$/);
  assert.match(ran.stdout, /node_completed end "Hello Ada"\n[\s\S]*completed "Hello Ada"\n$/);
  const failed = await quarry(['runs', 'invoke', 'break', '--no-wait']);
  const watched = await quarry(['runs', 'watch', failed.stdout.trim(), '--json']);
  assert.equal(watched.code, 1);
  assert.equal(JSON.parse(watched.stdout.trimEnd().split('\n').at(-1) ?? '').status, 'failed');
});

test('token creates sessions by e-mail, and creates, lists and revokes keys', async () => {
  const minted = await quarry(['token', 'user', member.email]);
  const token = minted.stdout.trim();
  const me = await server.api<{ id: string }>('GET', '/api/v1/users/me', { token });
  assert.equal(me.body.id, member.id);
  const made = await quarry(['token', 'key', '--name', 'laptop']);
  const key = made.stdout.trim();
  const id = /dak_\w+/.exec(made.stderr)?.[0] ?? '';
  const listed = await quarry(['token', 'keys'], { env: { QUARRY_API_KEY: key } });
  assert.match(listed.stdout, new RegExp(`^${id} {2}secret .*laptop$`, 'm'));
  assert.doesNotMatch(listed.stdout, new RegExp(key));
  const scopes = ['--scope', 'kv', '--scope', 'files:read', '--expires-in-days', '7'];
  const reader = (await quarry(['token', 'key', ...scopes])).stdout.trim();
  assert.equal((await quarry(['files', 'list'], { env: { QUARRY_API_KEY: reader } })).code, 0);
  const beyond = await quarry(['users', 'list'], { env: { QUARRY_API_KEY: reader } });
  assert.deepEqual([beyond.code, beyond.stderr.slice(0, 32)], [1, '403: The scopes of this key do n']);
  assert.match((await quarry(['token', 'keys'])).stdout, /kv,files:read {2}until 20\d\d-/);
  assert.equal((await quarry(['token', 'revoke', id])).code, 0);
  const refused = await quarry(['token', 'keys'], { env: { QUARRY_API_KEY: key } });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /^401: .*\nCheck --key/);
  assert.doesNotMatch(refused.stderr, new RegExp(key));
});

test('on the same machine the data directory gives server and key, and its key goes to no other server', async () => {
  const dataDir = join(directory, 'data');
  mkdirSync(dataDir);
  writeCredentialsFile(dataDir, {
    base_url: baseUrl,
    app: app.app.id,
    developer_token: app.developerToken,
    secret_key: app.secretKey,
    publishable_key: app.publishableKey,
  });
  const bare = { QUARRY_DATA_DIR: dataDir };
  assert.equal((await callQuarry(['token', 'keys'], { env: bare })).code, 0);
  const sandbox = await provision.sandbox(app);
  const there = await callQuarry(['token', 'keys', '--sandbox', sandbox.sandbox.id, '--json'], { env: bare });
  for (const each of jsonOf(there)) assert.equal(each.sandbox, sandbox.sandbox.id);

  const heard: unknown[] = [];
  const stranger = createServer((request, response) => {
    heard.push(request.headers);
    response.end('{}');
  });
  stranger.listen(0, '127.0.0.1');
  await once(stranger, 'listening');
  const url = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`;
  const refused = await callQuarry(['token', 'keys', '--url', url], { env: bare });
  stranger.close();
  assert.deepEqual([refused.code, heard], [2, []]);
  assert.match(refused.stderr, /No credential for http/);
});

test('a developer token acts in the app that --app names', async () => {
  const args = ['token', 'keys', '--token', otherApp.developerToken];
  const without = await quarry(args);
  assert.equal(without.code, 1);
  assert.match(without.stderr, /--app or QUARRY_APP/);
  assert.equal((await quarry([...args, '--app', otherApp.app.id])).code, 0);
});

test('erase waits and writes the signed certificate, and users export writes an archive', async () => {
  const user = await provision.user(app);
  const archive = join(directory, 'user.zip');
  const exported = await quarry(['users', 'export', user.id, '--out', archive]);
  assert.equal(exported.code, 0, exported.stderr);
  const files = unzipSync(readFileSync(archive));
  assert.deepEqual(JSON.parse(Buffer.from(files['export.json'] ?? '').toString()).user, user.id);
  const again = await quarry(['users', 'export', user.id, '--out', archive]);
  assert.deepEqual([again.code, again.stderr.includes('already exists')], [2, true]);

  const unasked = await quarry(['erase', '--user', user.id]);
  assert.deepEqual([unasked.code, unasked.stderr.includes('--yes')], [2, true]);
  assert.equal((await quarry(['erase', '--yes'])).code, 2);
  assert.equal((await quarry(['erase', '--user', user.id, '--source', 'x', '--yes'])).code, 2);
  const out = join(directory, 'certificate.json');
  const erased = await quarry(['erase', '--user', user.id, '--yes', '--out', out]);
  assert.equal(erased.code, 0, erased.stderr);
  const certificate = JSON.parse(readFileSync(out, 'utf8'));
  assert.deepEqual([certificate.statement.user, certificate.statement.removed.users], [user.id, 1]);
  const body = { type: 'knowledge/documents', org: org.id };
  const source = await server.api<{ id: string }>('POST', '/api/v1/knowledge_sources', { key: app.secretKey, body });
  const [printed] = jsonOf(await quarry(['erase', '--source', source.body.id, '--yes', '--json']));
  assert.deepEqual((printed?.statement as { source?: string } | undefined)?.source, source.body.id);
});

test('wrong use exits with 2 and says what to do; nothing is sent', async () => {
  const cases: [string[], RegExp][] = [
    [['upload'], /missing required argument/],
    [['upload', join(directory, 'absent')], /The file .* does not exist/],
    [['upload', directory], /is not a file/],
    [['extract', `${site.origin}/`, '--site', '--max-pages', '0'], /whole number of at least 1/],
    [['extract', `${site.origin}/`, '--max-pages', '5'], /requires --site/],
    [['extract', write('f.txt', 'x'), '--site'], /require a URL/],
    [['ingest', 'cso_x'], /Name what to ingest/],
    [['ingest', 'cso_x', '--pull', 'x.txt'], /does not accept files/],
    [['ingest', 'cso_x', write('m.txt', 'x'), '--metadata', '[]'], /JSON object/],
    [['runs', 'invoke', 'greet', '--payload', 'nope'], /JSON object/],
    [['kv', 'get'], /missing required argument/],
    [['kv', 'get', 'x', '--url', 'ftp://example.com'], /http or https/],
    [['kv', 'get', 'x', '--key', 'two words of it'], /not a credential/],
    [['search', 'cso_x', 'q', '--wrong'], /unknown option/],
    [['serve', '--port', '9000'], /unknown option.*\n.*PORT=9000 quarry serve/],
  ];
  for (const [args, words] of cases) {
    const ran = await quarry(args);
    assert.deepEqual([ran.code, ran.stdout], [2, ''], `${args.join(' ')}: ${ran.stderr}`);
    assert.match(ran.stderr, words);
  }
  const lost = await callQuarry(['kv', 'list'], { env: { QUARRY_DATA_DIR: nowhere } });
  assert.equal(lost.code, 2);
  assert.match(lost.stderr, /No server is configured/);
});

test('an unreachable server is reported in one line, with what to do', async () => {
  const ran = await quarry(['kv', 'list', '--url', 'http://127.0.0.1:9']);
  assert.equal(ran.code, 1);
  assert.match(ran.stderr, /^No server responds at http:\/\/127\.0\.0\.1:9 \(ECONNREFUSED\)\. .*npm start.*\n$/);
});

test('a reader that closes the pipe is not an error', async () => {
  const file = write('long.txt', 'many words and more of them\n'.repeat(60_000));
  const { child, ended } = startQuarry(['extract', file], { env });
  child.stdout.once('data', () => child.stdout.destroy());
  const { code, stderr: err } = await ended;
  assert.deepEqual([code, err], [0, '']);
});

test('every command explains itself', async () => {
  for (const args of [
    ['upload'],
    ['extract'],
    ['ingest'],
    ['search'],
    ['eval'],
    ['kv', 'put'],
    ['runs', 'invoke'],
    ['token', 'user'],
  ]) {
    const ran = await quarry([...args, '--help']);
    assert.deepEqual([ran.code, ran.stderr], [0, '']);
    assert.match(ran.stdout, /Usage: quarry .*Examples:/s);
    assert.match(ran.stdout, /--url <url>/);
  }
  assert.ok(!existsSync(nowhere), 'no command for people touches the data directory');
});
