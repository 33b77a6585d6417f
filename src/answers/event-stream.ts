import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';

const heartbeatMs = 15_000;

export type ServerEvent = { event: string; data: unknown };

/** A signal that is aborted when the reader disconnects before the response has ended. */
export function abortedWithReader(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort();
  });
  return gone.signal;
}

/**
 * Sends the events of some work to the reader who requested it. Until the first event, a failure of the work is the
 * response; later it is an event that `describe` writes.
 */
export async function sendEvents(
  reply: FastifyReply,
  work: (send: (event: ServerEvent) => void) => Promise<void>,
  describe: (error: unknown) => ServerEvent,
): Promise<FastifyReply> {
  const body = new Readable({ read() {} });
  const began = Promise.withResolvers<void>();
  const send = ({ event, data }: ServerEvent) => {
    body.push(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    began.resolve();
  };
  let hasBegun = false;
  const done = work(send);
  done.then(
    () => body.push(null),
    (error: unknown) => {
      if (!hasBegun) return;
      send(describe(error));
      body.push(null);
    },
  );
  await Promise.race([began.promise, done]);
  hasBegun = true;
  const heartbeat = setInterval(() => body.push(': \n\n'), heartbeatMs);
  const stop = () => clearInterval(heartbeat);
  done.then(stop, stop);
  reply.header('content-type', 'text/event-stream; charset=utf-8');
  reply.header('cache-control', 'no-cache, no-transform').header('x-accel-buffering', 'no');
  return reply.send(body);
}
