import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { compile } from '@fastify/proxy-addr';
import type { FastifyRequest } from 'fastify';
import type { AppError } from '../../lib/errors.ts';
import { limits } from '../../lib/limits.ts';
import { networkOf } from '../../lib/network.ts';
import { whenClosed } from '../closed.ts';
import { AppShares } from './app-shares.ts';

type Arrived = { request: IncomingMessage; response: ServerResponse };
type Connection = { socket: Socket; started: number; inProgress: number; waiting: Arrived[] };

/**
 * Bounds what clients make this process hold before it knows who they are: connections, the requests in progress, and
 * the requests that one connection sends without waiting for responses. An address may use as much as is still free.
 * Behind a trusted proxy, that is the address which the proxy forwards.
 */
export class Connections {
  readonly #connectionsMax: number;
  readonly #isProxy: (address: string) => boolean;
  readonly #connections: AppShares;
  readonly #requests: AppShares;

  /** @param streamsMax the event streams of the process: a single address may have more requests than these */
  constructor({ streamsMax, trustProxy }: { streamsMax: number; trustProxy: string[] }) {
    this.#connectionsMax = 2 * (streamsMax + limits.requestsBesideStreams);
    const isProxy = compile(trustProxy);
    this.#isProxy = (address) => isProxy(address, 0);
    this.#connections = new AppShares(this.#connectionsMax, 'connections', 'address');
    this.#requests = new AppShares(this.#connectionsMax, 'requests', 'address');
  }

  get requestsInProgress(): number {
    return this.#requests.taken;
  }

  /** Counts a request until its response has ended. Returns the error if its address has used its share. */
  begin({ raw, ip }: FastifyRequest, response: ServerResponse): AppError | undefined {
    // An in-process request belongs to one that is counted.
    if (!(raw.socket instanceof Socket)) return undefined;
    const network = networkOf(ip);
    try {
      this.#requests.take(network);
    } catch (error) {
      return error as AppError;
    }
    whenClosed(response, () => this.#requests.release(network));
    return undefined;
  }

  /** Applies the limits to a server that does not listen yet. */
  guard(server: Server): void {
    server.maxConnections = this.#connectionsMax;
    // One read of a connection is parsed as a whole, before any response.
    server.maxRequestsPerSocket = limits.requestsOfConnectionMax;
    const handlers = server.listeners('request') as ((request: IncomingMessage, response: ServerResponse) => void)[];
    server.removeAllListeners('request');
    const connections = new WeakMap<Socket, Connection>();
    server.on('connection', (socket: Socket) => {
      if (!this.#open(socket)) return;
      const connection: Connection = { socket, started: 0, inProgress: 0, waiting: [] };
      connections.set(socket, connection);
      // Node resumes reading after each response.
      socket.on('resume', () => {
        if (connection.waiting.length > 0) socket.pause();
      });
      socket.once('close', () => connection.waiting.splice(0));
    });
    const start = (connection: Connection, { request, response }: Arrived) => {
      connection.inProgress += 1;
      connection.started += 1;
      // Node announces the end of the connection with this response, but leaves it open.
      if (connection.started >= limits.requestsOfConnectionMax) response.shouldKeepAlive = false;
      whenClosed(response, () => {
        connection.inProgress -= 1;
        if (connection.waiting.length > 0) setImmediate(startNext, connection);
      });
      for (const handle of handlers) handle.call(server, request, response);
    };
    const startNext = (connection: Connection) => {
      if (connection.inProgress >= limits.requestsOfConnectionInProgressMax) return;
      const next = connection.waiting.shift();
      if (next === undefined) return;
      start(connection, next);
      if (connection.waiting.length === 0) resume(connection.socket);
    };
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const connection = connections.get(request.socket);
      if (connection === undefined) return;
      if (connection.inProgress < limits.requestsOfConnectionInProgressMax && connection.waiting.length === 0)
        return start(connection, { request, response });
      connection.waiting.push({ request, response });
      request.socket.pause();
    });
  }

  /** Counts a connection until it closes. Closes it if its address has used its share. */
  #open(socket: Socket): boolean {
    const { remoteAddress } = socket;
    // Already closed by its client.
    if (remoteAddress === undefined) return false;
    if (this.#isProxy(remoteAddress)) return true;
    const network = networkOf(remoteAddress);
    try {
      this.#connections.take(network);
    } catch {
      socket.destroy();
      return false;
    }
    socket.once('close', () => this.#connections.release(network));
    return true;
  }
}

/** Node pauses a socket as well, while much of its responses is unsent, and then resumes it itself. */
function resume(socket: Socket & { _paused?: boolean }): void {
  if (socket._paused !== true) socket.resume();
}
