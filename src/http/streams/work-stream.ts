import type { OutgoingHttpHeaders } from 'node:http';
import type { FastifyReply } from 'fastify';
import { AppError } from '../../lib/errors.ts';
import type { Identity } from '../../tenancy/caller.ts';
import type { Outlet } from './unread-bytes.ts';

export type ServerEvent = { event: string; data: unknown };

/** Whether a reader, with their current rights, may see what the work shows. */
type Check = (reader: Identity) => Promise<boolean>;

/**
 * Sends the events of some work to the reader who requested it. The response begins with the first event; until then, a
 * failure of the work is the response.
 */
export class WorkStream {
  readonly #reply: FastifyReply;
  readonly #outlet: Outlet;
  readonly #describe: (error: unknown) => ServerEvent;
  readonly #stopped = new AbortController();
  #check: Check = async () => true;
  #wake: () => void = () => {};
  hasBegun = false;

  constructor(reply: FastifyReply, outlet: Outlet, describe: (error: unknown) => ServerEvent) {
    this.#reply = reply;
    this.#outlet = outlet;
    this.#describe = describe;
  }

  /** Aborted when the reader is gone or may no longer read. */
  get signal(): AbortSignal {
    return this.#stopped.signal;
  }

  /** From now on, the stream ends when the check fails. */
  endUnless(check: Check): void {
    this.#check = check;
  }

  isVisible(reader: Identity): Promise<boolean> {
    return this.#check(reader);
  }

  /** Runs the work to its end, which also ends the stream. Throws what it throws before the first event. */
  async run(work: () => Promise<void>): Promise<FastifyReply> {
    try {
      await work();
    } catch (error) {
      if (!this.hasBegun) throw this.signal.aborted ? this.signal.reason : error;
      if (!this.signal.aborted) this.#outlet.write(frameOf(this.#describe(error)));
    }
    if (!this.signal.aborted) this.#reply.raw.end();
    return this.#reply;
  }

  /** Sends an event when the reader has room for it. Throws if the stream was stopped. One call follows the other. */
  async send(event: ServerEvent): Promise<void> {
    this.signal.throwIfAborted();
    this.#begin();
    while (this.#outlet.isFull) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.signal.throwIfAborted();
    }
    this.#outlet.write(frameOf(event));
  }

  /** The reader has room again. */
  wake(): void {
    this.#wake();
  }

  /** Ends the work, and tells its reader why. */
  stop(reason: AppError): void {
    if (this.signal.aborted) return;
    this.#stopped.abort(reason);
    this.#wake();
    const response = this.#reply.raw;
    if (!this.hasBegun || response.writableEnded) return;
    if (this.#outlet.isFull) response.destroy();
    else response.end(frameOf(this.#describe(reason)));
  }

  #begin(): void {
    if (this.hasBegun) return;
    this.hasBegun = true;
    const headers = { ...(this.#reply.getHeaders() as OutgoingHttpHeaders), ...streamHeaders };
    this.#reply.hijack();
    const response = this.#reply.raw;
    response.writeHead(200, headers);
    response.socket?.setNoDelay(true);
    response.flushHeaders();
  }
}

function frameOf({ event, data }: ServerEvent): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

export const streamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

/** Why the work of a request ends before its end. */
export const endings = {
  hidden: () => new AppError('forbidden', 'The credential has ended, or no longer allows to read this.'),
  drained: () => new AppError('unavailable', 'The server ends this stream. Send the request again.'),
  gone: () => new AppError('unavailable', 'The reader has disconnected.'),
};
