import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { createTools, ToolError, toolNames } from '../../../clients/tools/src/index.ts';
import { Quarry } from '../../../clients/typescript/src/index.ts';
import { samplePdf } from '../../../src/content/parse/sample-pdf.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { htmlPage, startSite } from '../../support/fixture-site.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';

/*
 * The tools of clients/tools over @quarry/client, without a framework: what each returns, what its options keep from
 * an agent, and what a model reads when something goes wrong.
 */

const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
const site = await startSite({
  '/': htmlPage('Home', ['/one', '/two']),
  '/one': htmlPage('One'),
  '/two': htmlPage('Two'),
  '/slow': () => {},
});
after(async () => {
  await server.close();
  await site.close();
});
const { app, org, member, loner } = await server.provision.world();
const library = knowledgeOf(server, { key: app.secretKey });
const automations = new AutomationsClient(server, app);
const memberClient = new Quarry({ baseUrl: server.baseUrl, key: app.publishableKey, token: member.token });
const keyClient = new Quarry({ baseUrl: server.baseUrl, key: app.secretKey });
const siteHost = new URL(site.origin).hostname;

const [rivers, glaciers, secret] = [
  await library.createSource({ org: org.id }),
  await library.createSource({ org: org.id }),
  await library.createSource({ user: loner.id }),
];
const report = await library.push(rivers, 'Rivers carry silt to the sea.\n', { title: 'River report' });
const other = await library.push(glaciers, 'Rivers begin at glaciers.\n');
const hidden = await library.push(secret, 'Rivers that only the loner knows.\n');

/** Rejects with a ToolError that has this code and message. */
async function assertFails(call: Promise<unknown>, code: string, message: RegExp): Promise<void> {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof ToolError, String(error));
    assert.match(error.message, message);
    assert.equal(error.code, code);
    return true;
  });
}

async function storeFile(filename: string, type: string, bytes: string | Uint8Array): Promise<string> {
  const data = Buffer.from(bytes).toString('base64');
  const body = { filename, content_type: type, data };
  const { body: file } = await server.api<{ id: string }>('POST', '/api/v1/files', { token: member.token, body });
  return file.id;
}

test('search returns passages that are visible to the credential, with the data for a citation', async () => {
  const { search } = createTools(memberClient, { tools: ['search'] });
  const found = await search.execute({ query: 'rivers' });
  assert.deepEqual(new Set(found.passages.map(({ document }) => document)), new Set([report, other]));
  const cited = found.passages.find(({ document }) => document === report);
  assert.deepEqual(
    [cited?.title, cited?.source, cited?.start_line, cited?.start_byte, cited?.end_byte],
    ['River report', rivers, 1, 0, 29],
  );
  assert.match(search.describe(found), new RegExp(`River report, ${report}, lines 1-1, bytes 0-29\nRivers carry silt`));
  assert.equal(search.describe(await search.execute({ query: 'xylophone', max_results: 1 })), 'No results.');
  assert.equal((await search.execute({ query: 'rivers', max_results: 1 })).passages.length, 1);
});

test('search and read are limited to the sources that the options name', async () => {
  const options = { tools: ['search', 'read'], sources: { [rivers]: 'Water' } } as const;
  const { search, read } = createTools(keyClient, options);
  assert.match(search.description, new RegExp(`- ${rivers}: Water`));
  const found = await search.execute({ query: 'rivers' });
  assert.deepEqual([...new Set(found.passages.map(({ source }) => source))], [rivers]);
  assert.ok(!search.inputSchema.safeParse({ query: 'rivers', sources: [glaciers] }).success);
  assert.equal((await read.execute({ id: report })).title, 'River report');
  await assertFails(read.execute({ id: other }), 'not_allowed', /may not read/);
});

test('an end user’s token reads nothing of others, and a hidden document is like a missing one', async () => {
  const { read } = createTools(memberClient, { tools: ['read'] });
  await assertFails(read.execute({ id: hidden }), 'not_found', /\(404 not_found\).*Check the id/);
  await assertFails(read.execute({ id: `cdo_${'0'.repeat(22)}` }), 'not_found', /\(404 not_found\)/);
  const { read: free } = createTools(keyClient, { tools: ['read'] });
  assert.match((await free.execute({ id: hidden })).content, /only the loner knows/);
});

