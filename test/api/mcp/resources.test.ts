import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { graphOf } from '../../support/automations.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

/* Resources, prompts, and what an end user may search and invoke, by the official client. */

const server = await startTestServer();
const { api, baseUrl, provision } = server;
const { app, member, org, stranger } = await provision.world();
const clients: Client[] = [];
after(async () => {
  for (const client of clients) await client.close();
  await server.close();
});

async function connect(token: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${baseUrl}/mcp`), { requestInit }));
  clients.push(client);
  return client;
}

const asMember = await connect(member.token);
const asStranger = await connect(stranger.token);
const knowledge = knowledgeOf(server, { key: app.secretKey });
const source = await knowledge.createSource({ user: member.id });
const ingest = async (title: string, data: string) =>
  (await knowledge.ingest(source, { content: { data }, title })).metadata.document as string;
const opening = await ingest('Opening hours', 'We open at nine on weekdays.');
const upload = async (filename: string, content_type: string, bytes: Uint8Array) => {
  const body = { filename, content_type, data: Buffer.from(bytes).toString('base64') };
  const made = await api<{ id: string }>('POST', '/api/v1/files', { token: member.token, body });
  assert.equal(made.status, 201, made.text);
  return made.body.id;
};
const note = await upload('note.txt', 'text/plain', Buffer.from('Ring twice.'));
const picture = await upload('dot.png', 'image/png', Uint8Array.from([137, 80, 78, 71]));

const contentsOf = async (uri: string) => (await asMember.readResource({ uri })).contents[0] as Record<string, unknown>;

test('documents and files are resources: listed in pages, and read', async () => {
  for (let n = 0; n < 60; n++) await upload(`${n}.txt`, 'text/plain', Buffer.from(String(n)));
  const names: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await asMember.listResources(cursor === undefined ? {} : { cursor });
    names.push(...page.resources.map(({ name }) => name));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  assert.equal(names.length, 63);
  assert.equal(new Set(names).size, 63);
  assert.equal((await asMember.listResources({ cursor: 'files/2' })).resources.length, 12);
  const { resourceTemplates } = await asMember.listResourceTemplates();
  assert.deepEqual(resourceTemplates.map(({ uriTemplate }) => uriTemplate).sort(), [
    'quarry://documents/{document}',
    'quarry://files/{file}',
  ]);
  const text = await contentsOf(`quarry://documents/${opening}`);
  assert.deepEqual([text.mimeType, text.text], ['text/markdown', 'We open at nine on weekdays.']);
  assert.equal((await contentsOf(`quarry://files/${note}`)).text, 'Ring twice.');
  const bytes = await contentsOf(`quarry://files/${picture}`);
  assert.deepEqual([bytes.mimeType, bytes.blob], ['image/png', 'iVBORw==']);
});

test('a hidden or missing resource does not exist; a large one names the tool that reads it in parts', async () => {
  assert.deepEqual((await asStranger.listResources()).resources, []);
  const missing = [
    `quarry://documents/${opening}`,
    `quarry://files/${note}`,
    'quarry://files/fil_0',
    'file:///etc/passwd',
  ];
  for (const uri of missing)
    await assert.rejects(asStranger.readResource({ uri }), /does not exist, or you may not see it/);
  const large = await upload('large.txt', 'text/plain', Buffer.alloc(300_000, 'x'));
  await assert.rejects(asMember.readResource({ uri: `quarry://files/${large}` }), /call read_file with file fil_/);
  await assert.rejects(asMember.listResources({ cursor: 'files/0' }), /cursor/);
});

