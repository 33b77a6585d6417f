import type { Clock } from '../lib/clock.ts';
import { defined } from '../lib/defined.ts';
import { AppError, invalidField } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import { readBase64url } from '../tenancy/base64url.ts';
import type { Caller, UserCaller } from '../tenancy/caller.ts';
import { type Credential, epochOf, issuerOf, requirePerson } from '../tenancy/credential.ts';
import { assistantAreas, coversScopes, type KeyScope } from '../tenancy/key-scopes.ts';
import { mcpIssuer } from '../tenancy/mcp-tokens.ts';
import { requireRoom } from '../tenancy/room.ts';
import { digest, type Secrets } from '../tenancy/secrets.ts';
import type { Client, Clients } from './clients.ts';
import { type PendingRequest, pendingCharactersMax, pendingMs, readPending, wrapPending } from './pending.ts';
import { enterPlace, type Place, type PlaceDeps, requireResource } from './place.ts';
import {
  addParameters,
  isLocal,
  matchesRedirectUri,
  oauthCodeOf,
  oauthError,
  type Parameters,
  readParameters,
} from './protocol.ts';
import { readScopes } from './scopes.ts';
import * as store from './store.ts';
import { mintCode } from './tokens.ts';

type AuthorizationDeps = PlaceDeps & { clock: Clock; secrets: Secrets; clients: Clients };

const codeMs = 120_000;
const grantsMax = 100;
const stateCharactersMax = 2_000;

/** Where the browser goes, and why it goes back. Anyone can register an address, unless it is one of the user's machine. */
type Sent = { to: string; refusal?: { reason: AppError; isLocal: boolean } };

/** How a client asks a user for a grant, and the user decides. */
export type Authorization = {
  /**
   * Returns where the browser goes: the consent page, or back to the client with an error. Throws if the request does
   * not prove where the client is.
   */
  authorize(key: string, address: string, query: string): Promise<Sent>;
  /** What a client asks of the user. */
  show(caller: Caller, text: string): PendingRequest;
  /** Records the user's decision and returns where their browser goes. */
  decide(
    caller: UserCaller,
    credential: Credential | undefined,
    decision: { request: string; allow: boolean; scopes?: KeyScope[] },
  ): Promise<{ url: string; grantId?: string }>;
};

