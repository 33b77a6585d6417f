import { bodyBudgets } from '../http/body/budgets.ts';
import { operators } from '../http/route/access.ts';
import { registerResource } from '../http/route/resource.ts';
import type { Api } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import type { Scope } from '../tenancy/caller.ts';
import type { Credentials } from '../tenancy/credentials.ts';
import { assistantAreas } from '../tenancy/key-scopes.ts';
import { mcpIssuer, mcpResource } from '../tenancy/mcp-tokens.ts';
import { presentIssuer } from './present.ts';
import { issuerCreateSchema, issuerSchema, issuerUpdateSchema } from './schema.ts';
import type { IdentityService } from './service.ts';

const tag = 'Sign-in';

type IdentityRouteDeps = {
  identity: IdentityService;
  credentials: Credentials;
  baseUrl: () => string;
  /** Whether this server is an authorization server for the MCP endpoints of the app. */
  signsInAssistants(scope: Scope): Promise<boolean>;
};

export function registerIdentityRoutes(
  api: Api,
  { identity, credentials, baseUrl, signsInAssistants }: IdentityRouteDeps,
): void {
  registerResource(api, {
    path: '/identity_issuers',
    param: 'identity_issuer',
    ids: ['IdentityIssuer', 'IdentityIssuers'],
    words: ['an issuer of external identities', 'issuers of external identities'],
    tag,
    about: {
      create:
        'The app then accepts tokens of this OpenID Connect issuer along with its publishable key. `claims` may name only existing organisations and teams (422). 422 if the app already has the issuer.',
      list: 'Newest first, without client secrets.',
      get: 'Without the client secret.',
      update:
        'Omitted members keep their values; `claims` and `console` are replaced as a whole. The issuer itself cannot change.',
      remove: 'Its tokens stop working. Its users stay, and are recognised if the issuer is created again.',
    },
    schema: issuerSchema,
    present: presentIssuer,
    create: { callers: operators, body: issuerCreateSchema, budget: bodyBudgets.plain, run: identity.create },
    list: { callers: operators, run: identity.list },
    get: { callers: operators, run: identity.get },
    update: { callers: operators, body: issuerUpdateSchema, budget: bodyBudgets.plain, run: identity.update },
    remove: { callers: operators, run: identity.remove },
  });

  api.public({
    method: 'GET',
    path: '/.well-known/oauth-protected-resource/mcp/:key',
    operationId: 'getMcpResourceMetadata',
    tag,
    summary: 'Get the OAuth metadata of an app’s MCP endpoint',
    description:
      'RFC 9728: the issuers whose tokens `/mcp/{key}` accepts; first this server itself, with `QUARRY_MCP_OAUTH` and unless the app has switched it off. The key is a publishable one.',
    params: Type.Object({ key: Type.String() }),
    responses: {
      200: Type.Object({
        resource: Type.String(),
        resource_name: Type.String(),
        authorization_servers: Type.Array(Type.String()),
        scopes_supported: Type.Array(Type.String()),
        bearer_methods_supported: Type.Array(Type.String()),
      }),
    },
    handler: async ({ params }) => {
      const scope = await credentials.getPublishable(params.key);
      const issuers = await identity.listOf(scope);
      const isOwn = await signsInAssistants(scope);
      return {
        resource: mcpResource(baseUrl(), params.key),
        resource_name: 'Quarry',
        authorization_servers: [
          ...(isOwn ? [mcpIssuer(baseUrl(), params.key)] : []),
          ...issuers.map(({ issuer }) => issuer),
        ],
        scopes_supported: [...(isOwn ? assistantAreas : []), ...(issuers.length > 0 || !isOwn ? ['openid'] : [])],
        bearer_methods_supported: ['header'],
      };
    },
  });
}
