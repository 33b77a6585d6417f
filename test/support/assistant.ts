import { createHash, randomBytes } from 'node:crypto';
import type { OAuthClientProvider } from '@modelcontextprotocol/client';
import type { Database } from '../../src/db/database.ts';
import type { TestServer } from './server.ts';

export const callback = 'http://127.0.0.1:4999/callback';

type UserToken = string | (() => Promise<string>);
type Registered = { client_id: string };
type Decided = { redirect_url: string };
type Tokens = { access_token: string; refresh_token: string; scope: string; expires_in: number };

/** Does by hand what an assistant and its user's browser do, so that tests can do each step wrongly. */
export class AssistantFlow {
  readonly #server: TestServer;
  readonly key: string;
  readonly token: UserToken;
  readonly verifier = randomBytes(32).toString('base64url');

  /** @param token the user's, or what signs the user in for each decision. */
  constructor(server: TestServer, key: string, token: UserToken) {
    this.#server = server;
    this.key = key;
    this.token = token;
  }

  get issuer(): string {
    return `${this.#server.baseUrl}/oauth/${this.key}`;
  }

  get resource(): string {
    return `${this.#server.baseUrl}/mcp/${this.key}`;
  }

  async register(metadata: object = {}): Promise<string> {
    const body = { client_name: 'Helper', redirect_uris: [callback], ...metadata };
    const made = await this.#server.api<Registered>('POST', `/oauth/${this.key}/register`, { body });
    if (made.status !== 201) throw new Error(made.text);
    return made.body.client_id;
  }

  parameters(clientId: string, given: Record<string, string> = {}): URLSearchParams {
    return new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: callback,
      state: 'a state',
      resource: this.resource,
      code_challenge_method: 'S256',
      code_challenge: createHash('sha256').update(this.verifier).digest('base64url'),
      ...given,
    });
  }

  /** Sends the browser to the authorization endpoint. */
  authorize(query: URLSearchParams | string, headers: Record<string, string> = {}) {
    return this.#server.api<{ error: string; error_description: string }>(
      'GET',
      `/oauth/${this.key}/authorize?${query}`,
      { headers },
    );
  }

  /** The `request` of the consent page to which the browser was sent. */
  async request(query: URLSearchParams | string): Promise<string> {
    const sent = await this.authorize(query);
    const request = new URL(sent.headers.get('location') ?? 'none:').searchParams.get('request');
    if (sent.status !== 302 || request === null)
      throw new Error(`${sent.status} ${sent.text} ${sent.headers.get('location')}`);
    return request;
  }

  async decide(request: string, body: object = { decision: 'allow' }, as = this.token) {
    const token = typeof as === 'string' ? as : await as();
    return this.#server.api<Decided>('POST', '/api/v1/assistant_request', { token, body: { request, ...body } });
  }

  /** What comes back to the assistant after the user allowed it. */
  async allow(query: URLSearchParams, body?: object): Promise<URLSearchParams> {
    const decided = await this.decide(await this.request(query), body);
    if (decided.status !== 200) throw new Error(decided.text);
    return new URL(decided.body.redirect_url).searchParams;
  }

  form(path: 'token' | 'revoke', form: Record<string, string> | string) {
    return this.#server.api<Tokens & { error: string; error_description: string }>(
      'POST',
      `/oauth/${this.key}/${path}`,
      {
        body: typeof form === 'string' ? form : new URLSearchParams(form).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      },
    );
  }

  exchange(clientId: string, code: string, given: Record<string, string> = {}) {
    return this.form('token', {
      grant_type: 'authorization_code',
      client_id: clientId,
      code,
      redirect_uri: callback,
      code_verifier: this.verifier,
      resource: this.resource,
      ...given,
    });
  }

  refresh(clientId: string, token: string, given: Record<string, string> = {}) {
    return this.form('token', { grant_type: 'refresh_token', client_id: clientId, refresh_token: token, ...given });
  }

  /** Connects an assistant: returns its client id and first tokens. */
  async connect(scope?: string): Promise<{ clientId: string; tokens: Tokens }> {
    const clientId = await this.register();
    const back = await this.allow(this.parameters(clientId, scope === undefined ? {} : { scope }));
    const got = await this.exchange(clientId, back.get('code') ?? '');
    if (got.status !== 200) throw new Error(got.text);
    return { clientId, tokens: got.body };
  }

  /** Calls the MCP endpoint with a token. */
  call(token: string, message: object = { method: 'tools/list' }, path = `/mcp/${this.key}`) {
    return this.#server.api('POST', path, {
      token,
      headers: { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' },
      body: { jsonrpc: '2.0', id: 1, ...message },
    });
  }
}

/** The OAuth client of the official MCP client, which keeps what it learns here. */
export class MemoryOAuth implements OAuthClientProvider {
  readonly redirectUrl = callback;
  readonly clientMetadata: { redirect_uris: string[]; client_name: string };
  readonly clientMetadataUrl?: string;
  readonly kept = new Map<string, unknown>();
  /** Where it wants to send the browser. */
  asked: URL | undefined;

  constructor(clientMetadataUrl?: string, name = 'Official client') {
    this.clientMetadata = { redirect_uris: [callback], client_name: name };
    if (clientMetadataUrl !== undefined) this.clientMetadataUrl = clientMetadataUrl;
  }

  state() {
    return 'state of the client';
  }
  clientInformation() {
    return this.kept.get('client') as never;
  }
  saveClientInformation(information: unknown) {
    this.kept.set('client', information);
  }
  tokens() {
    return this.kept.get('tokens') as never;
  }
  saveTokens(tokens: unknown) {
    this.kept.set('tokens', tokens);
  }
  redirectToAuthorization(to: URL) {
    this.asked = to;
  }
  discoveryState() {
    return this.kept.get('discovery') as never;
  }
  saveDiscoveryState(found: unknown) {
    this.kept.set('discovery', found);
  }
  invalidateCredentials(what: 'all' | 'client' | 'tokens' | 'verifier' | 'discovery') {
    if (what === 'all') this.kept.clear();
    else this.kept.delete(what);
  }
  saveCodeVerifier(verifier: string) {
    this.kept.set('verifier', verifier);
  }
  codeVerifier() {
    return String(this.kept.get('verifier'));
  }
}

/** Inserts what a user allows an assistant, without its tokens. */
export async function connectAssistant(db: Database, { app, user, id }: { app: string; user: string; id: string }) {
  await db`insert into assistant_grants (app_id, id, user_id, session_epoch, key_id, client_digest, client_name,
      redirect_uri, scopes, code_digest, code_challenge, refresh_digest, created_at, used_at, expires_at)
    select u.app_id, ${id}::uuid, u.id, u.session_epoch, k.id, '', 'Helper', ${callback}, '{kv}', '', '', '',
      now(), now(), now() + interval '30 days' from users u
      join api_keys k on k.app_id = u.app_id and k.type = 'publishable'
    where u.app_id = ${app} and u.id = ${user} limit 1`;
}
