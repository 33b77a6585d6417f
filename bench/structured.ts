/**
 * What structured extraction adds to a language model's own time: a document of 200 pieces, four requests at a time,
 * beside the same requests sent to the model alone, in turns in one run. The model is a server of the benchmark that responds
 * after a fixed time.
 *   node bench/structured.ts [--pieces 200] [--rounds 3]
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { chatEvent, startLanguageModel } from '../test/support/language-model.ts';
import { startServe } from '../test/support/serve.ts';
import { sendRequest } from '../test/support/server.ts';

const { values } = parseArgs({
  options: { pieces: { type: 'string', default: '200' }, rounds: { type: 'string', default: '3' } },
});
const [pieces, rounds] = [Number(values.pieces), Number(values.rounds)];
/** The number of concurrent requests that one extraction sends to the model. */
const concurrency = 4;

const model = await startLanguageModel();
const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
const server = await startServe({
  ...{ QUARRY_DATA_DIR: dataDir, QUARRY_LOG_LEVEL: 'error', QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'small' },
  ...{ QUARRY_LLM_CONTEXT_TOKENS: '4096', QUARRY_LLM_RUN_TOKENS: '0', QUARRY_FETCH_ALLOW: '127.0.0.1' },
});
try {
  const { secret_key: key = '' } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as Record<
    string,
    string
  >;
  const post = async (path: string, body: object) => {
    const made = await sendRequest<{ id: string }>(server.baseUrl, 'POST', `/api/v1${path}`, { key, body });
    if (made.status >= 300) throw new Error(`${path} is ${made.status}: ${made.text}`);
    return made.body.id;
  };
  const filler = 'Filler text. '.repeat(115);
  const text = Array.from({ length: pieces }, (_, n) => `# Part ${n}\n\nWord${n}. ${filler}\n`).join('\n');
  const data = Buffer.from(text).toString('base64');
  const file = await post('/files', { filename: 'parts.md', content_type: 'text/markdown', data });
  const schema = { type: 'array', items: { type: 'string' } };

  for (const delayMs of [0, 100]) {
    model.script = () => ({
      respond(response) {
        setTimeout(() => {
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          response.end(`${chatEvent('["a"]', { finish_reason: 'stop' })}data: [DONE]\n\n`);
        }, delayMs);
      },
    });
    const times: { own: number; bare: number }[] = [];
    for (let round = 0; round <= rounds; round++) {
      model.requests.length = 0;
      const start = performance.now();
      const id = await post('/extractions', { file, destination_kind: 'storage', schema });
      const stream = await sendRequest(server.baseUrl, 'GET', `/api/v1/extractions/${id}/stream`, { key });
      if (!stream.text.includes('"done"')) throw new Error(`The extraction failed: ${stream.text.slice(-500)}`);
      const own = performance.now() - start;
      const requests = [...model.requests];
      const bare = await sendBare(requests);
      // The first round only warms up.
      if (round > 0) times.push({ own: own / requests.length, bare: bare / requests.length });
    }
    const [own, bare] = [median(times.map((each) => each.own)), median(times.map((each) => each.bare))];
    console.log(
      `model of ${delayMs} ms: ${own.toFixed(2)} ms a piece, bare requests ${bare.toFixed(2)} ms, ratio ${(own / bare).toFixed(2)}`,
    );
  }
} finally {
  await server.stop();
  await model.close();
  rmSync(dataDir, { recursive: true, force: true });
}

/** Sends the same requests with the same concurrency, without Quarry. Returns milliseconds. */
async function sendBare(requests: readonly object[]): Promise<number> {
  const start = performance.now();
  let next = 0;
  const send = async () => {
    for (let at = next++; at < requests.length; at = next++)
      await sendRequest(model.url, 'POST', '/chat/completions', { body: requests[at] });
  };
  await Promise.all(Array.from({ length: concurrency }, send));
  return performance.now() - start;
}

function median(list: number[]): number {
  return list.sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? Number.NaN;
}
