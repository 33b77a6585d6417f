import { QuarryError } from './errors.ts';
import type { MintedToken } from './generated/schema.ts';

/** The tokens of a signed-in user. */
export type Tokens = {
  accessToken: string;
  refreshToken: string /** In milliseconds since 1970. */;
  expiresAt: number;
};

/** Where tokens are kept, such as `localStorage` for all tabs of a page. */
export type TokenStore = {
  load(): Tokens | undefined | Promise<Tokens | undefined>;
  save(tokens: Tokens | undefined): void | Promise<void>;
};

export type Login = { email: string; password: string };

/** Sends a request to a route of `auth/`. */
type Send = (method: string, path: string, body?: unknown) => Promise<MintedToken>;

/** Tokens are renewed this long before they expire, so that none expires on its way. */
const renewBeforeMs = 30_000;
const lockName = 'quarry-session';

/**
 * A user's session: hands out the access token, and renews it once for all calls that wait and, with a store that the
 * tabs of a page share, for all tabs. A refresh token is never sent twice, because the server takes the second time
 * for theft and ends the session: if the response to one is lost, the user has to sign in again.
 */
export class Session {
  readonly #store: TokenStore;
  #send: Send | undefined;
  #renewing: Promise<Tokens> | undefined;

  /** Without a store, the tokens are in memory. */
  constructor(store: TokenStore = memory()) {
    this.#store = store;
  }

  /** Called by the connection, which sends the requests. */
  attach(send: Send): void {
    this.#send = send;
  }

  async login(login: Login): Promise<void> {
    await this.#store.save(tokensOf(await this.#call('login', login)));
  }

  /** Ends the session on the server, and forgets its tokens. */
  async logout(): Promise<void> {
    const tokens = await this.#store.load();
    await this.#store.save(undefined);
    if (tokens?.refreshToken) await this.#call('logout', { refresh_token: tokens.refreshToken });
  }

  /** A token that is valid for a while. `refused` is one that the server no longer accepts. */
  async accessToken(refused?: string): Promise<string> {
    const tokens = await this.#store.load();
    if (tokens === undefined) throw signedOut('Nobody is signed in. Call session.login first.');
    if (tokens.accessToken !== refused && Date.now() < tokens.expiresAt - renewBeforeMs) return tokens.accessToken;
    this.#renewing ??= inOneTab(() => this.#renew(tokens)).finally(() => {
      this.#renewing = undefined;
    });
    return (await this.#renewing).accessToken;
  }

  async #renew(old: Tokens): Promise<Tokens> {
    const current = await this.#store.load();
    // Another tab has signed out, or renewed it while this one waited.
    if (current === undefined) throw signedOut('The user has signed out.');
    if (current.refreshToken !== old.refreshToken) return current;
    if (current.refreshToken === '') return this.#end();
    // A server that cannot be reached would take the token without a trace of it: ask first.
    await this.#request('GET', '/healthz');
    // From here on the refresh token counts as used, whatever becomes of the response.
    await this.#store.save({ ...current, refreshToken: '', expiresAt: 0 });
    let minted: MintedToken;
    try {
      minted = await this.#call('refresh', { refresh_token: current.refreshToken });
    } catch (error) {
      if (!(error instanceof QuarryError && error.status === 429)) return this.#end(error);
      // It was refused unread.
      await this.#store.save(current);
      throw error;
    }
    const renewed = tokensOf(minted);
    await this.#store.save(renewed);
    return renewed;
  }

  async #end(cause?: unknown): Promise<never> {
    await this.#store.save(undefined);
    throw signedOut('The session has ended. Sign in again.', cause);
  }

  #call(route: string, body: unknown): Promise<MintedToken> {
    return this.#request('POST', `/api/v1/auth/${route}`, body);
  }

  #request(method: string, path: string, body?: unknown): Promise<MintedToken> {
    if (this.#send === undefined) throw new TypeError('Pass the session to Quarry or connect() first.');
    return this.#send(method, path, body);
  }
}

function tokensOf({ token, refresh_token = '', expires_in = 0 }: MintedToken): Tokens {
  return { accessToken: token, refreshToken: refresh_token, expiresAt: Date.now() + expires_in * 1_000 };
}

function signedOut(message: string, cause?: unknown): QuarryError {
  return new QuarryError('signed_out', message, cause === undefined ? {} : { cause });
}

/** Runs in one tab at a time, where the browser has locks. */
function inOneTab<T>(work: () => Promise<T>): Promise<T> {
  const { locks } = globalThis.navigator ?? {};
  return locks === undefined ? work() : (locks.request(lockName, work) as Promise<T>);
}

function memory(): TokenStore {
  let tokens: Tokens | undefined;
  return {
    load: () => tokens,
    save: (given) => {
      tokens = given;
    },
  };
}

/** Keeps tokens in `localStorage`, where all tabs of a page find them. */
export function browserStore(name = 'quarry.session'): TokenStore {
  return {
    load: () => {
      const text = localStorage.getItem(name);
      return text === null ? undefined : (JSON.parse(text) as Tokens);
    },
    save: (tokens) => {
      if (tokens === undefined) localStorage.removeItem(name);
      else localStorage.setItem(name, JSON.stringify(tokens));
    },
  };
}
