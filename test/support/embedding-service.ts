import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { lexicalEmbedder } from '../../src/content/embed/lexical.ts';

type EmbeddingService = {
  url: string;
  /** Texts that were embedded, in order. */
  texts: string[];
  /** The bodies of all requests for vectors. */
  bodies: Record<string, unknown>[];
  /** The number of texts in each request. */
  batches: number[];
  /** While set, every request returns this status. */
  broken: number | undefined;
  /** While set, changes the vectors of a response before it is sent. */
  alter: ((data: Record<string, unknown>[]) => void) | undefined;
  /** While set, a request with a text that contains this word is refused with 400. */
  refusedOn: string | undefined;
  /** The number of refused requests. */
  refused: number;
  /** While set, a request with a text that contains this word gets no response. */
  silentOn: string | undefined;
  /** The requests that got no response. */
  hanging: ServerResponse[];
  /** Resolves when this many requests hang. */
  waitForOpenRequests(count: number): Promise<void>;
  close(): Promise<void>;
};

/** A local server for OpenAI's `/v1/embeddings` and Cohere's `/v1/embed`. Its vectors have 64 dimensions, folded from the lexical ones. */
export async function startEmbeddingService(): Promise<EmbeddingService> {
  const embedder = lexicalEmbedder();
  const service = {
    texts: [] as string[],
    bodies: [] as Record<string, unknown>[],
    batches: [] as number[],
    broken: undefined as number | undefined,
    alter: undefined as EmbeddingService['alter'],
    refusedOn: undefined as string | undefined,
    refused: 0,
    silentOn: undefined as string | undefined,
    hanging: [] as ServerResponse[],
  };
  let onHanging = (): void => {};
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    response.setHeader('content-type', 'application/json');
    if (service.broken !== undefined) {
      response.statusCode = service.broken;
      response.end('{"error":{"message":"down"}}');
      return;
    }
    const body = JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>;
    const isCohere = request.url?.endsWith('/embed') === true;
    service.bodies.push(body);
    const input = (isCohere ? body.texts : body.input) as string[];
    const { silentOn, refusedOn } = service;
    if (refusedOn !== undefined && input.some((text) => text.includes(refusedOn))) {
      service.refused += 1;
      response.statusCode = 400;
      response.end('{"error":{"message":"invalid input"}}');
      return;
    }
    if (silentOn !== undefined && input.some((text) => text.includes(silentOn))) {
      service.hanging.push(response);
      return onHanging();
    }
    service.texts.push(...input);
    service.batches.push(input.length);
    const vectors = await embedder.embed(input, 'passage');
    const data = vectors.map((vector, index) => {
      const folded = new Array<number>(64).fill(0);
      for (const [i, value] of vector.entries()) folded[i % 64] = (folded[i % 64] ?? 0) + value;
      return { object: 'embedding', index, embedding: folded };
    });
    service.alter?.(data);
    response.end(JSON.stringify(isCohere ? cohereResponse(input, data) : { object: 'list', data, model: 'test' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(service, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    waitForOpenRequests: (count: number) =>
      new Promise<void>((resolve) => {
        onHanging = () => service.hanging.length >= count && resolve();
        onHanging();
      }),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

/** As Cohere documents it: the vectors in the order of the texts, under the type that was asked for. */
function cohereResponse(texts: string[], data: { embedding: number[] }[]): object {
  const embeddings = { float: data.map(({ embedding }) => embedding) };
  const meta = { api_version: { version: '2' }, billed_units: { input_tokens: 7 } };
  return { id: 'request', response_type: 'embeddings_by_type', embeddings, texts, meta };
}