test('prompts describe their arguments, and name a missing or unknown one', async () => {
  const { prompts } = await asMember.listPrompts();
  assert.deepEqual(
    prompts.map(({ name }) => name),
    ['answer_from_knowledge', 'summarize_document', 'research_site'],
  );
  const question = 'When do you open?';
  const answered = await asMember.getPrompt({ name: 'answer_from_knowledge', arguments: { question, source } });
  const [message] = answered.messages;
  assert.ok(message?.content.type === 'text' && message.content.text.includes(question));
  assert.ok(message.content.text.includes(`search_knowledge with source ${source}`));
  await assert.rejects(asMember.getPrompt({ name: 'answer_from_knowledge' }), /question: is required/);
  const wrong = { name: 'summarize_document', arguments: { document: opening, style: 'short' } };
  await assert.rejects(asMember.getPrompt(wrong), /style: is unknown/);
  await assert.rejects(asMember.getPrompt({ name: 'nothing' }), /does not exist/);
});

type Called = { structuredContent: Record<string, unknown>; isError?: boolean; content: { text: string }[] };

test('one search covers everything that is visible to the caller, and nothing else', async () => {
  const other = await knowledge.createSource({ org: org.id });
  await knowledge.ingest(other, { content: { data: 'On holidays we open at noon.' }, title: 'Holidays' });
  const search = async (client: Client, more: object = {}) =>
    (await client.callTool({
      name: 'search_knowledge',
      arguments: { query: 'open', mode: 'fulltext', ...more },
    })) as unknown as Called;
  const titles = (called: Called) =>
    (called.structuredContent.passages as { title: string }[]).map(({ title }) => title).sort();
  assert.deepEqual(titles(await search(asMember)), ['Holidays', 'Opening hours']);
  assert.deepEqual(titles(await search(asMember, { source: other })), ['Holidays']);
  assert.deepEqual(titles(await search(asStranger)), []);
  const both = await search(asMember, { source, agent: 'helper' });
  assert.deepEqual(
    (JSON.parse(both.content[1]?.text ?? '') as ErrorBody).error.fields.map(({ field }) => field),
    ['source', 'agent'],
  );
  const typed = await api<{ data: unknown[] }>('POST', '/api/v1/knowledge_search', {
    token: member.token,
    body: { query: 'open', mode: 'fulltext', source_types: ['web/link'] },
  });
  assert.deepEqual([typed.status, typed.body.data], [200, []]);
});

test('an end user lists what they may invoke: running, admitted and visible', async () => {
  const workflow = graphOf({ id: 'end', kind: 'complete' });
  const create = async (name: string, more: object, activate = true) => {
    const body = { name, type: 'invoked', workflow, ...more };
    const made = await api<{ id: string }>('POST', '/api/v1/automations', { key: app.secretKey, body });
    assert.equal(made.status, 201, made.text);
    if (activate) await api('POST', `/api/v1/automations/${made.body.id}/activate`, { key: app.secretKey });
  };
  const input_schema = { type: 'object', properties: { name: { type: 'string' } } };
  await create('anyone', { lookup_key: 'anyone', input_schema });
  await create('mine', { user: member.id, invoke_auth: 'user' });
  await create('of the org', { org: org.id });
  await create('for keys', { invoke_auth: 'secret_key' });
  await create('draft', {}, false);
  await create('by schedule', { type: 'scheduled', schedule: '0 0 1 1 *' });
  const names = async (client: Client) => {
    const called = (await client.callTool({ name: 'list_invocable_automations', arguments: {} })) as unknown as Called;
    return (called.structuredContent.automations as { name: string; input_schema?: unknown }[])
      .map((each) => [each.name, each.input_schema])
      .sort();
  };
  assert.deepEqual(await names(asMember), [
    ['anyone', input_schema],
    ['mine', undefined],
    ['of the org', undefined],
  ]);
  assert.deepEqual(
    (await names(asStranger)).map(([name]) => name),
    [],
  );
  const asKey = await api<{ data: { name: string }[]; total_entries: number }>('GET', '/api/v1/invocable_automations', {
    key: app.secretKey,
  });
  const all = asKey.body.data.map(({ name }) => name).sort();
  assert.deepEqual([asKey.body.total_entries, all], [3, ['anyone', 'for keys', 'of the org']]);
  const invoked = await asMember.callTool({ name: 'invoke_automation', arguments: { automation: 'anyone' } });
  assert.ok(!invoked.isError);
});
