import { sendRequest } from '../../test/support/server.ts';
import { drawQuery, drawText, seeded, words, wordsPerChunk } from '../search/corpus.ts';

export type Kind = 'kv' | 'files' | 'search' | 'journal' | 'ingest';

const documents = 500;
const subjects = 200;
const random = seeded(7);

/** Creates the users, the source and the automation that the requests use. */
export async function prepareWork(baseUrl: string, key: string, userCount: number) {
  async function send<T = { id: string }>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await sendRequest<T>(baseUrl, method, `/api/v1${path}`, {
      key,
      ...(body === undefined ? {} : { body }),
    });
    if (response.status >= 300)
      throw new Error(`${method} ${path} is ${response.status}: ${response.text.slice(0, 200)}`);
    return response.body;
  }

  const org = (await send('POST', '/orgs', { name: 'Bench' })).id;
  const users: string[] = [];
  for (let n = 0; n < userCount; n++) users.push((await send('POST', '/users', { email: `${n}@example.test` })).id);
  const source = (await send('POST', '/knowledge_sources', { type: 'knowledge/documents', org })).id;
  const batch = 50;
  for (let n = 0; n < documents; n += batch) {
    const items = Array.from({ length: batch }, (_, at) => ({
      title: `Document ${n + at}`,
      content: { data: drawPage() },
    }));
    let ingestion = await send<{ id: string; status: string }>('POST', `/knowledge_sources/${source}/ingest/batch`, {
      items,
    });
    while (ingestion.status !== 'succeeded') ingestion = await send('GET', `/knowledge_ingestions/${ingestion.id}`);
  }
  const nodes = [
    { id: 'start', kind: 'trigger', on_success: 'sum' },
    { id: 'sum', kind: 'transform', value: '{{$.a + 1}}', on_success: 'done' },
    { id: 'done', kind: 'complete', result: '{{$nodes.sum}}' },
  ];
  const workflow = { kind: 'WorkflowGraph', version: 1, start_node: 'start', nodes };
  const { id: automation } = await send('POST', '/automations', { name: 'Bench', type: 'invoked', workflow });
  await send('POST', `/automations/${automation}/activate`);
  const runs = [(await send('POST', `/automations/${automation}/invoke`, { payload: { a: 1 } })).id];
  const files: string[] = [];

  const keys = Array.from({ length: 20 }, (_, n) => `settings/${n}`);
  const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)] as T;
  const recent = (list: string[], id: string) => {
    list.push(id);
    if (list.length > 200) list.shift();
  };
  const writes: Record<Kind, () => Promise<unknown>> = {
    kv: () =>
      send('PUT', `/kv/${encodeURIComponent(pick(keys))}`, {
        user: pick(users),
        value: 'v'.repeat(100 + random() * 900),
      }),
    files: async () => {
      const data = Buffer.alloc(1_000 + Math.floor(random() * 60_000), 'file ').toString('base64');
      recent(files, (await send('POST', '/files', { filename: 'a.txt', content_type: 'text/plain', data })).id);
    },
    search: () =>
      send('POST', `/knowledge_sources/${source}/search`, { query: drawQuery(subjects, random), max_results: 10 }),
    journal: async () =>
      recent(runs, (await send('POST', `/automations/${automation}/invoke`, { payload: { a: 1 } })).id),
    ingest: () =>
      send('POST', `/knowledge_sources/${source}/ingest`, { content: { data: drawPage() }, on_active: 'queue' }),
  };
  const reads: Record<Kind, () => Promise<unknown>> = {
    ...writes,
    kv: () => sendRequest(baseUrl, 'GET', `/api/v1/kv/${encodeURIComponent(pick(keys))}?user=${pick(users)}`, { key }),
    files: () => (files.length === 0 ? writes.files() : send('GET', `/files/${pick(files)}`)),
    journal: () => send('GET', `/automation_runs/${pick(runs)}/journal`),
  };
  const shares: [Kind, number][] = [
    ['kv', 0.7],
    ['files', 0.8],
    ['search', 0.9],
    ['journal', 0.95],
    ['ingest', 1],
  ];
  return {
    users,
    /** The next request, chosen at random according to the shares. */
    next(): { kind: Kind; send: () => Promise<unknown> } {
      const at = random();
      const kind = shares.find(([, until]) => at < until)?.[0] ?? 'kv';
      return { kind, send: (random() < 0.5 ? writes : reads)[kind] };
    },
  };
}

/** About 2 KB of text. */
function drawPage(): string {
  const ranks = new Uint16Array(wordsPerChunk);
  drawText(ranks, subjects, 1, random);
  return Array.from(ranks, (rank) => words[rank]).join(' ');
}
