import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { DatabaseTarget } from '../../src/db/address.ts';
import { socketPath } from '../../src/db/address.ts';

export type TcpProxy = {
  url: string;
  /** Lets the process end without closing the proxy. */
  unref(): void;
  close(): Promise<void>;
};

/** Makes a database that listens only on a socket file reachable by an ordinary URL, like an external database. */
export async function openTcpProxy(
  target: DatabaseTarget,
  onSent: (bytes: Buffer) => void = () => {},
): Promise<TcpProxy> {
  if (typeof target === 'string') return { url: target, unref() {}, close: async () => {} };
  const sockets = new Set<Socket>();
  const server: Server = createServer((client) => {
    const upstream = connect(socketPath(target));
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
      socket.on('error', () => {
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', onSent);
    client.pipe(upstream).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `postgres://${target.username}@127.0.0.1:${port}/${target.database}`,
    unref: () => void server.unref(),
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
