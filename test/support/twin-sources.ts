import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { parseId } from '../../src/lib/ids.ts';
import { type Json, knowledgeOf } from './knowledge.ts';
import type { TestApp, TestResource, TestUser } from './provisioner.ts';
import type { TestServer } from './server.ts';

/** An app with an organisation, a member who reads, and somebody else whose documents the member cannot see. */
export type Side = {
  app: TestApp;
  org: TestResource;
  reader: TestUser;
  insider: TestUser;
  agent: TestResource;
  mcp: Client;
  api: TestServer['api'];
  /** What an id of this side is called in compared responses, in the order of their appearance. */
  names: Map<string, string>;
};

export async function createSide(server: TestServer): Promise<Side> {
  const app = await server.provision.app();
  const org = await server.provision.org(app);
  const reader = await server.provision.user(app, { org, role: 'member' });
  const insider = await server.provision.user(app, { org, role: 'member' });
  const agent = await server.provision.agent(app, { org });
  const mcp = new Client({ name: 'test', version: '1' });
  const headers = { authorization: `Bearer ${reader.token}` };
  await mcp.connect(new StreamableHTTPClientTransport(new URL(`${server.baseUrl}/mcp`), { requestInit: { headers } }));
  return { app, org, reader, insider, agent, mcp, api: server.api, names: new Map() };
}

const ids = /\b(?:file-|vs_|vsfb_|[a-z]{3}_)([0-9A-Za-z]{22})\b/g;
const times = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;
const seconds = /"(created_at|last_active_at|expires_at)":\d{10}\b/g;

/** A response with its ids numbered in the order of their appearance, and without its times. */
export function normalise(side: Side, text: string): string {
  return text
    .replace(ids, (_id, suffix: string) => {
      const name = side.names.get(suffix) ?? `id${side.names.size}`;
      side.names.set(suffix, name);
      return name;
    })
    .replace(times, 'time')
    .replace(seconds, '"$1":0');
}

/** Searches that differ in mode, shape and what they ask for. */
export function searchesFor(words: readonly string[]): Json[] {
  const shapes: Json[] = [
    { mode: 'hybrid', highlights: true, context: 1 },
    { mode: 'fulltext', facets: ['shelf'], group_by: 'document' },
    { mode: 'vector' },
    { mode: 'hybrid', filter: { shelf: 1 }, facets: ['shelf', 'kind'] },
  ];
  const queries = [...words, `${words[0]} ${words[1]} ${words.at(-1)}`, `"${words[0]} ${words[1]}"`, 'al*', 'pre*'];
  return queries.flatMap((query, i) =>
    shapes.filter((_shape, j) => i < 2 || (i + j) % 2 === 0).map((shape) => ({ query, explain: true, ...shape })),
  );
}

