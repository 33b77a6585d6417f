import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { actions } from '../../src/cli/client/action-kinds.ts';
import { formatMembers, formatTable } from '../../src/cli/client/table.ts';
import { graphOf } from '../support/automations.ts';
import { callQuarry, runQuarry } from '../support/command.ts';
import { sendRequest, startTestServer } from '../support/server.ts';
import { uploadHeaders } from '../support/uploads.ts';

/* `quarry <kind> list|get|create|delete` and `quarry runs …`, with names in place of ids. */

const server = await startTestServer();
const { provision, baseUrl } = server;
const { app, member } = await provision.world();
const directory = mkdtempSync(join(tmpdir(), 'quarry-resources-'));
const env = { QUARRY_DATA_DIR: join(directory, 'no-data'), QUARRY_API_URL: baseUrl, QUARRY_API_KEY: app.secretKey };
after(async () => {
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});

const quarry = (args: string[]) => callQuarry(args, { env });

async function ok(args: string[]): Promise<string> {
  const ran = await quarry(args);
  assert.equal(ran.code, 0, `${args.join(' ')}: ${ran.stderr}`);
  return ran.stdout;
}

const json = async <T = Record<string, unknown>>(args: string[]) => JSON.parse(await ok([...args, '--json'])) as T;

test('every kind is created, listed, shown and deleted, by name', async () => {
  const report = join(directory, 'report.txt');
  writeFileSync(report, 'All is well.');
  const automation = join(directory, 'ends.json');
  writeFileSync(automation, JSON.stringify({ type: 'invoked', workflow: graphOf({ id: 'end', kind: 'complete' }) }));
  const kinds: [kind: string, name: string, create: string[], column: string][] = [
    ['orgs', 'My org', ['My org', '--set', 'slug=my-org'], 'my-org'],
    ['users', 'ada@example.com', ['ada@example.com', '--org', 'my-org', '--set', 'name=Ada'], 'My org'],
    ['teams', 'Support', ['Support', '--org', 'My org'], 'Support'],
    ['agents', 'helper', ['Helper', '--user', 'ADA@example.com', '--set', 'lookup_key=helper'], 'Helper'],
    ['sources', 'Book', ['knowledge/documents', '--agent', 'helper', '--set', 'metadata={"name":"Book"}'], 'Book'],
    ['files', 'report.txt', [report, '--user', 'Ada'], 'text/plain'],
    ['automations', 'Ends', ['Ends', '--data', `@${automation}`], 'draft'],
  ];
  for (const [kind, name, args, column] of kinds) {
    const id = (await ok([kind, 'create', ...args])).trim().split(/\s/)[0] ?? '';
    const shown = await json([kind, 'get', name]);
    assert.equal(shown.id, id, kind);
    assert.match(await ok([kind, 'get', id]), new RegExp(`^id +${id}$`, 'm'));
    const table = await ok([kind, 'list']);
    const line = table.split('\n').find((each) => each.startsWith(id));
    assert.ok(line?.split('\t').includes(column), table);
    const listed = await json<{ data: { id: string }[] }>([kind, 'list', '--limit', '100']);
    assert.ok(listed.data.some((each) => each.id === id));
  }
  const nameless: [kind: string, create: string[], change: string][] = [
    ['threads', ['Night watch', '--user', 'Ada'], 'title=Day watch'],
    ['sandboxes', ['Rehearsal'], 'name=Dress rehearsal'],
    ['webhooks', ['https://example.com/hook', '--set', 'events=["file.created"]'], 'url=https://example.com/other'],
    ['issuers', ['https://login.example.com', '--set', 'audience=quarry'], 'audience=other'],
  ];
  for (const [kind, args, change] of nameless) {
    const id = (await ok([kind, 'create', ...args])).trim();
    assert.match(await ok([kind, 'list']), new RegExp(`^${id}\\t`, 'm'));
    const [member = '', value] = change.split('=');
    const changed = await json([kind, 'update', id, '--set', change]);
    assert.deepEqual([changed.id, typeof changed[member] === 'string' ? changed[member] : value], [id, value]);
    assert.equal((await quarry([kind, 'delete', id, '--yes'])).code, 0);
  }
  const extraction = await json(['extractions', 'create', 'https://host.invalid/']);
  assert.match(await ok(['extractions', 'list']), new RegExp(`^${extraction.id}\t`, 'm'));
  assert.equal((await json(['users', 'list', '--org', 'My org', '--search', 'ada'])).total_entries, 1);
  for (const [kind, name] of kinds.toReversed()) {
    const ran = await quarry([kind, 'delete', name, '--yes']);
    assert.match(ran.stderr, /^Deleted \w+_\w{22}\.\n$/);
    const gone = await quarry([kind, 'get', name]);
    assert.deepEqual([gone.code, gone.stdout], [1, '']);
    assert.match(gone.stderr, /^404: No /);
  }
});

