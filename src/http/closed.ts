import type { ServerResponse } from 'node:http';

/**
 * Calls back once the response has ended, sent or not. A client may leave while its credential is looked up, and `close` is
 * emitted only once: then this calls back immediately.
 */
export function whenClosed(response: Pick<ServerResponse, 'closed'> & CloseEmitter, end: () => void): void {
  if (response.closed) end();
  else response.once('close', end);
}

type CloseEmitter = { once(event: 'close', listener: () => void): unknown };
