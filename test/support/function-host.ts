import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Handler = (request: Request) => Promise<Response>;

/** A host of one function on a free port of this machine, which passes requests as `fetch` platforms do. */
export class FunctionHost {
  handler: Handler;
  calls = 0;
  readonly #server = createServer((request, response) => void this.#take(request, response));

  private constructor(handler: Handler) {
    this.handler = handler;
  }

  static async start(handler: Handler): Promise<FunctionHost> {
    const host = new FunctionHost(handler);
    await new Promise<void>((resolve) => host.#server.listen(0, '127.0.0.1', resolve));
    return host;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/quarry`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #take(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Uint8Array);
    this.calls += 1;
    const headers = new Headers();
    for (const [name, value] of Object.entries(incoming.headers))
      if (value !== undefined) headers.set(name, String(value));
    const { method = 'GET' } = incoming;
    const body = method === 'GET' ? null : Buffer.concat(chunks);
    const response = await this.handler(new Request(this.url, { method, headers, body }));
    outgoing.writeHead(response.status).end(await response.text());
  }
}