test('an ambiguous name lists its candidates and changes nothing', async () => {
  const ids = [];
  for (const slug of ['one', 'two']) ids.push((await ok(['orgs', 'create', 'Twins', '--set', `slug=${slug}`])).trim());
  const ran = await quarry(['orgs', 'delete', 'twins']);
  assert.equal(ran.code, 2);
  assert.match(ran.stderr, /^2 orgs are called "twins"\. Pass the id of one:\n/);
  for (const id of ids) assert.match(ran.stderr, new RegExp(`^ {2}${id} {2}(one|two) {2}Twins$`, 'm'));
  // A slug is one org's own, so it is found although another has it as its name.
  assert.equal((await json(['orgs', 'get', 'TWO'])).id, ids[1]);
  assert.equal((await quarry(['orgs', 'delete', 'one', 'nobody'])).code, 1);
  assert.equal((await json(['orgs', 'get', 'one'])).id, ids[0]);
});

test('names stand for ids wherever a command takes one', async () => {
  await ok(['kv', 'put', 'theme', 'dark', '--user', member.email]);
  assert.equal(await ok(['kv', 'get', 'theme', '--user', member.id]), 'dark');
  const text = join(directory, 'refunds.md');
  writeFileSync(text, '# Refunds\n\n| Days |\n| ---- |\n| 5 |');
  const agent = (await ok(['agents', 'create', 'Seeker'])).trim();
  await ok(['sources', 'create', 'knowledge/documents', '--agent', agent, '--set', 'metadata={"name":"Terms"}']);
  await ok(['ingest', 'terms', text]);
  const found = await ok(['search', 'Terms', 'refunds']);
  assert.match(found, /^1\. refunds\.md .*\n {3}# Refunds\n\n {3}\| Days \|\n {3}\|[ -]+\|\n {3}\| 5 +\|\n\n$/);
  assert.equal(await ok(['search', 'seeker', 'refunds']), found);
  const nobody = await quarry(['search', 'nothing', 'refunds']);
  assert.equal(nobody.code, 1);
  assert.match(nobody.stderr, /^404: No source or agent is called "nothing"\. To search everything, put the whole/);
});

test('search without a source searches everything visible', async () => {
  const text = join(directory, 'penguins.md');
  writeFileSync(text, 'Emperor penguins breed in winter.');
  await ok(['sources', 'create', 'knowledge/documents', '--user', member.id, '--set', 'metadata={"name":"Birds"}']);
  await ok(['ingest', 'birds', text]);
  assert.match(await ok(['search', 'where do penguins breed']), /^1\. penguins\.md .*\n {3}Emperor penguins/);
  const [source] = (await json<{ data: { id: string }[] }>(['sources', 'list'])).data;
  const wordless = await quarry(['search', source?.id ?? '']);
  assert.equal(wordless.code, 2);
  assert.match(wordless.stderr, /^What should be searched in cso_\w+\?/);
});

test('search shows the address of a web passage, with the fragment of its heading', async () => {
  const hit = { title: 'Tea', document: 'doc_1', start_line: 1, end_line: 2, score: 0.5, content: 'Hot water.' };
  const page = { ...hit, source_url: 'http://tea.test/a' };
  const api = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ data: [{ ...page, fragment: 'water' }, page, hit] }));
  });
  await once(api.listen(0, '127.0.0.1'), 'listening');
  try {
    const { port } = api.address() as AddressInfo;
    const ran = await callQuarry(['search', 'tea'], { env: { ...env, QUARRY_API_URL: `http://127.0.0.1:${port}` } });
    const lines = ran.stdout.split('\n').filter((line) => line !== '' && !/^\d\./.test(line));
    const text = '   Hot water.';
    assert.deepEqual(lines, ['   http://tea.test/a#water', text, '   http://tea.test/a', text, text]);
  } finally {
    api.close();
  }
});

