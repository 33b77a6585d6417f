import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

type ReceivedMessage = {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  /** The body as JSON. */
  event: { id: string; type: string; timestamp: string; sequence: number; data: Record<string, unknown> };
};

type Respond = (response: ServerResponse, message: ReceivedMessage) => unknown;

/** A receiver of webhooks on a free port of this machine. It returns 200 unless `respond` overrides that. */
export class WebhookReceiver {
  readonly messages: ReceivedMessage[] = [];
  respond: Respond = (response) => response.end();
  readonly #server = createServer((request, response) => void this.#take(request, response));
  #wake = (): void => {};

  static async start(): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resolves with the messages of a path when at least this many have arrived. */
  async waitFor(path: string, count: number): Promise<ReceivedMessage[]> {
    for (;;) {
      const found = this.messages.filter((message) => message.path === path);
      if (found.length >= count) return found;
      await new Promise<void>((resolve) => {
        const before = this.#wake;
        this.#wake = () => {
          before();
          resolve();
        };
      });
    }
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const { url: path = '', headers } = request;
    const message = { path, headers, body, event: JSON.parse(body) };
    this.messages.push(message);
    this.respond(response, message);
    const wake = this.#wake;
    this.#wake = () => {};
    wake();
  }
}

/** Whether the official library accepts the signature. */
export function isSigned({ body, headers }: ReceivedMessage, secret: string): boolean {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
}
