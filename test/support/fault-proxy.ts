import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { type DatabaseTarget, socketPath } from '../../src/db/address.ts';

/**
 * What happens to connections: nothing; each ends after so many bytes to or from the component; new ones are refused
 * and open ones end; no byte passes and nothing ends, as if a cable were cut; bytes arrive late; every request gets
 * this HTTP status instead of the component's response, or bytes that need not be HTTP and then the end or the reset
 * of the connection.
 */
export type Fault =
  | { kind: 'none' | 'refuse' | 'silence' }
  | { kind: 'cut-request' | 'cut-response'; afterBytes: number }
  | { kind: 'delay'; ms: number }
  | { kind: 'status'; status: number; body?: string }
  | { kind: 'noise'; bytes: Buffer; reset?: boolean };

export type FaultProxy = {
  port: number;
  /** How often a fault took effect since it was set. */
  hits: number;
  /** Applies to all connections from now on. */
  set(fault: Fault): void;
  close(): Promise<void>;
};

/** A proxy in front of one component that makes it fail as networks and services do. */
export async function openFaultProxy(target: DatabaseTarget | URL): Promise<FaultProxy> {
  let fault: Fault = { kind: 'none' };
  const sockets = new Set<Socket>();
  const pairs = new Set<{ end(): void }>();
  const server = createServer((client) => {
    const upstream = open(target);
    const pair = {
      end: () => {
        client.destroy();
        upstream.destroy();
      },
    };
    pairs.add(pair);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', pair.end);
      socket.on('close', () => {
        sockets.delete(socket);
        pairs.delete(pair);
        pair.end();
      });
    }
    if (fault.kind === 'refuse') {
      proxy.hits += 1;
      return pair.end();
    }
    const carried = { 'cut-request': 0, 'cut-response': 0 };
    const carry = (to: Socket, way: 'cut-request' | 'cut-response') => (chunk: Buffer) => {
      const current = fault;
      if (current.kind === 'silence') {
        proxy.hits += 1;
        return;
      }
      if (current.kind === 'status' || current.kind === 'noise') {
        // Whatever the component still sends for an older request is discarded.
        if (way === 'cut-response' || client.writableEnded) return;
        proxy.hits += 1;
        client.end(current.kind === 'noise' ? current.bytes : responseOf(current), () => {
          if (current.kind === 'noise' && current.reset) client.resetAndDestroy();
        });
        return;
      }
      if (current.kind === way) {
        carried[way] += chunk.length;
        if (carried[way] > current.afterBytes) {
          proxy.hits += 1;
          to.write(chunk.subarray(0, Math.max(0, chunk.length - (carried[way] - current.afterBytes))), pair.end);
          return;
        }
      }
      if (current.kind === 'delay') {
        proxy.hits += 1;
        setTimeout(() => to.writable && to.write(chunk), current.ms);
      } else if (to.writable) to.write(chunk);
    };
    client.on('data', carry(upstream, 'cut-request'));
    upstream.on('data', carry(client, 'cut-response'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const proxy: FaultProxy = {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    hits: 0,
    set(next) {
      // What was swallowed during the silence cannot arrive later: those connections are lost.
      if (fault.kind === 'silence' || next.kind === 'refuse') for (const pair of pairs) pair.end();
      fault = next;
      proxy.hits = 0;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}

function responseOf({ status, body = '' }: { status: number; body?: string }): string {
  const type = 'content-type: application/json\r\nconnection: close';
  return `HTTP/1.1 ${status} Fault\r\n${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function open(target: DatabaseTarget | URL): Socket {
  if (target instanceof URL) return connect(Number(target.port), target.hostname);
  if (typeof target !== 'string') return connect(socketPath(target));
  const { hostname, port } = new URL(target);
  return connect(Number(port || 5432), hostname);
}
