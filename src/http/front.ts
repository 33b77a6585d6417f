import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AppError } from '../lib/errors.ts';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** Sees every request before the routes, and may hand it to those of another cell. */
export type Front = {
  dispatch(request: IncomingMessage, response: ServerResponse, own: Handler): void;
  /** The error that the server's own hooks throw for a request that no cell can take. */
  refusalOf(request: IncomingMessage): AppError | undefined;
  /** Resolves when the requests that have arrived were handed to a cell, or after two seconds. */
  settled(): Promise<void>;
};

/** Puts the front before the handlers of a server that does not listen yet. */
export function putFront(server: Server, front: Front): void {
  const handlers = server.listeners('request') as Handler[];
  server.removeAllListeners('request');
  const own: Handler = (request, response) => {
    for (const handle of handlers) handle.call(server, request, response);
  };
  server.on('request', (request, response) => front.dispatch(request, response, own));
}
