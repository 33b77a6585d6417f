import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { formatId, newUuid } from '../../../src/lib/ids.ts';
import { rows, without } from '../../support/authorization/expectations.ts';
import { createFixtures, type Target } from '../../support/authorization/fixtures.ts';
import { type Row, runChecks } from '../../support/authorization/matrix.ts';
import { orgs, readOwned, sources, users } from '../../support/authorization/tables.ts';
import { type CallerName, callerNames, createTenants, type Ownership } from '../../support/authorization/tenants.ts';
import { sendMcp } from '../../support/mcp.ts';
import { startTestServer } from '../../support/server.ts';

/*
 * What MCP tools name: each argument of each tool that holds an id × every kind of caller × whose the thing is. The law
 * is that of test/api/tenancy/authorization-references.test.ts: what the caller does not see is answered like what nobody has.
 * A tool or an argument without its place below fails the first test.
 */

const server = await startTestServer({ env: { QUARRY_DB_POOL: '10' } });
const town = await createTenants(server);
const { make } = createFixtures(server, town);
const clients = new Map<CallerName, Client>();
for (const caller of callerNames) {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  const { key, token } = town.callers[caller];
  const headers: Record<string, string> = {
    ...(key === undefined ? {} : { 'x-api-key': key }),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${server.baseUrl}/mcp`), { requestInit: { headers } }),
  );
  clients.set(caller, client);
}
after(async () => {
  for (const client of clients.values()) await client.close();
  await server.close();
});

type Named = 'agent' | 'automation' | 'document' | 'extraction' | 'file' | 'org' | 'run' | 'source' | 'user';

/** Arguments that name a thing, and what else the tool needs. A tool for `operators` refuses end users everything. */
const references: Record<string, { args?: object; named: Record<string, Named>; operators?: true }> = {
  answer: { args: { query: 'text' }, named: { source: 'source', agent: 'agent' } },
  cancel_run: { named: { run: 'run' }, operators: true },
  create_upload_url: { args: { filename: 'a.txt' }, named: { agent: 'agent', org: 'org' } },
  extract_file: { named: { file: 'file' } },
  extract_url: {
    args: { url: 'https://host.invalid/', wait_seconds: 0 },
    named: { agent: 'agent', org: 'org' },
  },
  ingest: { args: { text: 'Text.', wait_seconds: 0 }, named: { source: 'source' } },
  invoke_automation: { args: { wait_seconds: 0 }, named: { automation: 'automation' } },
  kv_batch: { args: { operations: [{ op: 'delete', key: 'nothing' }] }, named: { user: 'user' } },
  kv_delete: { args: { key: 'nothing' }, named: { user: 'user' } },
  kv_get: { args: { key: 'nothing' }, named: { user: 'user' } },
  kv_increment: { args: { key: 'count' }, named: { user: 'user' } },
  kv_list: { named: { user: 'user' } },
  kv_put: { args: { key: 'key', value: 'v' }, named: { user: 'user' } },
  list_documents: { named: { source: 'source', agent: 'agent' } },
  list_knowledge_sources: { named: { agent: 'agent', org: 'org' } },
  read_document: { named: { document: 'document' } },
  read_extraction: { args: { wait_seconds: 0 }, named: { extraction: 'extraction' } },
  read_file: { named: { file: 'file' } },
  read_run: { args: { wait_seconds: 0 }, named: { run: 'run' } },
  retry_run: { args: { wait_seconds: 0 }, named: { run: 'run' }, operators: true },
  search_knowledge: { args: { query: 'text' }, named: { source: 'source', agent: 'agent' } },
  signal_run: { args: { name: 'go' }, named: { run: 'run' }, operators: true },
  upload_file: { args: { filename: 'a.txt', text: 'Text.' }, named: { agent: 'agent', org: 'org' } },
};
/** Arguments that name the owner of a new extraction are those of extract_url. */
const plain = new Set(
  `after_cursor content_type data exclude_paths filename filter idempotency_key include_paths key max_pages mode offset
  page payload prefix query rerank results status title type unit url value wait_seconds limit ordinal output
  ignore_robots sitemap max_results page_size min_similarity recency_days first_output ttl_seconds by name text metadata operations
  schema instructions size expires_in model`.split(/\s+/),
);

test('every argument of every tool is classified by what it names', async () => {
  const { tools } = (await clients.get('key')?.listTools()) ?? { tools: [] };
  assert.ok(tools.length >= 21);
  const unknown = tools.flatMap(({ name, inputSchema }) =>
    Object.keys(inputSchema.properties ?? {})
      .filter((argument) => !plain.has(argument))
      .filter((argument) => {
        const isOwner = name === 'extract_file' && (argument === 'agent' || argument === 'org');
        // Needs a source as well: below, with one that the caller may write to.
        const isFileOfIngest = name === 'ingest' && argument === 'file';
        return !isOwner && !isFileOfIngest && !(argument in (references[name]?.named ?? {}));
      })
      .map((argument) => `${name}.${argument}`),
  );
  assert.deepEqual(unknown, [], 'Add these above, with what they name.');
  const names = new Set(tools.map(({ name }) => name));
  assert.deepEqual(
    Object.keys(references).filter((name) => !names.has(name)),
    [],
    'There are no such tools any more.',
  );
});

const ofPeople = without(readOwned, 'agent');
const seen: Record<Named, Row[]> = {
  agent: ofPeople,
  automation: ofPeople,
  document: sources.read,
  extraction: readOwned,
  file: readOwned,
  org: orgs.read,
  run: ofPeople,
  source: sources.read,
  user: rows(users.read, 'mine', 'other-app', 'sandbox'),
};
const makers: Record<Named, (whose: Ownership) => Promise<Target>> = { ...make, run: make.endedRun };
const idKinds = { run: 'automationRun' } as const;

/** Every source and document that the caller lists by the API. */
async function listIds(caller: CallerName): Promise<Set<string>> {
  const ids = new Set<string>();
  for (const path of ['knowledge_sources', 'knowledge_documents'])
    for (let page = 1, more = true; more; page++) {
      const { body } = await server.api<{ data: { id: string }[]; has_next: boolean }>(
        'GET',
        `/api/v1/${path}?page_size=100&page=${page}`,
        town.callers[caller],
      );
      for (const { id } of body.data) ids.add(id);
      more = body.has_next;
    }
  return ids;
}

/** A tool that the caller may not use is an error of the protocol, like one that does not exist. */
const hidden = (error: unknown) => ({ isError: true, content: [{ type: 'text', text: (error as Error).message }] });

test('a caller sees the tools that their credential allows, and others do not exist for them', async () => {
  const all = (await clients.get('key')?.listTools())?.tools.map(({ name }) => name) ?? [];
  const forOperators = ['cancel_run', 'emit_event', 'list_automations', 'retry_run', 'signal_run'];
  for (const caller of callerNames) {
    const client = clients.get(caller);
    const isUser = town.callers[caller].token !== undefined;
    const { tools = [] } = (await client?.listTools()) ?? {};
    const expected = isUser ? all.filter((name) => !forOperators.includes(name)) : all;
    assert.deepEqual(
      tools.map(({ name }) => name),
      expected,
      caller,
    );
    if (!isUser) continue;
    const missing = await client?.callTool({ name: 'no_such_tool', arguments: {} }).catch(hidden);
    for (const name of forOperators) {
      const called = await client?.callTool({ name, arguments: {} }).catch(hidden);
      const said = JSON.stringify(called).replaceAll(name, 'no_such_tool');
      assert.equal(said, JSON.stringify(missing), `${name} by ${caller}`);
    }
  }
});

test('what an argument names and the caller does not see gets the response of a missing one', async () => {
  const targets = new Map<string, string>();
  for (const [named, table] of Object.entries(seen))
    await Promise.all(
      table.map(async ({ whose }) => targets.set(`${named}/${whose}`, (await makers[named as Named](whose)).id)),
    );
  const ask = async (caller: CallerName, tool: string, args: Record<string, unknown>, id: string) => {
    const result = await clients.get(caller)?.callTool({ name: tool, arguments: args }).catch(hidden);
    const parts = (result?.content ?? []) as { text?: string }[];
    const text = parts.map((part) => part.text).join('\n');
    const ids = [...text.matchAll(/"id":"(c(?:so|do)_\w+)"/g)].map((match) => match[1] ?? '');
    return { failed: result?.isError === true, said: text.replaceAll(id, 'ID'), ids };
  };
  const listed = new Map<CallerName, Promise<Set<string>>>();
  /** Of a list, a filter shows nothing that the caller does not list without it. */
  const listsAll = async (caller: CallerName, ids: string[]) => {
    let all = listed.get(caller);
    all ??= listIds(caller);
    listed.set(caller, all);
    const known = await all;
    return ids.every((id) => known.has(id));
  };
  let tried = 0;
  const checks = Object.entries(references).flatMap(([tool, { args, named: members, operators = false }]) =>
    Object.entries(members).flatMap(([argument, named]) =>
      callerNames.map((caller) => async () => {
        const nobody = formatId(named === 'run' ? idKinds.run : named, newUuid());
        const missing = await ask(caller, tool, { ...args, [argument]: nobody }, nobody);
        const ignored = tool.startsWith('kv_') && !/key$/i.test(caller);
        const problems: string[] = [];
        for (const { whose, outcomes } of seen[named]) {
          const id = targets.get(`${named}/${whose}`) ?? '';
          const answer = await ask(caller, tool, { ...args, [argument]: id }, id);
          tried += 1;
          const same = answer.failed === missing.failed && answer.said === missing.said;
          const name = `${tool}.${argument} · ${caller} · ${whose}: ${answer.said.slice(0, 300)}`;
          const sees = outcomes.get(caller) === 'ok' && (!operators || town.callers[caller].token === undefined);
          const shown = tool.startsWith('list_') && !answer.failed && (await listsAll(caller, answer.ids));
          if (!sees && !same && !ignored && !shown) problems.push(`${name}, not ${missing.said.slice(0, 300)}`);
          // A key that is not there is not there for whomever.
          if (sees && same && missing.failed && !ignored && !/^kv_(get|delete)$/.test(tool))
            problems.push(`${name}, although it is seen`);
        }
        return problems.length === 0 ? undefined : problems.join('\n');
      }),
    ),
  );
  assert.deepEqual(await runChecks(checks), []);
  assert.ok(tried > 600, `${tried}`);
});

test('a task is seen by those who see its run, extraction or ingestion, and missing for all others', async () => {
  const tables = { run: ofPeople, extraction: readOwned, ingestion: sources.read };
  const checks: (() => Promise<string | undefined>)[] = [];
  for (const [kind, table] of Object.entries(tables))
    for (const { whose, outcomes } of table) {
      const { id } = await { ...makers, ingestion: make.ingestion }[kind as keyof typeof tables](whose);
      for (const caller of callerNames)
        checks.push(async () => {
          const ask = (taskId: string, method: string) =>
            sendMcp(server.baseUrl, town.callers[caller], method, { taskId });
          const missing = await ask(formatId('automationRun', newUuid()), 'tasks/get');
          const got = await ask(id, 'tasks/get');
          const sees = got.result?.taskId === id;
          if (sees !== (outcomes.get(caller) === 'ok')) return `${kind} · ${caller} · ${whose}: ${JSON.stringify(got)}`;
          if (sees) return undefined;
          for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
            const said = JSON.stringify(await ask(id, method));
            if (said !== JSON.stringify(missing)) return `${method} · ${kind} · ${caller} · ${whose}: ${said}`;
          }
          return undefined;
        });
    }
  assert.deepEqual(await runChecks(checks), []);
  assert.ok(checks.length > 150, `${checks.length}`);
});