/** What the reader of a side gets from every way to search, list, read and cite a source; normalised. */
export async function readEverything(
  server: TestServer,
  side: Side,
  source: string,
  searches: Json[],
): Promise<string[]> {
  const seen: string[] = [];
  const auth = { token: side.reader.token };
  const send = async (method: string, path: string, body?: Json) => {
    const response = await server.api(method, path, { ...auth, ...(body === undefined ? {} : { body }) });
    seen.push(
      `${method} ${normalise(side, path)} ${normalise(side, JSON.stringify(body ?? {}))}: ${response.status} ${normalise(side, response.text)}`,
    );
    return response.body as { data?: { id: string }[]; total_pages?: number };
  };
  const list = async (path: string) => {
    const found: { id: string }[] = [];
    for (let page = 1; ; page++) {
      const { data = [], total_pages: pages = 1 } = await send('GET', `${path}page_size=7&page=${page}`);
      found.push(...data);
      if (page >= pages) return found;
    }
  };
  const api = '/api/v1';
  await send('GET', `${api}/knowledge_sources?include=statistics&page_size=3`);
  await send('GET', `${api}/knowledge_sources/${source}`);
  for (const { id } of await list(`${api}/knowledge_sources/${source}/ingestions?`))
    await send('GET', `${api}/knowledge_ingestions/${id}`);
  await list(`${api}/knowledge_sources/${source}/syncs?`);
  await list(`${api}/knowledge_documents?source=${source}&q=T&`);
  for (const { id } of await list(`${api}/knowledge_documents?source=${source}&`)) {
    await send('GET', `${api}/knowledge_documents/${id}`);
    await send('GET', `${api}/knowledge_documents/${id}/content`);
    await send('GET', `${api}/knowledge_documents/${id}/content?offset=0&limit=20&unit=bytes`);
    await list(`${api}/knowledge_documents/${id}/chunks?`);
  }
  for (const body of searches) await send('POST', `${api}/knowledge_sources/${source}/search`, body);
  for (const body of searches.slice(0, 6)) {
    await send('POST', `${api}/knowledge_search`, body);
    await send('POST', `${api}/agents/${side.agent.id}/search`, body);
  }
  await readAnswers(side, source, searches, send, (line) => seen.push(line));
  const store = `/v1/vector_stores/${source.replace('cso_', 'vs_')}`;
  await send('GET', store);
  // In the order of the ids that the documents of a batch get, which are read several at a time.
  const files = await server.api<{ data: { id: string }[]; has_more: boolean }>(
    'GET',
    `${store}/files?limit=100`,
    auth,
  );
  const entries = files.body.data.map((file) => ({ id: file.id, text: normalise(side, JSON.stringify(file)) }));
  entries.sort((a, b) => (a.text < b.text ? -1 : 1));
  seen.push(`files: ${files.status} ${files.body.has_more} ${entries.map(({ text }) => text).join()}`);
  for (const { id } of entries) {
    await send('GET', `${store}/files/${id}`);
    await send('GET', `${store}/files/${id}/content`);
  }
  await send('POST', `${store}/search`, { query: String(searches[0]?.query) });
  for (const [name, args] of [
    ['list_documents', { source }],
    ['search_knowledge', { query: String(searches[0]?.query), sources: [source] }],
  ] as const)
    seen.push(`${name}: ${normalise(side, JSON.stringify(await side.mcp.callTool({ name, arguments: args })))}`);
  return seen;
}

type Send = (method: string, path: string, body?: Json) => Promise<object>;

/** Answers from extracts, and statements about quotes; without the key and the signature, which cover ids and times. */
async function readAnswers(
  side: Side,
  source: string,
  searches: Json[],
  send: Send,
  note: (line: string) => void,
): Promise<void> {
  for (const { query } of searches.slice(0, 6))
    for (const scope of [{ sources: [source] }, { agent: side.agent.id }, {}])
      await send('POST', '/api/v1/answers', { query, max_results: 7, ...scope });
  const quotes = searches.slice(0, 12).map(({ query }) => String(query));
  quotes.push('Der Reiher steht im Schilf und wartet', 'heron marsh alpha', 'alpha alphabet alpine');
  for (const scope of [{ sources: [source] }, { agent: side.agent.id }, {}]) {
    const { token } = side.reader;
    const body = { quotes, ...scope };
    const { status, body: signed } = await side.api('POST', '/api/v1/citations/verify', { token, body });
    note(`verify: ${status} ${normalise(side, JSON.stringify(signed.statement))}`);
  }
}

/** 404 for everybody but the whole app, and the same as for a document that never existed. */
export async function assertHidden(server: TestServer, side: Side, document: string): Promise<void> {
  for (const path of ['', '/content', '/chunks']) {
    const get = (id: string) =>
      server.api('GET', `/api/v1/knowledge_documents/${id}${path}`, { token: side.reader.token });
    const [hidden, missing] = [await get(document), await get('cdo_0000000000000000000000')];
    assert.deepEqual([hidden.status, hidden.body], [404, missing.body]);
  }
}

/** The rows' key of a source, for jobs. */
export function keyOf(side: Side, source: string): { appId: string; sourceId: string } {
  return { appId: side.app.app.uuid, sourceId: parseId('source', source) ?? '' };
}

export function ownerOf(server: TestServer, side: Side) {
  return knowledgeOf(server, { key: side.app.secretKey });
}