test('what destroys data asks first: nothing happens without a yes, and scripts pass --yes', async () => {
  const { id } = await json<{ id: string }>(['users', 'create', 'asked@example.com']);
  await ok(['kv', 'put', 'a', '1', '--user', id]);
  await callQuarry(['secrets', 'set', 'ASKED'], { env, input: 'hidden\n' });
  const commands = [
    [['kv', 'delete', 'a', '--user', id], /Delete the entry a\?/],
    [['secrets', 'delete', 'ASKED'], /Delete the secret\?/],
    [
      ['users', 'delete', 'asked@example.com'],
      /Delete users asked@example\.com, and everything that belongs to them\?/,
    ],
  ] as const;
  for (const [command, question] of commands) {
    const args = [...command];
    const scripted = await quarry(args);
    assert.deepEqual([scripted.code, /Scripts pass --yes/.test(scripted.stderr)], [2, true], scripted.stderr);
    for (const input of ['n\n', '\n', '']) {
      const refused = await callQuarry(args, { env, input, isTerminal: true });
      assert.equal(refused.code, 2, `${args.join(' ')} ${JSON.stringify(input)}: ${refused.stderr}`);
      assert.match(refused.stderr, question);
    }
  }
  assert.equal((await json<{ id: string }>(['users', 'get', id])).id, id);
  for (const [command] of commands) {
    const done = await callQuarry([...command], { env, input: 'y\n', isTerminal: true });
    assert.equal(done.code, 0, done.stderr);
  }
  assert.equal((await quarry(['users', 'get', id])).code, 1);
});

test('every command that sends a DELETE asks, or ends only a right', () => {
  const rights = ['accept-unsigned <source>', 'remove-member <team> <member>', 'revoke-token <user> <token>'];
  const silent = Object.values(actions)
    .flat()
    .filter(({ request, asks }) => request.startsWith('DELETE') && asks === undefined);
  assert.deepEqual(silent.map(({ usage }) => usage).toSorted(), rights);
});

test('unfinished uploads are listed, shown and deleted', async () => {
  const created = await sendRequest(baseUrl, 'POST', '/api/v1/uploads', {
    key: app.secretKey,
    headers: { ...uploadHeaders({ filename: 'film.mp4', content_type: 'video/mp4' }), 'upload-length': '5000' },
  });
  assert.equal(created.status, 201, created.text);
  const { data } = await json<{ data: { id: string; offset: number; length: number }[] }>(['uploads', 'list']);
  assert.deepEqual([data.length, data[0]?.offset, data[0]?.length], [1, 0, 5000]);
  assert.equal((await json(['uploads', 'get', 'film.mp4'])).id, data[0]?.id);
  assert.equal((await quarry(['uploads', 'delete', 'film.mp4', '--yes'])).stderr, `Deleted ${data[0]?.id}.\n`);
  assert.equal((await json<{ data: [] }>(['uploads', 'list'])).data.length, 0);
});

test('an app and a sandbox are named by their names', async () => {
  const named = async (path: string, token: string, name: string, headers = {}) => {
    const made = await sendRequest<{ id: string }>(baseUrl, 'POST', path, { token, headers, body: { name } });
    assert.equal(made.status, 201, made.text);
    return made.body.id;
  };
  const token = app.developerToken;
  const shop = await named('/protected/api/v1/developer/apps', token, 'Größter Shop');
  const sandbox = await named('/api/v1/sandboxes', token, 'Dress rehearsal', { 'x-app': shop });
  const developer = { QUARRY_API_KEY: '', QUARRY_TOKEN: token, QUARRY_APP: 'größter shop' };
  const there = [...['token', 'key', '--json'], ...['--sandbox', 'dress rehearsal']];
  const env = { QUARRY_DATA_DIR: join(directory, 'no-data'), QUARRY_API_URL: baseUrl, ...developer };
  const run = async (args: string[]) => {
    const ran = await callQuarry(args, { env });
    assert.equal(ran.code, 0, ran.stderr);
    return JSON.parse(ran.stdout) as { app?: string; sandbox?: string };
  };
  const inSandbox = await run(there);
  const byOption = await run(['token', 'key', '--json', '--in-sandbox', 'Dress rehearsal']);
  const who = await run(['whoami', '--json', '--sandbox', 'Dress rehearsal']);
  for (const each of [inSandbox, byOption, who]) assert.deepEqual([each.app, each.sandbox], [shop, sandbox]);
  const wrong = await callQuarry(['token', 'keys', '--sandbox', 'none'], { env });
  assert.deepEqual([wrong.code, wrong.stderr], [1, '404: No sandbox has the name "none".\n']);
});

