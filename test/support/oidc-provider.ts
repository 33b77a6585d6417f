import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

type TestProvider = {
  issuer: string;
  /** Signs a user in at an authorization URL, as a browser would, and returns where the provider redirects to. */
  signIn(url: string, subject: string): Promise<string>;
  close(): Promise<void>;
};

type Provider = {
  callback(): (request: object, response: object) => void;
  interactionDetails(
    request: object,
    response: object,
  ): Promise<{
    prompt: { name: string };
    params: Record<string, unknown>;
    session?: { accountId: string };
    grantId?: string;
  }>;
  interactionFinished(request: object, response: object, result: object, options: object): Promise<void>;
  Grant: new (values: object) => Grant;
};
type Grant = {
  addOIDCScope(scope: string): void;
  addResourceScope(resource: string, scope: string): void;
  save(): Promise<string>;
};

/**
 * An OpenID provider with two clients: `console`, which has a secret, and `mcp`, a public one. It signs everyone in.
 */
export async function startProvider({ redirectUris }: { redirectUris: string[] }): Promise<TestProvider> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let subject = 'ada';
  const name = 'oidc-provider';
  const { default: ProviderClass } = (await import(name)) as {
    default: new (issuer: string, options: object) => Provider;
  };
  const base = {
    redirect_uris: redirectUris,
    response_types: ['code'],
    grant_types: ['authorization_code'],
    application_type: 'native',
  };
  const provider = new ProviderClass(issuer, {
    clients: [
      {
        ...base,
        client_id: 'console',
        client_secret: 'console-secret',
        application_type: 'web',
        redirect_uris: [redirectUris[0]],
      },
      { ...base, client_id: 'mcp', token_endpoint_auth_method: 'none', redirect_uris: [redirectUris[1]] },
    ],
    // A test may make much else between the code and its exchange.
    ttl: { AuthorizationCode: 600 },
    pkce: { required: () => true },
    findAccount: (_context: object, id: string) => ({ accountId: id, claims: () => ({ sub: id, name: id }) }),
    features: {
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        getResourceServerInfo: (_context: object, resource: string) => ({
          scope: 'openid',
          audience: resource,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
        useGrantedResource: () => true,
      },
    },
    interactions: { url: (_context: object, { uid }: { uid: string }) => `/interaction/${uid}` },
  });
  const handle = provider.callback();
  server.on('request', (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return handle(request, response);
    void finish(provider, request, response, subject).catch((error: unknown) => {
      response.writeHead(500);
      response.end(String(error));
    });
  });
  return {
    issuer,
    async signIn(url, as) {
      subject = as;
      const cookies = new Map<string, string>();
      let next = url;
      while (next.startsWith(issuer)) {
        const cookie = [...cookies].map(([key, value]) => `${key}=${value}`).join('; ');
        const answer = await fetch(next, { redirect: 'manual', headers: { cookie } });
        for (const line of answer.headers.getSetCookie()) {
          const [, key = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
          cookies.set(key, value);
        }
        const location = answer.headers.get('location');
        if (location === null) throw new Error(`${next}: ${answer.status} ${await answer.text()}`);
        next = new URL(location, issuer).href;
      }
      return next;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function finish(provider: Provider, request: object, response: object, subject: string): Promise<void> {
  const { prompt, params, session } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login')
    return provider.interactionFinished(
      request,
      response,
      { login: { accountId: subject } },
      { mergeWithLastSubmission: false },
    );
  const grant = new provider.Grant({ accountId: session?.accountId, clientId: params.client_id });
  grant.addOIDCScope('openid email profile');
  if (typeof params.resource === 'string') grant.addResourceScope(params.resource, 'openid');
  await provider.interactionFinished(
    request,
    response,
    { consent: { grantId: await grant.save() } },
    { mergeWithLastSubmission: true },
  );
}
