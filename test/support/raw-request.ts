import { connect } from 'node:net';

/** Sends bytes to a server unchanged, and returns everything that arrives until the connection ends. */
export function sendRaw(baseUrl: string, text: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(baseUrl);
    const socket = connect(Number(port), hostname.replace(/^\[|\]$/g, ''));
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    // The server may end the connection while part of a refused request is in transit.
    socket.on('error', (error) => chunks.length === 0 && reject(error));
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()));
    socket.write(text);
  });
}
