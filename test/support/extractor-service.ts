import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Received = { path: string; headers: IncomingMessage['headers']; body: Buffer };

export type ExtractorService = {
  url: string;
  received: Received[];
  /** The HTML of every document. */
  html: string;
  /** Replaces the response of the real server. */
  broken: ((response: ServerResponse) => void) | undefined;
  close(): Promise<void>;
};

/** A local server that speaks the protocols of docling-serve (`/v1/convert/file`) and of Apache Tika (`/tika`). */
export async function startExtractorService(): Promise<ExtractorService> {
  const service = { received: [] as Received[], html: '', broken: undefined as ExtractorService['broken'] };
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts);
    service.received.push({ path: `${request.method} ${request.url}`, headers: request.headers, body });
    if (service.broken) service.broken(response);
    else if (request.url === '/v1/convert/file' && request.method === 'POST') await convert(request, body, response);
    else if (request.url === '/tika' && request.method === 'PUT') parse(request, body, response);
    else response.writeHead(404).end();
  });

  /** A form without `files` is 422, as are options that are none. The document has only the requested formats. */
  async function convert(request: IncomingMessage, body: Buffer, response: ServerResponse): Promise<void> {
    const headers = { 'content-type': request.headers['content-type'] ?? '' };
    const form = await new Response(new Uint8Array(body), { headers }).formData();
    const file = form.get('files');
    const formats = form.getAll('to_formats');
    if (
      !(file instanceof File) ||
      file.size === 0 ||
      !formats.every((one) => ['html', 'md', 'json'].includes(`${one}`))
    )
      return void response.writeHead(422, { 'content-type': 'application/json' }).end('{"detail":[]}');
    const none = { md_content: null, json_content: null, text_content: null, doctags_content: null };
    const document = { filename: file.name, ...none, html_content: formats.includes('html') ? service.html : null };
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ document, status: 'success', errors: [], processing_time: 0.1, timings: {} }));
  }

  function parse(request: IncomingMessage, body: Buffer, response: ServerResponse): void {
    if (body.length === 0) response.writeHead(204).end();
    else if (request.headers.accept !== 'text/html') response.writeHead(200, { 'content-type': 'text/plain' }).end();
    else response.writeHead(200, { 'content-type': 'text/html;charset=UTF-8' }).end(service.html);
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(service, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}
