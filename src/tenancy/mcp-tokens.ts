import { AppError } from '../lib/errors.ts';
import { formatId, parseId } from '../lib/ids.ts';
import { lazyPackage } from '../lib/lazy-package.ts';
import { expiredToken } from './access-tokens.ts';
import { readBase64url } from './base64url.ts';
import type { KeyScope } from './key-scopes.ts';
import type { Secrets } from './secrets.ts';

export const mcpTokenSeconds = 3600;
const jose = lazyPackage<typeof import('jose')>('jose');
const prefix = 'mat_';

/** The grant of a token, and the part of its scopes that the token has. */
type McpClaims = { appId: string; grantId: string; scopes: readonly KeyScope[] };

/** The URL of an app's MCP endpoint, which is also the audience of tokens for it (RFC 8707). */
export function mcpResource(baseUrl: string, publishableKey: string): string {
  return `${baseUrl}/mcp/${publishableKey}`;
}

/** The issuer of this server's own tokens for that endpoint. */
export function mcpIssuer(baseUrl: string, publishableKey: string): string {
  return `${baseUrl}/oauth/${publishableKey}`;
}

export function isMcpToken(token: string): boolean {
  return token.startsWith(prefix);
}

/** A token of an assistant: `mat_` and a JWT (HS256) with a key of its own, so that no other check accepts it. */
export async function mintMcpToken(secrets: Secrets, claims: McpClaims, now: Date): Promise<string> {
  const [key] = secrets.keys('mcp-token');
  if (!key) throw new Error('No root secret is set.');
  const issuedAt = Math.floor(now.getTime() / 1000);
  const token = await new (jose().SignJWT)({ app: formatId('app', claims.appId), scp: [...claims.scopes] })
    .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt' })
    .setSubject(formatId('assistant', claims.grantId))
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + mcpTokenSeconds)
    .sign(key);
  return `${prefix}${token}`;
}

/** Verifies a token and returns its claims. 401 `expired_token` when it has expired, otherwise `invalid_credentials`. */
export async function readMcpToken(
  secrets: Secrets,
  token: string,
  now: Date,
): Promise<McpClaims & { expiresAtMs: number }> {
  const text = token.slice(prefix.length);
  const isCanonical = text.split('.').every((part) => readBase64url(part) !== undefined);
  for (const key of isCanonical ? secrets.keys('mcp-token') : []) {
    try {
      const { payload } = await jose().jwtVerify(text, key, { algorithms: ['HS256'], typ: 'at+jwt', currentDate: now });
      const appId = parseId('app', String(payload.app));
      const grantId = parseId('assistant', payload.sub ?? '');
      if (appId && grantId)
        return { appId, grantId, scopes: payload.scp as KeyScope[], expiresAtMs: (payload.exp ?? 0) * 1000 };
    } catch (error) {
      if (error instanceof jose().errors.JWTExpired) throw expiredToken();
      // Try the previous root secret.
    }
  }
  throw new AppError('invalid_credentials', 'The token is not valid.');
}
