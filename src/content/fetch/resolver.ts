import { AsyncLocalStorage } from 'node:async_hooks';
import { lookup, Resolver as NameServers } from 'node:dns/promises';
import { readFile, stat } from 'node:fs/promises';
import { isIP, type LookupFunction } from 'node:net';
import { Slots } from '../../fairness/slots.ts';

/** Returns all addresses of a host name, in the order to try them. `signal` ends the wait. */
export type Resolver = (host: string, signal?: AbortSignal) => Promise<string[]>;

type SystemResolverOptions = {
  /** Replaces the system's name servers in tests. */
  servers?: readonly string[];
  hostsFile?: string;
  lookupMs?: number;
  /** Resolves a name by the system itself. */
  lookup?: (host: string) => Promise<string[]>;
};

/** The maximum number of concurrent lookups in this process; one app gets at most half of them. */
const lookupsMax = 128;
/** Threads that may resolve names: half of the four that they share with files, passwords and compression. */
const threadsMax = 2;
/** How long the name servers have to respond. */
const lookupMsDefault = 6_000;
/** After these failures, the system would only wait for the same servers again. */
const hopeless = new Set(['ETIMEOUT', 'ECANCELLED', 'ESERVFAIL']);

const lanes = new AsyncLocalStorage<string>();

/**
 * Runs requests of an app, so that the names they resolve count towards that app. A connection that apps share is
 * opened for the first of them.
 */
export function resolveFor<T>(lane: string, request: () => T): T {
  return lanes.run(lane, request);
}

/**
 * Resolves names as the system does, but without a thread for each: name servers that hang would occupy the few
 * threads of the process. It first reads the hosts file, then asks the name servers. Only a name that neither knows
 * is resolved by the system (search domains, other services), on a bounded number of threads.
 */
export function createSystemResolver(options: SystemResolverOptions = {}): Resolver {
  const { hostsFile = '/etc/hosts', lookup: bySystem = lookUp } = options;
  const tooMany = () => new Error('too many names wait for their addresses');
  const questions = new Slots({ slots: lookupsMax, tooMany });
  const lookups = new Slots({ slots: threadsMax, tooMany });
  const readHosts = hostsReader(hostsFile);

  return async (host, signal) => {
    const lane = lanes.getStore() ?? '';
    const known = (await readHosts()).get(host.toLowerCase());
    if (known !== undefined) return known;
    const found = await questions.run(lane, () => askServers(host, options, signal), signal);
    return found ?? lookups.run(lane, () => bySystem(host), signal);
  };
}

/** Adapts the resolver to the `lookup` option of sockets. */
export function lookupWith(resolve: Resolver): LookupFunction {
  return (host, { all, family }, done) => {
    resolve(host).then(
      (addresses) => {
        const found = addresses
          .map((address) => ({ address, family: isIP(address) }))
          .filter((one) => one.family !== 0 && (!family || `IPv${one.family}` === family || one.family === family));
        const [first] = found;
        if (first === undefined) done(Object.assign(new Error(`${host} has no address`), { code: 'ENOTFOUND' }), '');
        else if (all) done(null, found);
        else done(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => done(error, ''),
    );
  };
}

async function lookUp(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

/** The addresses that the name servers return, or undefined if they know none. Throws if no server responds. */
async function askServers(
  host: string,
  { servers, lookupMs = lookupMsDefault }: SystemResolverOptions,
  signal: AbortSignal | undefined,
): Promise<string[] | undefined> {
  // A new resolver reads the system's current settings and can be cancelled by itself.
  const names = new NameServers({ timeout: Math.ceil(lookupMs / 3), tries: 2 });
  if (servers !== undefined) names.setServers(servers);
  const cancel = (): void => names.cancel();
  signal?.addEventListener('abort', cancel, { once: true });
  const timer = setTimeout(cancel, lookupMs);
  try {
    const [four, six] = await Promise.allSettled([names.resolve4(host), names.resolve6(host)]);
    signal?.throwIfAborted();
    const found = alternate(four.status === 'fulfilled' ? four.value : [], six.status === 'fulfilled' ? six.value : []);
    if (found.length > 0) return found;
    for (const outcome of [four, six])
      if (outcome.status === 'rejected' && hopeless.has(outcome.reason?.code)) throw outcome.reason;
    return undefined;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', cancel);
  }
}

/** Alternates between the two kinds: only the first few addresses are tried, and a machine may reach only one kind. */
function alternate(four: string[], six: string[]): string[] {
  const longer = Math.max(four.length, six.length);
  return Array.from({ length: longer }, (_, i) => [four[i], six[i]])
    .flat()
    .filter((address) => address !== undefined);
}

/** Reads the hosts file again when it has changed. Without a hosts file, no name has addresses there. */
function hostsReader(path: string): () => Promise<Map<string, string[]>> {
  let version = '';
  let hosts = new Map<string, string[]>();
  return async () => {
    const found = await stat(path).catch(() => undefined);
    const now = found === undefined ? '' : `${found.mtimeMs} ${found.size}`;
    if (now !== version) {
      hosts = now === '' ? new Map() : parseHosts(await readFile(path, 'utf8').catch(() => ''));
      version = now;
    }
    return hosts;
  };
}

function parseHosts(text: string): Map<string, string[]> {
  const hosts = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (isIP(address) === 0) continue;
    for (const name of names) hosts.set(name.toLowerCase(), [...(hosts.get(name.toLowerCase()) ?? []), address]);
  }
  return hosts;
}
