import { isIP } from 'node:net';

/** Whether a host, as in a setting or a URL, is this machine by its own name: `localhost` or a loopback address. */
export function isLoopback(host: string): boolean {
  const address = host.replace(/^\[|\]$/g, '');
  return address === 'localhost' || address === '::1' || (isIP(address) === 4 && address.startsWith('127.'));
}
