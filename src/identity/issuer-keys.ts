import type { JSONWebKeySet } from 'jose';
import { FetchError } from '../content/fetch/errors.ts';
import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';

type IssuerKeysDeps = { fetcher: Fetcher; clock: Clock; log: Logger };

/** Where to find an issuer's keys. */
type IssuerSource = { appId: string; issuer: string; jwksUrl: string | null };

/** The members of an issuer's discovery document that Quarry uses. */
type IssuerMetadata = {
  jwksUrl: string;
  authorizationEndpoint: string | undefined;
  tokenEndpoint: string | undefined;
};

type Cached<T> = { value: T | undefined; fetchedAtMs: number; triedAtMs: number; loading: Promise<T> | undefined };

const freshMs = 10 * 60 * 1_000;
/** How long cached keys are used while the issuer is unreachable. */
const staleMs = 24 * 60 * 60 * 1_000;
/** After a fetch, no unknown key and no failure causes another fetch for this long. */
const pauseMs = 30_000;
const entriesMax = 1_000;
const bytesMax = 256 * 1024;
const keysMax = 100;
const timeoutMs = 5_000;

/** Caches the public keys of issuers in this process. All requests go through the guarded fetch. */
export class IssuerKeys {
  readonly #deps: IssuerKeysDeps;
  readonly #metadata = new Map<string, Cached<IssuerMetadata>>();
  readonly #keys = new Map<string, Cached<JSONWebKeySet>>();

  constructor(deps: IssuerKeysDeps) {
    this.#deps = deps;
  }

  /**
   * Returns an issuer's keys. `unknown` means that the cached ones lack the wanted key, so it may have been rotated.
   */
  async find(place: IssuerSource, unknown = false): Promise<JSONWebKeySet> {
    const url = place.jwksUrl ?? (await this.discover(place)).jwksUrl;
    return this.#cached(this.#keys, `${place.appId} ${url}`, unknown, async () =>
      readKeys(await this.#fetchJson(place.appId, url)),
    );
  }

  /** Fetches the issuer's discovery document. */
  discover({ appId, issuer }: IssuerSource): Promise<IssuerMetadata> {
    return this.#cached(this.#metadata, `${appId} ${issuer}`, false, async () => {
      const found = await this.#fetchJson(appId, `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
      const { issuer: stated, jwks_uri: jwksUrl, authorization_endpoint: authorize, token_endpoint: token } = found;
      if (stated !== issuer || typeof jwksUrl !== 'string')
        throw new Error('The discovery document belongs to another issuer.');
      const optional = (value: unknown) => (typeof value === 'string' ? value : undefined);
      return { jwksUrl, authorizationEndpoint: optional(authorize), tokenEndpoint: optional(token) };
    });
  }

  async #cached<T>(cache: Map<string, Cached<T>>, name: string, refresh: boolean, load: () => Promise<T>): Promise<T> {
    const now = this.#deps.clock.now().getTime();
    let entry = cache.get(name);
    if (entry === undefined) {
      const oldest = cache.size >= entriesMax ? cache.keys().next().value : undefined;
      if (oldest !== undefined) cache.delete(oldest);
      entry = { value: undefined, fetchedAtMs: 0, triedAtMs: Number.NEGATIVE_INFINITY, loading: undefined };
      cache.set(name, entry);
    }
    const { value, fetchedAtMs } = entry;
    if (value !== undefined && !refresh && now - fetchedAtMs < freshMs) return value;
    if (entry.loading === undefined && now - entry.triedAtMs >= pauseMs) {
      entry.triedAtMs = now;
      entry.loading = this.#load(entry, load).finally(() => {
        entry.loading = undefined;
      });
    }
    try {
      if (entry.loading !== undefined) return await entry.loading;
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'Could not read the keys of an issuer');
    }
    if (value !== undefined && now - fetchedAtMs < staleMs) return value;
    throw new AppError('unavailable', 'The issuer of the token cannot be reached. Try again shortly.', {
      headers: { 'retry-after': String(Math.ceil(pauseMs / 1_000)) },
    });
  }

  async #load<T>(entry: Cached<T>, load: () => Promise<T>): Promise<T> {
    const value = await load();
    entry.value = value;
    entry.fetchedAtMs = this.#deps.clock.now().getTime();
    return value;
  }

  async #fetchJson(lane: string, url: string): Promise<Record<string, unknown>> {
    const { fetcher } = this.#deps;
    const headers = { accept: 'application/json', 'accept-encoding': 'identity' };
    const response = await fetcher.fetch(url, { lane, headers, bytesMax, timeoutMs, redirect: 'manual' });
    return readJson(response.status, response.headers, await response.bytes());
  }
}

/** Parses a response that must be a small, uncompressed JSON object. */
export function readJson(status: number, headers: Record<string, string>, bytes: Uint8Array): Record<string, unknown> {
  if (status !== 200) throw new FetchError('bad_response', `The issuer returned ${status}.`);
  if ((headers['content-encoding'] ?? 'identity') !== 'identity')
    throw new FetchError('bad_response', 'The issuer sent a compressed response.');
  const value = parseJson(Buffer.from(bytes).toString());
  if (typeof value !== 'object' || value === null)
    throw new FetchError('bad_response', 'The issuer did not send a JSON object.');
  return value as Record<string, unknown>;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new FetchError('bad_response', 'The issuer did not send JSON.', error);
  }
}

/** Keeps only public keys for signatures: a symmetric key in the set would let anyone sign. */
function readKeys({ keys }: Record<string, unknown>): JSONWebKeySet {
  if (!Array.isArray(keys)) throw new Error('The key set has no keys.');
  const usable = keys.slice(0, keysMax).filter((key: unknown) => {
    const { kty, use } = (key ?? {}) as { kty?: unknown; use?: unknown };
    return ['RSA', 'EC', 'OKP'].includes(String(kty)) && (use === undefined || use === 'sig');
  });
  return { keys: usable } as JSONWebKeySet;
}