test('a long text is read in parts that fit the limit and join to the whole', async () => {
  const text = `# Überschrift\n\n${'Äpfel, 漢字 und 🦦 im Fluß. '.repeat(200)}`;
  const document = await library.push(rivers, text);
  const file = await storeFile('long.md', 'text/markdown', text);
  const { read } = createTools(memberClient, { tools: ['read'], files: true, charactersMax: 1_000 });
  for (const id of [document, file]) {
    let whole = '';
    let offset: number | undefined = 0;
    let parts = 0;
    while (offset !== undefined) {
      const part = await read.execute({ id, offset });
      const said = read.describe(part);
      assert.ok(said.length <= 1_000 && said.includes(part.content));
      if (part.next_offset !== undefined) assert.ok(said.includes(`id ${id} and offset ${part.next_offset}.]`));
      whole += part.content;
      offset = part.next_offset;
      parts += 1;
    }
    assert.equal(whole.trim(), text.trim());
    assert.ok(parts > 10);
  }
  const end = await read.execute({ id: file, offset: 1_000_000 });
  assert.deepEqual([end.content, end.next_offset], ['', undefined]);
});

test('read opens files only if the options allow it, and names the tool for other documents', async () => {
  const pdf = await storeFile('report.pdf', 'application/pdf', samplePdf());
  const { read } = createTools(memberClient, { tools: ['read'] });
  await assertFails(read.execute({ id: pdf }), 'not_allowed', /no files/);
  const { read: files } = createTools(memberClient, { tools: ['read'], files: true });
  await assertFails(files.execute({ id: pdf }), 'unsupported_content', /application\/pdf. Use extract/);
});

test('extract reads a page, a site and a stored document as Markdown', async () => {
  const { extract } = createTools(memberClient, { tools: ['extract'], files: true });
  const page = await extract.execute({ url: `${site.origin}/one` });
  assert.equal(page.state, 'done');
  assert.match(page.part?.content ?? '', /One/);
  const whole = await extract.execute({ url: `${site.origin}/`, mode: 'site' });
  assert.deepEqual([whole.progress.done, whole.outputs.length, whole.outputs_left_out], [3, 3, 0]);
  const second = await extract.execute({ extraction: whole.extraction, output: whole.outputs[1]?.number });
  assert.equal(second.part?.output, whole.outputs[1]?.number);
  assert.match(extract.describe(second), /3 of 3 pages read[\s\S]*- 0: [\s\S]*Page 1, bytes 0-/);
  await assertFails(extract.execute({ extraction: whole.extraction, output: 9 }), 'not_found', /number 9/);
  const file = await storeFile('report.pdf', 'application/pdf', samplePdf());
  assert.ok(((await extract.execute({ file })).part?.size ?? 0) > 100);
});

test('extract is limited to the hosts, pages and files of its options', async () => {
  const { extract } = createTools(memberClient, { tools: ['extract'], hosts: ['*.example.com'], pagesMax: 2 });
  await assertFails(extract.execute({ url: `${site.origin}/one` }), 'not_allowed', /Allowed hosts: \*\.example\.com/);
  await assertFails(extract.execute({ url: 'https://example.com.evil.test/' }), 'not_allowed', /evil\.test is not/);
  await assertFails(extract.execute({ url: 'nonsense' }), 'invalid_arguments', /whole URL/);
  assert.ok(!extract.inputSchema.safeParse({ url: 'https://a.example.com/', max_pages: 3 }).success);
  assert.ok(!extract.inputSchema.safeParse({ file: 'fil_1' }).success);

  const { extract: here } = createTools(memberClient, { tools: ['extract'], hosts: [siteHost], pagesMax: 2 });
  const found = await here.execute({ url: `${site.origin}/`, mode: 'site' });
  assert.equal(found.outputs.length, 2);
  await assertFails(extract.execute({ extraction: found.extraction }), 'not_allowed', /not allowed/);

  const { extract: files } = createTools(memberClient, { tools: ['extract'], files: true });
  const document = await files.execute({ file: await storeFile('a.html', 'text/html', '<p>Private.</p>') });
  await assertFails(here.execute({ extraction: document.extraction }), 'not_allowed', /extraction of a file/);
  await assertFails(files.execute({}), 'invalid_arguments', /exactly one of url, file, extraction/);
});

test('extract stops waiting after its time and continues by id; aborting ends the call immediately', async () => {
  const { extract } = createTools(memberClient, { tools: ['extract'], waitSeconds: 0 });
  const started = await extract.execute({ url: `${site.origin}/slow` });
  assert.equal(started.state, 'running');
  assert.ok(extract.describe(started).includes(`Call extract with extraction ${started.extraction} to look again`));
  assert.equal((await extract.execute({ extraction: started.extraction })).state, 'running');

  const { extract: patient } = createTools(memberClient, { tools: ['extract'], waitSeconds: 300 });
  const controller = new AbortController();
  const waiting = patient.execute({ extraction: started.extraction }, { signal: controller.signal });
  const reason = new Error('The user left.');
  setImmediate(() => controller.abort(reason));
  await assert.rejects(waiting, reason);
  await assert.rejects(patient.execute({ extraction: started.extraction }, { signal: controller.signal }), reason);
});

