/**
 * What a tool of clients/tools adds to the request that it makes: the same request by fetch, by the client, by the tool
 * alone, and by the tool in each framework, in turn, in one run. The server is a separate process.
 *   node bench/agent-tools.ts [--calls 1000]
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { quarryTools as aiTools } from '../clients/tools/src/ai.ts';
import { createTools } from '../clients/tools/src/index.ts';
import { quarryTools as langchainTools } from '../clients/tools/src/langchain.ts';
import { Quarry } from '../clients/typescript/src/index.ts';
import { startServe } from '../test/support/serve.ts';

const { values } = parseArgs({
  options: { calls: { type: 'string', default: '1000' } },
});
const calls = Number(values.calls);
const warmUpCalls = 100;

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
const server = await startServe({ QUARRY_DATA_DIR: dataDir, QUARRY_LOG_LEVEL: 'error' });
try {
  const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8'));
  const client = new Quarry({ baseUrl: server.baseUrl, key });
  const send = (method: string, path: string, body?: unknown) =>
    fetch(`${server.baseUrl}${path}`, {
      method,
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).then((response) => response.json() as Promise<Record<string, string>>);

  const user = await send('POST', '/api/v1/users', { email: 'bench@example.test', name: 'Bench' });
  await send('PUT', '/api/v1/kv/theme', { value: 'dark', user: user.id });
  const source = await send('POST', '/api/v1/knowledge_sources', { type: 'knowledge/documents', user: user.id });
  for (let at = 0; at < 20; at++) {
    const data = `# Report ${at}\n\n${`Rivers carry silt to the sea, and report ${at} says how much. `.repeat(20)}`;
    let ingestion = await send('POST', `/api/v1/knowledge_sources/${source.id}/ingest`, { content: { data } });
    while (ingestion.status !== 'succeeded')
      ingestion = await send('GET', `/api/v1/knowledge_ingestions/${ingestion.id}`);
  }

  const options = { tools: ['kv_get', 'search'], kvUser: user.id } as const;
  const plain = createTools(client, options);
  const ai = aiTools(client, options);
  const langchain = langchainTools(client, options);
  const call = { toolCallId: 'call', messages: [], context: {} };
  const entry = { key: 'theme' };
  const query = { query: 'how much silt do rivers carry', max_results: 8 };
  const kvPath = `/api/v1/kv/theme?user=${user.id}`;
  const owner = user.id === undefined ? {} : { user: user.id };
  const searchPath = '/api/v1/knowledge_search';
  await measure('kv_get', {
    fetch: () => send('GET', kvPath),
    client: () => client.kv.get('theme', owner),
    tool: async () => plain.kv_get.describe(await plain.kv_get.execute(entry)),
    'AI SDK': () => ai.kv_get.execute?.(entry, call),
    LangChain: () => langchain[0]?.invoke({ name: 'kv_get', args: entry, id: 'call', type: 'tool_call' }),
  });
  await measure('search, 8 passages', {
    fetch: () => send('POST', searchPath, query),
    client: () => client.connection.request({ method: 'POST', path: searchPath, body: query }),
    tool: async () => plain.search.describe(await plain.search.execute(query)),
    'AI SDK': () => ai.search.execute?.(query, call),
    LangChain: () => langchain[1]?.invoke({ name: 'search', args: query, id: 'call', type: 'tool_call' }),
  });
} finally {
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
}

/**
 * Prints the median time of a call in each way, and its ratio to the bare request. The ways alternate after every
 * call, so that a busy moment of the machine affects all of them.
 */
async function measure(name: string, ways: Record<string, () => unknown>): Promise<void> {
  const names = Object.keys(ways);
  const times = new Map(names.map((way) => [way, [] as number[]]));
  for (let at = -warmUpCalls; at < calls; at++)
    for (let turn = 0; turn < names.length; turn++) {
      const way = names[(at + warmUpCalls + turn) % names.length] ?? '';
      const started = performance.now();
      await ways[way]?.();
      if (at >= 0) times.get(way)?.push(performance.now() - started);
    }
  const bare = median(times.get('fetch') ?? []);
  console.log(`${name}, one call after the other, medians of ${calls}`);
  const rows = [...times].map(([way, all]) => {
    const ms = median(all);
    return [way, { ms: ms.toFixed(3), 'ms more': (ms - bare).toFixed(3), ratio: (ms / bare).toFixed(2) }];
  });
  console.table(Object.fromEntries(rows));
}

function median(values: number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
