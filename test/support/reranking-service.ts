import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

type RerankingService = {
  /** The URL with the protocol of Text Embeddings Inference. */
  teiUrl: string;
  /** The URL with the protocol that Cohere, Jina and vLLM share. */
  url: string;
  /** The bodies of the requests, in order. */
  requests: Record<string, unknown>[];
  /** While set, every request returns this status and body. */
  broken: { status: number; body: string } | undefined;
  /** While true, requests get no response. */
  silent: boolean;
  close(): Promise<void>;
};

/**
 * A local server for both protocols of `/rerank`. A text scores one point for each "best" in it. Results are sorted
 * best first, as in the real services.
 */
export async function startRerankingService(): Promise<RerankingService> {
  const service = {
    requests: [] as Record<string, unknown>[],
    broken: undefined as RerankingService['broken'],
    silent: false,
  };
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    if (service.silent) return;
    response.setHeader('content-type', 'application/json');
    if (service.broken !== undefined) {
      response.statusCode = service.broken.status;
      response.end(service.broken.body);
      return;
    }
    const body = JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>;
    service.requests.push({ ...body, key: request.headers.authorization });
    const tei = request.url === '/rerank';
    const texts = body[tei ? 'texts' : 'documents'];
    if (!Array.isArray(texts) || (!tei && typeof body.model !== 'string')) {
      response.statusCode = 422;
      response.end('{"error":"validation"}');
      return;
    }
    const scored = texts
      .map((text, index) => ({ index, score: String(text).split('best').length - 1 }))
      .sort((a, c) => c.score - a.score);
    const results = scored.map(({ index, score }) => ({ index, relevance_score: score }));
    response.end(JSON.stringify(tei ? scored : { id: 'one', results, meta: {} }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(service, {
    teiUrl: `${origin}/rerank`,
    url: `${origin}/v2/rerank`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}
