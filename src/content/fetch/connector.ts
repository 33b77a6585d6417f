import { connect, isIP, type Socket } from 'node:net';
import type { buildConnector } from 'undici';
import { lazyPackage } from '../../lib/lazy-package.ts';
import { isGloballyRoutable } from './address.ts';
import type { AllowList } from './allow-list.ts';
import { FetchError } from './errors.ts';
import { skipContinue } from './interim.ts';
import type { Resolver } from './resolver.ts';

const addressesTriedMax = 3;
const undici = lazyPackage<typeof import('undici')>('undici');

/**
 * The only outgoing connector: resolves the host, checks every address, and connects to the address that was checked.
 * A name is resolved once for each connection, so it cannot change in between.
 */
export function guardedConnector(options: {
  resolve: Resolver;
  allow: AllowList;
  connectTimeoutMs: number;
}): buildConnector.connector {
  const { resolve, allow, connectTimeoutMs } = options;
  const connect = undici().buildConnector({ timeout: connectTimeoutMs, allowH2: false, maxCachedSessions: 100 });

  return (target, callback) => {
    const host = plainHost(target.hostname);
    safeAddresses(host, within(resolve, connectTimeoutMs), allow).then(
      (addresses) => tryNext(addresses.slice(0, addressesTriedMax)),
      (error: unknown) => callback(error as Error, null),
    );

    function tryNext(addresses: string[]): void {
      const [address, ...rest] = addresses;
      // TLS server name and Host header keep the name. Only the socket uses the address.
      const servername = isIP(host) === 0 ? host : undefined;
      const pinned = {
        ...target,
        hostname: address ?? '',
        ...(target.protocol === 'https:' && servername ? { servername } : {}),
      };
      if (target.protocol !== 'https:') delete pinned.servername;
      connect(pinned, (error, socket) => {
        if (error === null) callback(null, skipContinue(socket));
        else if (rest.length > 0) tryNext(rest);
        else callback(error, null);
      });
    }
  };
}

/** Opens a connection to a host on the internet. Aborting `signal` also ends an open connection. */
type OpenConnection = (host: string, port: number, signal: AbortSignal) => Promise<Socket>;

/** The same checks for a bare TCP connection that another client reads and writes. */
export function guardedConnections(options: {
  resolve: Resolver;
  allow: AllowList;
  connectTimeoutMs: number;
}): OpenConnection {
  const { resolve, allow, connectTimeoutMs } = options;
  return async (name, port, signal) => {
    const addresses = await safeAddresses(plainHost(name), within(resolve, connectTimeoutMs), allow);
    let failure: unknown;
    for (const address of addresses.slice(0, addressesTriedMax)) {
      try {
        return await openSocket(address, port, connectTimeoutMs, signal);
      } catch (error) {
        failure = error;
      }
      signal.throwIfAborted();
    }
    throw failure;
  };
}

function openSocket(host: string, port: number, timeoutMs: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = connect({ host, port, signal, noDelay: true });
    socket.setTimeout(timeoutMs, () => socket.destroy(new FetchError('timeout', 'The host did not respond in time.')));
    // This listener stays: an open connection may fail at any time, and its reader sees that it closed.
    socket.on('error', reject);
    socket.once('connect', () => {
      socket.setTimeout(0);
      resolve(socket);
    });
  });
}

function plainHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '');
}

/** A resolver with a timeout, because an unresponsive name server must not hold a connection slot. */
function within(resolve: Resolver, timeoutMs: number): Resolver {
  return async (host) => {
    const leaving = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const tooLong = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        const error = new Error('name resolution timed out');
        reject(error);
        leaving.abort(error);
      }, timeoutMs);
    });
    try {
      return await Promise.race([resolve(host, leaving.signal), tooLong]);
    } finally {
      clearTimeout(timer);
    }
  };
}

async function safeAddresses(host: string, resolve: Resolver, allow: AllowList): Promise<string[]> {
  const addresses = isIP(host) === 0 ? await resolveName(host, resolve) : [host];
  const open = allow.allowsHost(host);
  // One private address among public ones is enough to refuse: legitimate sites do not publish such a mixture.
  const safe = addresses.every((address) => open || isGloballyRoutable(address) || allow.allowsAddress(address));
  if (!safe) throw new FetchError('unsafe_address', 'The host is not on the public internet.');
  return addresses;
}

async function resolveName(host: string, resolve: Resolver): Promise<string[]> {
  let addresses: string[];
  try {
    addresses = await resolve(host);
  } catch (error) {
    throw new FetchError('dns_failed', 'The host name could not be resolved.', error);
  }
  if (addresses.length === 0 || addresses.some((address) => isIP(address) === 0))
    throw new FetchError('dns_failed', 'The host name could not be resolved.');
  return addresses;
}