test('kv stores, reads in parts, lists and deletes only below its prefix', async () => {
  const tools = ['kv_get', 'kv_put', 'kv_list', 'kv_delete'] as const;
  const options = { tools, kvPrefix: 'agent/', charactersMax: 1_000 };
  for (const kv of [createTools(memberClient, options), createTools(keyClient, { ...options, kvUser: loner.id })]) {
    await kv.kv_put.execute({ key: 'a/../b ?#%', value: 'x'.repeat(1_500), ttl_seconds: 3_600 });
    await kv.kv_put.execute({ key: 'theme', value: 'dark' });
    const first = await kv.kv_get.execute({ key: 'a/../b ?#%' });
    assert.deepEqual([first.value.length, first.total_characters, first.next_offset], [800, 1_500, 800]);
    assert.ok(kv.kv_get.describe(first).length <= 1_000);
    const rest = await kv.kv_get.execute({ key: 'a/../b ?#%', offset: 800 });
    assert.deepEqual([rest.value.length, rest.next_offset], [700, undefined]);
    const all = await kv.kv_list.execute({});
    assert.deepEqual([all.entries.map(({ key }) => key), all.next_cursor], [['a/../b ?#%', 'theme'], undefined]);
    assert.ok(all.entries.every(({ value }) => value.length <= 200));
    const matching = await kv.kv_list.execute({ prefix: 'th' });
    assert.match(kv.kv_list.describe(matching), /^1 entries\.\ntheme: dark$/);
    await kv.kv_delete.execute({ key: 'theme' });
    await assertFails(kv.kv_get.execute({ key: 'theme' }), 'not_found', /Check the id or key/);
  }
  const { kv_get: whole, kv_list: list } = createTools(memberClient, { tools: ['kv_get', 'kv_list'] });
  assert.equal((await whole.execute({ key: 'agent/a/../b ?#%' })).total_characters, 1_500);
  await memberClient.kv.put('private', { value: 'not the agent’s' });
  const { kv_list: below } = createTools(memberClient, options);
  assert.equal((await below.execute({})).entries.length, 1);
  assert.equal((await list.execute({})).entries.length, 2);
  await assertFails(whole.execute({ key: '..' }), 'invalid_arguments', /cannot be \. or \.\./);
});

test('a list of keys says how to continue, even if it is cut', async () => {
  const tools = ['kv_put', 'kv_list'] as const;
  const kv = createTools(memberClient, { tools, kvPrefix: 'many/', charactersMax: 1_000 });
  for (let at = 0; at < 30; at++) await kv.kv_put.execute({ key: `${'k'.repeat(100)}${at}`, value: 'v'.repeat(300) });
  const first = await kv.kv_list.execute({});
  const said = kv.kv_list.describe(first);
  assert.ok(
    said.length <= 1_000 && said.startsWith(`25 entries, and more: call kv_list with cursor ${first.next_cursor}.`),
  );
  const second = await kv.kv_list.execute({ cursor: first.next_cursor });
  assert.deepEqual([first.entries.length, second.entries.length], [25, 5]);
  assert.equal(new Set([...first.entries, ...second.entries].map(({ key }) => key)).size, 30);
});

test('a secret key without a user gets an error that says so', async () => {
  const { kv_get: get, kv_list: list } = createTools(keyClient, { tools: ['kv_get', 'kv_list'] });
  await assertFails(list.execute({}), 'user_required', /400 user_required/);
  await assertFails(get.execute({ key: 'theme' }), 'user_required', /400 user_required/);
});

