import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

type BreakingProxy = {
  url: string;
  /** Where new connections lead. */
  target: string;
  /** Each number breaks one of the next connections after it has sent this many bytes from a PATCH on, in order. */
  breakAfter: number[];
  /** Called when a connection is broken. */
  onBreak: () => void;
  close(): Promise<void>;
};

/** A TCP proxy on this machine that breaks connections in the middle, as happens to mobile clients. */
export async function openBreakingProxy(target: string): Promise<BreakingProxy> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const { hostname, port } = new URL(proxy.target);
    const upstream = connect(Number(port), hostname);
    let left = Number.POSITIVE_INFINITY;
    let isFirst = true;
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('close', () => {
        sockets.delete(socket);
        end();
      });
      socket.on('error', end);
    }
    client.on('data', (chunk: Buffer) => {
      if (isFirst && /^PATCH/.test(chunk.toString('latin1', 0, 8))) {
        left = proxy.breakAfter[0] ?? left;
        isFirst = false;
      }
      left -= chunk.length;
      if (left > 0) {
        if (!upstream.write(chunk)) {
          client.pause();
          upstream.once('drain', () => client.resume());
        }
        return;
      }
      client.pause();
      proxy.breakAfter.shift();
      upstream.write(chunk.subarray(0, chunk.length + left), end);
      proxy.onBreak();
    });
    upstream.on('data', (chunk) => client.write(chunk));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const proxy: BreakingProxy = {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    target,
    breakAfter: [],
    onBreak: () => {},
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}
