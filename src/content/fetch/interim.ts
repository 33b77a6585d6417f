import type { Socket } from 'node:net';

const head = /^HTTP\/1\.[01] 100[ \r]/;
const headStart = 'HTTP/1.1 100 ';
const headBytesMax = 8 * 1024;

/**
 * Removes `100 Continue` from a socket before each response is read. Some servers send it unrequested, as HTTP
 * allows, and undici closes the connection for it.
 */
export function skipContinue(socket: Socket): Socket {
  const read = socket.read.bind(socket);
  const write = socket.write.bind(socket);
  let atStart = true;
  let held: Buffer = Buffer.alloc(0);
  // One response starts after each request, because requests are not pipelined.
  socket.write = ((...rest: Parameters<Socket['write']>) => {
    atStart = true;
    return write(...rest);
  }) as Socket['write'];
  socket.read = (size?: number): Buffer | null => {
    const chunk: Buffer | null = read(size);
    if (!atStart || chunk === null) return chunk;
    let bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    held = Buffer.alloc(0);
    for (;;) {
      const start = bytes.toString('latin1', 0, headStart.length);
      const end = head.test(start) ? bytes.indexOf('\r\n\r\n') : -1;
      const isCut = end < 0 && (head.test(start) || (start.length < headStart.length && mayStartResponse(start)));
      if (isCut && bytes.length <= headBytesMax) {
        held = bytes;
        return null;
      }
      if (end < 0) {
        atStart = false;
        return bytes;
      }
      bytes = bytes.subarray(end + 4);
    }
  };
  return socket;
}

function mayStartResponse(start: string): boolean {
  return headStart.startsWith(start) || headStart.replace('1.1', '1.0').startsWith(start);
}
