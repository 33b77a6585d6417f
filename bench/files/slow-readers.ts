import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Every so often, one of the readers takes what its connection has received. */
const readEveryMs = 10;
const openAtOnce = 50;

/** Opens downloads that are read very slowly, and waits for the first bytes of each. Returns a function that ends them. */
export async function openSlowReaders(url: string, count: number): Promise<() => Promise<void>> {
  const sockets: Socket[] = [];
  while (sockets.length < count) {
    const left = Math.min(openAtOnce, count - sockets.length);
    sockets.push(...(await Promise.all(Array.from({ length: left }, () => openReader(new URL(url))))));
  }
  let next = 0;
  const timer = setInterval(() => {
    const socket = sockets[next++ % count];
    socket?.once('data', () => socket.pause()).resume();
  }, readEveryMs);
  return async () => {
    clearInterval(timer);
    await Promise.all(
      sockets.map(async (socket) => {
        if (socket.closed) throw new Error('The server ended a slow download.');
        const closed = once(socket, 'close');
        socket.destroy();
        await closed;
      }),
    );
  };
}

async function openReader({ hostname, port, pathname, search }: URL): Promise<Socket> {
  const socket = connect(Number(port), hostname);
  socket.write(`GET ${pathname}${search} HTTP/1.1\r\nhost: ${hostname}:${port}\r\n\r\n`);
  const [head] = (await once(socket, 'data')) as [Buffer];
  socket.pause();
  if (!head.toString('latin1').startsWith('HTTP/1.1 200')) throw new Error(head.toString('latin1', 0, 500));
  return socket;
}
