import { isLoopback } from '../config/loopback.ts';
import { FetchError } from '../content/fetch/errors.ts';
import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError } from '../lib/errors.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { oauthError, problemOfRedirectUri } from './protocol.ts';

/** A program that asks for access: where codes may go, and what its users see of it. */
export type Client = {
  name: string;
  /** The address of its metadata document, or a page about a registered client. Only the first is verified. */
  url: string | undefined;
  isVerified: boolean;
  redirectUris: readonly string[];
};

type ClientsDeps = { fetcher: Pick<Fetcher, 'fetch' | 'check'>; secrets: Secrets; clock: Clock };

const redirectUrisMax = 20;
const registeredPrefix = 'qmc_';
/** Tells the metadata from other texts that this installation encrypts. */
const kind = 'client';
const clientIdCharactersMax = 8_192;
const urlCharactersMax = 500;
const nameCharactersMax = 100;
const documentBytesMax = 16 * 1024;
const timeoutMs = 5_000;
const cacheMs = { found: 10 * 60_000, refused: 30_000 };
const cachedMax = 1_000;

/**
 * The clients of the authorization server. None has a row: a registered client's id holds its encrypted metadata (RFC
 * 7591, appendix A.5.2), and any other id is the URL of a metadata document, which is fetched and cached briefly.
 */
export class Clients {
  readonly #deps: ClientsDeps;
  readonly #documents = new Map<string, { value: Promise<Client>; untilMs: number }>();

  constructor(deps: ClientsDeps) {
    this.#deps = deps;
  }

  /** Returns the id of a new client of the app. */
  register(appId: string, metadata: Record<string, unknown>): { id: string; client: Client } {
    const client = { ...readMetadata(metadata, false), isVerified: false };
    const { name, url, redirectUris } = client;
    const wrapped = this.#deps.secrets.wrap(Buffer.from(JSON.stringify({ kind, appId, name, url, redirectUris })));
    const id = `${registeredPrefix}${wrapped.toString('base64url')}`;
    if (id.length > clientIdCharactersMax)
      throw oauthError('invalid_client_metadata', 'The redirect URIs are too long altogether.');
    return { id, client };
  }

  /** Returns the client with this id. Throws `invalid_client`. */
  async find(appId: string, id: string): Promise<Client> {
    if (id.length > clientIdCharactersMax) throw unknownClient();
    if (id.startsWith(registeredPrefix)) return this.#findRegistered(appId, id);
    if (!isDocumentUrl(id)) throw unknownClient();
    const now = this.#deps.clock.now().getTime();
    const name = `${appId} ${id}`;
    const cached = this.#documents.get(name);
    if (cached !== undefined && cached.untilMs > now) return cached.value;
    const oldest = this.#documents.size >= cachedMax ? this.#documents.keys().next().value : undefined;
    if (oldest !== undefined) this.#documents.delete(oldest);
    const value = this.#fetchDocument(appId, id);
    const entry = { value, untilMs: now + cacheMs.found };
    this.#documents.set(name, entry);
    value.catch(() => {
      entry.untilMs = now + cacheMs.refused;
    });
    return value;
  }

  #findRegistered(appId: string, id: string): Client {
    let read: { kind: string; appId: string; name: string; url?: string; redirectUris: string[] };
    try {
      const { plain } = this.#deps.secrets.unwrap(Buffer.from(id.slice(registeredPrefix.length), 'base64url'));
      read = JSON.parse(plain.toString()) as typeof read;
    } catch (error) {
      throw unknownClient(error);
    }
    if (read.kind !== kind || read.appId !== appId) throw unknownClient();
    return { name: read.name, url: read.url, redirectUris: read.redirectUris, isVerified: false };
  }

  async #fetchDocument(appId: string, id: string): Promise<Client> {
    const { fetcher } = this.#deps;
    if (!fetcher.check(id).ok) throw unknownClient();
    try {
      const response = await fetcher.fetch(id, {
        lane: appId,
        headers: { accept: 'application/json', 'accept-encoding': 'identity' },
        bytesMax: documentBytesMax,
        timeoutMs,
        redirect: 'manual',
      });
      if (response.status !== 200) {
        await response.discard();
        throw oauthError('invalid_client', `The client’s metadata document returned ${response.status}.`);
      }
      const metadata = parseObject(Buffer.from(await response.bytes()).toString());
      if (metadata?.client_id !== id)
        throw oauthError('invalid_client', 'The client’s metadata document names another client_id.');
      return { ...readMetadata({ client_name: new URL(id).host, ...metadata }, true), url: id, isVerified: true };
    } catch (error) {
      if (error instanceof AppError) throw oauthError('invalid_client', error.message, error);
      if (!(error instanceof FetchError)) throw error;
      throw oauthError('invalid_client', 'The client’s metadata document could not be read.', error);
    }
  }
}

/** An https URL with a path, written in the one usual way. */
function isDocumentUrl(text: string): boolean {
  if (text.length > urlCharactersMax || !URL.canParse(text)) return false;
  const url = new URL(text);
  const isSecure = url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
  const isPlain = url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  return isSecure && isPlain && url.pathname !== '/' && url.href === text;
}

function readMetadata(metadata: Record<string, unknown>, isDocument: boolean): Omit<Client, 'isVerified'> {
  const { redirect_uris: uris, client_name: name, client_uri: uri } = metadata;
  const { token_endpoint_auth_method: method, grant_types: grants, response_types: responses } = metadata;
  const isText = (value: unknown): value is string => typeof value === 'string';
  if (!Array.isArray(uris) || uris.length === 0 || uris.length > redirectUrisMax || !uris.every(isText))
    throw oauthError('invalid_redirect_uri', `redirect_uris must list 1 to ${redirectUrisMax} addresses.`);
  for (const each of uris) {
    const problem = problemOfRedirectUri(each);
    if (problem !== undefined) throw oauthError('invalid_redirect_uri', `redirect_uris: ${each} ${problem}.`);
  }
  // A registered client is told that it has no secret. The author of a document is not.
  if (isDocument && method !== undefined && method !== 'none')
    throw oauthError('invalid_client_metadata', 'token_endpoint_auth_method must be none.');
  if (Array.isArray(grants) && !grants.includes('authorization_code'))
    throw oauthError('invalid_client_metadata', 'grant_types must contain authorization_code.');
  if (Array.isArray(responses) && !responses.includes('code'))
    throw oauthError('invalid_client_metadata', 'response_types must contain code.');
  const shown = name === undefined ? 'Unnamed assistant' : name;
  // Characters that are not shown, or that change how others are, could disguise a name.
  if (!isText(shown) || shown.trim() === '' || shown.length > nameCharactersMax || /[\p{C}\p{Zl}\p{Zp}]/u.test(shown))
    throw oauthError('invalid_client_metadata', `client_name must have 1 to ${nameCharactersMax} visible characters.`);
  const isPage =
    isText(uri) && uri.length <= urlCharactersMax && URL.canParse(uri) && new URL(uri).protocol === 'https:';
  return { name: shown.trim(), url: isPage ? new URL(uri).href : undefined, redirectUris: uris };
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    throw oauthError('invalid_client', 'The client’s metadata document is not JSON.');
  }
}

function unknownClient(cause?: unknown): AppError {
  return oauthError('invalid_client', 'The client_id is unknown. Register again.', cause);
}
