import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';

// biome-ignore lint/suspicious/noExplicitAny: tests look into events of every shape.
export type StreamEvent = { id: number; event: string; data: any };

/** An open stream of Server-Sent Events that is read one event at a time. */
export class EventStream {
  readonly response: IncomingMessage;
  readonly #request: ClientRequest;
  #text = '';
  #wake = () => {};
  ended = false;
  /** The id of the last event or heartbeat. */
  lastId: number | undefined;

  private constructor(outgoing: ClientRequest, response: IncomingMessage) {
    this.#request = outgoing;
    this.response = response;
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      this.#text += chunk;
      this.#wake();
    });
    response.on('close', () => {
      this.ended = true;
      this.#wake();
    });
    response.on('error', () => {});
  }

  static async open(url: string, headers: Record<string, string>): Promise<EventStream> {
    const outgoing = request(url, { headers, agent: false });
    outgoing.on('error', () => {});
    outgoing.end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    return new EventStream(outgoing, response);
  }

  /** The next event, or undefined if the stream has ended. Heartbeats are skipped. */
  async next(): Promise<StreamEvent | undefined> {
    for (;;) {
      const frame = await this.#frame();
      if (frame === undefined) return undefined;
      const fields = new Map(
        frame.split('\n').map((line) => [line.split(':', 1)[0], line.slice(line.indexOf(':') + 2)]),
      );
      if (fields.has('id')) this.lastId = Number(fields.get('id'));
      if (!fields.has('data')) continue;
      return {
        id: Number(fields.get('id')),
        event: fields.get('event') ?? 'message',
        data: JSON.parse(fields.get('data') ?? ''),
      };
    }
  }

  /** The next event. Fails if the stream has ended. */
  async take(): Promise<StreamEvent> {
    const event = await this.next();
    assert.ok(event, 'the stream has ended');
    return event;
  }

  async #frame(): Promise<string | undefined> {
    for (;;) {
      const end = this.#text.indexOf('\n\n');
      if (end >= 0) {
        const frame = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        return frame;
      }
      if (this.ended) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  close(): void {
    this.#request.destroy();
  }
}
