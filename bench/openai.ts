/**
 * What a call costs under /v1 compared with the same call under /api/v1, in turns against one server.
 *   node bench/openai.ts [--calls 500] [--rounds 5]
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startServe } from '../test/support/serve.ts';

const { values } = parseArgs({
  options: { calls: { type: 'string', default: '500' }, rounds: { type: 'string', default: '5' } },
});
const calls = Number(values.calls);
const rounds = Number(values.rounds);

const directory = mkdtempSync(join(tmpdir(), 'quarry-bench-openai-'));
const quarry = await startServe({
  QUARRY_DATA_DIR: join(directory, 'data'),
  QUARRY_LOG_LEVEL: 'error',
  QUARRY_RATE_SEARCH: '0',
  QUARRY_RATE_READS: '0',
});
const { secret_key: key } = JSON.parse(readFileSync(join(directory, 'data', 'credentials.json'), 'utf8')) as Record<
  string,
  string
>;

type Request = { method: string; path: string; body?: object };
type Pair = { name: string; ours: Request; openai: Request };

async function send({ method, path, body }: Request) {
  const response = await fetch(`${quarry.baseUrl}${path}`, {
    method,
    headers: { 'x-api-key': key ?? '', ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as { id: string; status?: string };
}

async function millisecondsPerCall(request: Request): Promise<number> {
  const begun = performance.now();
  for (let i = 0; i < calls; i++) await send(request);
  return (performance.now() - begun) / calls;
}

const median = (numbers: number[]) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;

try {
  const data = Buffer.from('Goods may be returned within thirty days. '.repeat(50)).toString('base64');
  const file = await send({
    ...{ method: 'POST', path: '/api/v1/files', body: { filename: 'a.md', content_type: 'text/markdown', data } },
  });
  const store = await send({ method: 'POST', path: '/v1/vector_stores', body: { name: 'Store', file_ids: [file.id] } });
  const inStore = `/v1/vector_stores/${store.id}/files/${file.id}`;
  while ((await send({ method: 'GET', path: inStore })).status !== 'completed');
  const source = store.id.replace('vs_', 'cso_');
  const sourcePath = `/api/v1/knowledge_sources/${source}`;
  const { data: documents } = (await send({
    ...{ method: 'GET', path: `/api/v1/knowledge_documents?source=${source}` },
  })) as unknown as { data: { id: string }[] };
  const document = `/api/v1/knowledge_documents/${documents[0]?.id}`;
  const get = (path: string): Request => ({ method: 'GET', path });
  const search = (path: string, limit: object): Request => ({
    ...{ method: 'POST', path: `${path}/search`, body: { query: 'goods returned', ...limit } },
  });
  const pairs: Pair[] = [
    { name: 'get a file', ours: get(`/api/v1/files/${file.id}`), openai: get(`/v1/files/${file.id}`) },
    { name: 'get a source', ours: get(sourcePath), openai: get(`/v1/vector_stores/${store.id}`) },
    { name: 'get a document', ours: get(document), openai: get(inStore) },
    {
      name: 'search',
      ours: search(sourcePath, { max_results: 10 }),
      openai: search(`/v1/vector_stores/${store.id}`, { max_num_results: 10 }),
    },
  ];
  for (const { name, ours, openai } of pairs) {
    const times: [number, number][] = [];
    for (let round = 0; round <= rounds; round++) {
      const measured: [number, number] = [await millisecondsPerCall(ours), await millisecondsPerCall(openai)];
      // The first round only warms up.
      if (round > 0) times.push(measured);
    }
    const [before, after] = [median(times.map(([own]) => own)), median(times.map(([, other]) => other))];
    const ratio = median(times.map(([own, other]) => other / own));
    console.log(`${name}: /api/v1 ${before.toFixed(2)} ms, /v1 ${after.toFixed(2)} ms, ratio ${ratio.toFixed(2)}`);
  }
} finally {
  await quarry.stop();
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
}