test('run invokes what it may, waits for the result, and returns to a run that takes longer', async () => {
  const sum = { id: 'sum', kind: 'complete', result: '{{$.a + $.b}}' };
  const input_schema = { type: 'object', required: ['a'], properties: { a: { type: 'integer' } } };
  await automations.createAutomation({ lookup_key: 'sum', input_schema, workflow: graphOf(sum) });
  const wait = { id: 'wait', kind: 'wait_for_signal', name: 'go', on_success: 'end' };
  const slow = await automations.createAutomation({
    lookup_key: 'slow',
    workflow: graphOf(wait, { id: 'end', kind: 'complete', result: 'done' }),
  });
  const allowed = { sum: 'Adds a and b.', slow: 'Waits.' };
  const { run } = createTools(memberClient, { tools: ['run'], automations: allowed, waitSeconds: 30 });
  assert.match(run.description, /- sum: Adds a and b\.\n- slow: Waits\./);
  const ended = await run.execute({ automation: 'sum', payload: { a: 20, b: 22 } });
  assert.deepEqual([ended.status, ended.result], ['completed', 42]);
  assert.equal(run.describe(ended), `${ended.run} is completed.\n42`);
  await assertFails(run.execute({ automation: 'sum', payload: { a: 'x' } }), 'invalid_parameters', /payload/);
  assert.ok(!run.inputSchema.safeParse({ automation: 'other' }).success);

  const { run: hasty } = createTools(memberClient, { tools: ['run'], automations: ['slow'], waitSeconds: 0 });
  const started = await hasty.execute({ automation: 'slow' });
  assert.match(hasty.describe(started), /Call run with run atr_\w+ to look again/);
  await automations.call('POST', `/automation_runs/${started.run}/signal`, { name: 'go' });
  assert.equal((await run.execute({ run: started.run })).result, 'done');
  const { run: byId } = createTools(memberClient, { tools: ['run'], automations: [slow.id] });
  assert.equal((await byId.execute({ run: started.run })).result, 'done');
  await assertFails(byId.execute({ run: ended.run }), 'not_allowed', /may not use/);
  await assertFails(hasty.execute({ run: ended.run }), 'not_allowed', /may not use/);
});

test('a long result of a run is cut', async () => {
  const items = { id: 'end', kind: 'complete', result: '{{$.text}}' };
  await automations.createAutomation({ lookup_key: 'echo', workflow: graphOf(items) });
  const { run } = createTools(memberClient, { tools: ['run'], automations: ['echo'], charactersMax: 1_000 });
  const ended = await run.execute({ automation: 'echo', payload: { text: 'x'.repeat(5_000) } });
  assert.equal(ended.result, undefined);
  assert.ok(ended.result_cut?.endsWith('[cut]') && run.describe(ended).length <= 1_000);
});

test('an agent gets the tools that were chosen, and wrong options fail where they are made', () => {
  assert.deepEqual(Object.keys(createTools(memberClient, { tools: ['kv_get', 'read'] })), ['kv_get', 'read']);
  const wrong: [object, RegExp][] = [
    [{ tools: ['run'] }, /run needs automations/],
    [{ tools: ['fly'] }, /fly is not one of search, read/],
    [{ tools: ['search'], sources: undefined }, /sources is undefined/],
    [{ tools: ['search'], sources: [] }, /sources must name 1 to 100, not 0/],
    [{ tools: ['read'], charactersMax: 10 }, /charactersMax must be an integer from 1000/],
    [{ tools: ['read'], waitSeconds: 1.5 }, /waitSeconds must be an integer from 0 to 300, not 1.5/],
  ];
  for (const [options, message] of wrong)
    assert.throws(() => createTools(memberClient, options as { tools: ['read'] }), { name: 'TypeError', message });
  assert.deepEqual(toolNames.length, 8);
});

test('errors tell the model what to do and hold no credential', async () => {
  const wrongKey = new Quarry({ baseUrl: server.baseUrl, key: 'sk_wrong1234567890' });
  const { search } = createTools(wrongKey, { tools: ['search'] });
  await assertFails(search.execute({ query: 'rivers' }), 'invalid_credentials', /401 .*tell the user/);

  const closed = new Quarry({ baseUrl: 'http://127.0.0.1:1', key: app.secretKey });
  const { search: nowhere } = createTools(closed, { tools: ['search'] });
  await assertFails(nowhere.execute({ query: 'rivers' }), 'unreachable', /cannot be reached/);

  // A proxy that repeats the headers of the request.
  const proxy = createServer((request, response) => {
    const said = JSON.stringify(request.headers);
    if (request.url?.includes('kv')) return response.end('<html>');
    return response.writeHead(502).end(JSON.stringify({ error: { code: 'bad_gateway', message: said } }));
  });
  after(() => proxy.close());
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const base = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  for (const client of [
    new Quarry({ baseUrl: base, key: app.secretKey }),
    new Quarry({ baseUrl: base, key: app.publishableKey, token: member.token }),
  ]) {
    const tools = createTools(client, { tools: ['search', 'kv_get'] });
    await assertFails(tools.search.execute({ query: 'rivers' }), 'bad_gateway', /\[redacted\].*Call again later/);
    const said = await tools.search.execute({ query: 'rivers' }).then(String, String);
    for (const value of [app.secretKey, app.publishableKey, member.token]) assert.ok(!said.includes(value));
    await assertFails(tools.kv_get.execute({ key: 'a' }), 'unreachable', /base URL may be wrong/);
  }
});