test('runs are listed, signalled, cancelled and retried', async () => {
  const nodes = [
    { id: 'wait', kind: 'wait_for_signal', name: 'go', on_success: 'end' },
    { id: 'end', kind: 'complete' },
  ];
  const workflow = graphOf(...nodes);
  const body = { name: 'Waits for me', lookup_key: 'waits', type: 'invoked', workflow };
  const made = await server.api<{ id: string }>('POST', '/api/v1/automations', { key: app.secretKey, body });
  assert.equal(made.status, 201, made.text);
  await server.api('POST', `/api/v1/automations/${made.body.id}/activate`, { key: app.secretKey });
  const start = async () => (await ok(['runs', 'invoke', 'Waits for me', '--no-wait'])).trim();

  const cancelled = await start();
  assert.equal(await ok(['runs', 'cancel', cancelled]), `${cancelled}  cancelled\n`);
  const again = (await ok(['runs', 'retry', cancelled, '--no-wait'])).trim();
  assert.notEqual(again, cancelled);
  const sent = await ok(['runs', 'signal', again, 'go', '--payload', '{"by":"Ada"}']);
  assert.match(sent, new RegExp(`^${again} {2}`));
  assert.match(await ok(['runs', 'watch', again]), /completed /);
  const listed = await ok(['runs', 'list', '--automation', 'Waits for me', '--status', 'cancelled']);
  assert.match(listed, new RegExp(`^${cancelled}\tWaits for me\tcancelled\t`));
  assert.equal(listed.trimEnd().split('\n').length, 1);
  const newest = await quarry(['runs', 'list', '--limit', '1']);
  assert.ok(newest.stdout.startsWith(again), newest.stdout);
  const cursor = /--after (\S+)\n$/.exec(newest.stderr)?.[1] ?? '';
  assert.ok((await ok(['runs', 'list', '--after', cursor])).startsWith(cancelled));
});

test('a table is aligned and coloured on a terminal, and tab-separated in a pipe', () => {
  const rows = [
    { id: 'a', state: 'failed', metadata: { name: 'x\u001b[2J'.repeat(40) } },
    { id: 'bbb', state: 'done', metadata: null },
  ];
  const columns = ['id', 'state', 'metadata.name'];
  const paint = (style: string, text: string) => `<${style}>${text}</>`;
  const shown = formatTable(rows, columns, { terminal: true, paint });
  const [head, first, second] = shown.split('\n');
  assert.equal(head, '<bold>id </>  <bold>state </>  <bold>name</>');
  assert.match(first ?? '', /^a {4}<red>failed<\/> {2}x \[2J.*…$/);
  assert.equal(second, 'bbb  <green>done  </>  ');
  assert.ok(!shown.includes('\u001b'));
  const piped = formatTable(rows, columns, { terminal: false, paint });
  assert.match(piped, /^a\tfailed\tx \[2J/);
  assert.doesNotMatch(piped, /<|…/);
  assert.equal(
    formatMembers({ id: 'a', none: null, map: { b: 1 } }, { terminal: true, paint: (_, text) => text }),
    'id   a\nmap  {"b":1}\n',
  );
});

test('colours obey NO_COLOR, and none are in a pipe', async () => {
  const show = async (colours: Record<string, string>) =>
    (await runQuarry(['users', 'get', member.id], { env: { ...env, ...colours } })).stdout;
  const plain = await show({});
  assert.ok(plain.startsWith('id ') && !plain.includes('\u001b'), plain);
  const forced = await show({ FORCE_COLOR: '1' });
  assert.ok(forced.includes('\u001b[1mid'), forced);
  assert.equal(await show({ NO_COLOR: '1' }), plain);
});

test('wrong use of the commands exits with 2 and sends nothing', async () => {
  const cases: [string[], RegExp][] = [
    [['users', 'create', 'a@example.com', '--set', 'name'], /--set takes name=value/],
    [['users', 'create', 'a@example.com', '--data', '[]'], /JSON object/],
    [['extractions', 'get', 'something'], /is not an id/],
    [['runs', 'list', '--status', 'odd'], /Allowed choices/],
    [['orgs', 'delete'], /missing required argument/],
  ];
  for (const [args, words] of cases) {
    const ran = await quarry(args);
    assert.deepEqual([ran.code, ran.stdout], [2, ''], `${args.join(' ')}: ${ran.stderr}`);
    assert.match(ran.stderr, words);
  }
});