export function createAuthorization(deps: AuthorizationDeps): Authorization {
  const { db, clock, secrets, clients, baseUrl } = deps;

  return {
    async authorize(key, address, query) {
      const place = await enterPlace(deps, 'authorize', key, address);
      const given = readParameters(query);
      const id = given.get('client_id');
      const redirectUri = given.get('redirect_uri');
      if (id === undefined) throw oauthError('invalid_request', 'client_id is missing.');
      if (redirectUri === undefined) throw oauthError('invalid_request', 'redirect_uri is missing.');
      const client = await clients.find(place.appId, id);
      if (!matchesRedirectUri(client.redirectUris, redirectUri))
        throw oauthError('invalid_redirect_uri', 'redirect_uri is not one of the client’s addresses.');
      const state = given.get('state');
      if ((state?.length ?? 0) > stateCharactersMax)
        throw oauthError('invalid_request', `state has more than ${stateCharactersMax} characters.`);
      try {
        const request = wrapPending(secrets, readRequest(deps, place, client, given, redirectUri));
        if (request.length > pendingCharactersMax) throw oauthError('invalid_request', 'The request is too long.');
        return { to: `${baseUrl()}/console/connect?${new URLSearchParams({ key, request }).toString()}` };
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        const result = { error: oauthCodeOf(error), error_description: error.message };
        const to = respond(deps, { key, redirectUri, ...defined({ state }) }, result);
        return { to, refusal: { reason: error, isLocal: isLocal(redirectUri) } };
      }
    },

    show: (caller, text) => readPending(secrets, text, caller, clock.now()),

    async decide(caller, credential, { request, scopes, allow }) {
      // The connection would outlive the token.
      requirePerson(credential, 'A personal token cannot connect an assistant. Sign in to decide.');
      const now = clock.now();
      const pending = readPending(secrets, request, caller, now);
      if (!allow) {
        const denied = { error: 'access_denied', error_description: 'The user refused.' };
        return { url: respond(deps, pending, denied) };
      }
      const granted = scopes ?? pending.scopes;
      if (!coversScopes(pending.scopes, granted)) throw invalidField('scopes', 'must be among those of the request');
      const { appId, userId } = caller;
      const id = newUuid();
      const code = mintCode(id);
      const created = await db.begin(async (tx) => {
        const message = `A user has at most ${grantsMax} connected assistants. Disconnect one first.`;
        const room = { things: 'connected assistants', max: grantsMax, message, of: userId };
        if (!(await store.lockSwitch(tx, appId)))
          throw new AppError('conflict', 'The app no longer lets assistants connect.');
        await requireRoom(tx, caller, room, () => store.countGrants(tx, caller, userId, now));
        return store.insertGrant(tx, {
          ...{ appId, id, userId, keyId: pending.keyId, scopes: granted },
          ...{ epoch: epochOf(credential), issuerId: issuerOf(credential) },
          clientDigest: Buffer.from(pending.client.digest, 'hex'),
          clientName: pending.client.name,
          clientUrl: pending.client.url ?? null,
          redirectUri: pending.redirectUri,
          codeDigest: digest(code),
          codeChallenge: pending.challenge,
          ...{ createdAt: now, usedAt: now, expiresAt: new Date(now.getTime() + codeMs) },
        });
      });
      if (!created) throw new AppError('invalid_credentials', 'The session has ended. Sign in again.');
      return { url: respond(deps, pending, { code }), grantId: id };
    },
  };
}

/** The response at the client's address, which names its issuer (RFC 9207). */
function respond(
  { baseUrl }: AuthorizationDeps,
  { key, redirectUri, state }: Pick<PendingRequest, 'key' | 'redirectUri' | 'state'>,
  result: Record<string, string>,
) {
  return addParameters(redirectUri, { ...result, ...defined({ state }), iss: mcpIssuer(baseUrl(), key) });
}

/** Reads the rest of a request, after the client and its address are known. Its errors go to that address. */
function readRequest(
  deps: AuthorizationDeps,
  place: Place,
  client: Client,
  given: Parameters,
  redirectUri: string,
): PendingRequest {
  const challenge = readChallenge(given);
  requireResource(deps, place, given);
  const { name, url, isVerified } = client;
  const clientDigest = digest(given.get('client_id') ?? '').toString('hex');
  return {
    ...{ kind: 'assistant', ...place, redirectUri, challenge },
    ...defined({ state: given.get('state') }),
    client: { digest: clientDigest, name, isVerified, ...defined({ url }) },
    scopes: readScopes(given.get('scope')) ?? [...assistantAreas],
    untilMs: deps.clock.now().getTime() + pendingMs,
  };
}

/** The challenge of the code's verifier (RFC 7636). Throws unless the request is for a code, in the one way there is. */
function readChallenge(given: Parameters): string {
  const refuse = (name: string, message: string) => oauthError('invalid_request', `${name} ${message}.`);
  if (given.has('request')) throw oauthError('request_not_supported', 'Send the parameters themselves.');
  if (given.has('request_uri')) throw oauthError('request_uri_not_supported', 'Send the parameters themselves.');
  if (given.get('response_type') !== 'code')
    throw oauthError('unsupported_response_type', 'response_type must be code.');
  if ((given.get('response_mode') ?? 'query') !== 'query') throw refuse('response_mode', 'must be query');
  const challenge = given.get('code_challenge') ?? '';
  if (given.get('code_challenge_method') !== 'S256') throw refuse('code_challenge_method', 'must be S256');
  if (readBase64url(challenge)?.length !== 32) throw refuse('code_challenge', 'must be a SHA-256 digest in base64url');
  return challenge;
}
