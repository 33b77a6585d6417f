import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import type { Db } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Clock } from '../lib/clock.ts';
import { defined } from '../lib/defined.ts';
import { found } from '../lib/errors.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import { mcpIssuer } from '../tenancy/mcp-tokens.ts';
import { fieldId, pathId } from '../tenancy/references.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { type Authorization, createAuthorization } from './authorization.ts';
import { Clients } from './clients.ts';
import { createExchange, type Exchange } from './exchange.ts';
import { enterPlace, getPlace, type PlaceDeps } from './place.ts';
import { assistantScopes } from './scopes.ts';
import * as store from './store.ts';

export type OauthDeps = PlaceDeps & {
  clock: Clock;
  secrets: Secrets;
  fetcher: Pick<Fetcher, 'fetch' | 'check'>;
};

export type OauthService = Authorization &
  Exchange & {
    /** Whether users of this app sign assistants in here. */
    isOn(scope: Scope): Promise<boolean>;
    disconnectAll(db: Db, appId: string): Promise<void>;
    /** The metadata of the authorization server (RFC 8414). */
    describe(key: string): Promise<Record<string, unknown>>;
    /** Registers a client (RFC 7591), and returns what it is registered with. */
    register(key: string, address: string, metadata: Record<string, unknown>): Promise<Record<string, unknown>>;
    list(caller: Caller, page: PageRequest, user: string | undefined): Promise<[store.GrantRow[], number]>;
    get(caller: Caller, id: string): Promise<store.GrantRow>;
    remove(caller: Caller, id: string): Promise<void>;
  };

export function createOauthService(deps: OauthDeps): OauthService {
  const { db, clock, credentials, baseUrl } = deps;
  const clients = new Clients(deps);

  return {
    ...createAuthorization({ ...deps, clients }),
    ...createExchange(deps),

    isOn: async ({ appId }: Scope) => deps.mcpOauth && (await store.findSwitch(db, appId)),

    disconnectAll: store.deleteGrantsOfApp,

    async describe(key) {
      await getPlace(deps, key);
      const issuer = mcpIssuer(baseUrl(), key);
      return {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        registration_endpoint: `${issuer}/register`,
        revocation_endpoint: `${issuer}/revoke`,
        scopes_supported: assistantScopes,
        response_types_supported: ['code'],
        response_modes_supported: ['query'],
        grant_types_supported: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_methods_supported: ['none'],
        revocation_endpoint_auth_methods_supported: ['none'],
        code_challenge_methods_supported: ['S256'],
        authorization_response_iss_parameter_supported: true,
        client_id_metadata_document_supported: true,
      };
    },

    async register(key, address, metadata) {
      const { appId } = await enterPlace(deps, 'register', key, address);
      const { id, client } = clients.register(appId, metadata);
      return {
        client_id: id,
        client_id_issued_at: Math.floor(clock.now().getTime() / 1_000),
        client_name: client.name,
        ...defined({ client_uri: client.url }),
        redirect_uris: [...client.redirectUris],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      };
    },

    list(caller, page, user) {
      const userId = fieldId('user', 'user', user);
      return store.listGrants(db, caller, page, clock.now(), userId);
    },

    get: async (caller, id) => found(await store.findGrant(db, caller, pathId('assistant', id), clock.now())),

    async remove(caller, id) {
      const row = found(await store.findGrant(db, caller, pathId('assistant', id), clock.now()));
      await store.deleteGrant(db, row.appId, row.id);
      credentials.forget();
    },
  };
}
