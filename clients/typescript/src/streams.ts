import { QuarryError } from './errors.ts';
import { pause } from './wait.ts';

/** One event of a stream. `data` is its JSON. */
export type StreamEvent<Data = unknown> = { event: string; data: Data; id: string | undefined };

type Raw = { event: string; data: string; id: string | undefined; retryMs: number | undefined };
type Open = (lastEventId: string | undefined, signal: AbortSignal) => Promise<AsyncIterable<Raw>>;

const reconnectMs = 1_000;
const attemptsMax = 10;

/**
 * The events of a stream, with `for await`. It ends when its subject ends. A connection that breaks, or that the
 * server closes to move its readers, is opened again after the last event; after ten attempts without an event, the
 * error is thrown. Leaving the loop closes the connection.
 */
export class EventStream<Data = unknown> implements AsyncIterable<StreamEvent<Data>> {
  readonly #open: Open;
  readonly #signal: AbortSignal | undefined;

  constructor(open: Open, signal?: AbortSignal) {
    this.#open = open;
    this.#signal = signal;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamEvent<Data>, void, undefined> {
    const closed = new AbortController();
    const signal = this.#signal ? AbortSignal.any([this.#signal, closed.signal]) : closed.signal;
    let lastId: string | undefined;
    let attempts = 0;
    try {
      for (;;) {
        let retryMs: number | undefined;
        try {
          for await (const { event, data, id, retryMs: asked } of await this.#open(lastId, signal)) {
            attempts = 0;
            retryMs = asked ?? retryMs;
            if (id !== undefined) lastId = id;
            if (data !== '') yield { event, data: JSON.parse(data) as Data, id };
          }
          // A server that closes a stream for another reason than its end says when to come back.
          if (retryMs === undefined) return;
        } catch (error) {
          this.#signal?.throwIfAborted();
          attempts++;
          if (attempts >= attemptsMax || !isBroken(error)) throw error;
        }
        await pause(retryMs ?? reconnectMs * Math.max(1, attempts), this.#signal);
      }
    } finally {
      closed.abort();
    }
  }
}

/** Whether opening the stream again may help. */
function isBroken(error: unknown): boolean {
  if (!(error instanceof QuarryError)) return !(error instanceof SyntaxError);
  return error.status === undefined ? error.code === 'unreachable' || error.code === 'timed_out' : error.status >= 500;
}

/** The events of a response, as the HTML standard defines them. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<Raw, void, undefined> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = '';
  let fields: Partial<Raw> & { lines: string[] } = { lines: [] };
  try {
    for (;;) {
      const { done, value = '' } = await reader.read();
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = done ? '' : (lines.pop() ?? '');
      for (const line of lines) {
        if (line !== '') readField(fields, line);
        else {
          const { event = 'message', id, retryMs, lines: data } = fields;
          if (data.length > 0 || id !== undefined || retryMs !== undefined)
            yield { event, id, retryMs, data: data.join('\n') };
          fields = { lines: [] };
        }
      }
      if (done) return;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function readField(fields: Partial<Raw> & { lines: string[] }, line: string): void {
  const colon = line.indexOf(':');
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
  if (name === 'data') fields.lines.push(value);
  else if (name === 'event') fields.event = value;
  else if (name === 'id') fields.id = value;
  else if (name === 'retry') fields.retryMs = Number(value);
}
