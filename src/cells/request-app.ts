import type { IncomingMessage } from 'node:http';
import { formatUuidBytes, parseId } from '../lib/ids.ts';
import { readSessionCookie } from '../tenancy/sessions.ts';

/**
 * What a request says about its app, before anything is verified: the app itself, or a credential of it. Undefined if
 * it names none. The routes of the app's cell check the credential.
 */
export type NamedApp = { app: string } | { credential: string } | undefined;

/** The parts of the installation that read what only it can decrypt. */
export type Readers = { appOfSignIn(cookie: string): string | undefined };

type Request = Pick<IncomingMessage, 'url' | 'headers'>;

/** All other paths belong to no app. */
const apiPaths =
  /^\/(?:api\/v1\/|protected\/api\/v1\/|v1\/|mcp(?:[/?]|$)|oauth\/|\.well-known\/|console\/(?:session|oidc\/))/;

/** Whether a request may belong to an app. */
export function mayNameApp(url: string): boolean {
  return apiPaths.test(plain(url));
}

/** The target as the router reads it: without an origin, and with ordinary characters unescaped in its path. */
function plain(url: string): string {
  if (url.startsWith('/') && !url.includes('%')) return url;
  const target = url.replace(/^[a-z][\w+.-]*:\/\/[^/?#]*/i, '');
  const end = target.indexOf('?');
  const path = end < 0 ? target : target.slice(0, end);
  const unescaped = path.replace(/%([0-9a-f]{2})/gi, (escaped, code: string) => {
    const character = String.fromCharCode(Number.parseInt(code, 16));
    return /[\w.~-]/.test(character) ? character : escaped;
  });
  return end < 0 ? unescaped : unescaped + target.slice(end);
}

/** Reads the app of a request in the same order in which the routes read its credentials. */
export function nameApp(request: Request, readers: Readers): NamedApp {
  const url = plain(request.url ?? '/');
  return nameByPath(url, request, readers) ?? nameByHeaders(request) ?? nameByKeyInPath(url);
}

/** Paths that are credentials themselves, or name the app of a developer. */
function nameByPath(url: string, { headers }: Request, readers: Readers): NamedApp {
  const [path = '', query = ''] = url.split('?', 2);
  if (path.startsWith(developerApps)) return named(parseApp(decode(path.slice(developerApps.length).split('/', 1)[0])));
  if (path.startsWith(files)) return nameByFile(path.slice(files.length), query);
  if (path.startsWith(inbound)) return named(appInBytes(decode(path.slice(inbound.length)).replace(/^whs_/, '')));
  if (path.startsWith(links)) return named(appInBytes(decode(path.slice(links.length))));
  const issuer = /^(?:\/\.well-known\/oauth-authorization-server)?\/oauth\/([^/?]+)/.exec(path)?.[1];
  if (issuer !== undefined) return credential(decode(issuer));
  if (path === '/console/oidc/issuers') return credential(new URLSearchParams(query).get('publishable_key'));
  if (path === '/console/oidc/callback') {
    const cookie = /(?:^|;)\s*quarry_sign_in=([^;\s]*)/.exec(headers.cookie ?? '')?.[1];
    return cookie === undefined ? undefined : named(readers.appOfSignIn(cookie));
  }
  return undefined;
}

const developerApps = '/protected/api/v1/developer/apps/';
const files = '/api/v1/files/';
const inbound = '/api/v1/inbound/';
const links = '/api/v1/approval_links/';

/** Signed URLs, permanent URLs and upload links. Other paths of files have a credential in their headers. */
function nameByFile(rest: string, query: string): NamedApp {
  const what = rest === 'uploads' ? rest : /^[^/]+\/(content|picture|avatar|org_logo|share)$/.exec(rest)?.[1];
  if (what === undefined || query === '') return undefined;
  const parameters = new URLSearchParams(query);
  const token = parameters.get('token');
  if (what === 'uploads') return token === null ? undefined : named(appInUpload(token));
  const signed = what === 'content' || what === 'picture' ? parameters.get('signature') : token;
  return signed === null ? undefined : named(appInBytes(signed));
}

function nameByHeaders({ headers }: Request): NamedApp {
  const key = headers['x-api-key'] ?? headers['x-archastro-api-key'];
  if (typeof key === 'string') return credential(key);
  if (headers.authorization !== undefined) return nameByBearer(headers.authorization, headers['x-app']);
  const session = headers.cookie === undefined ? undefined : readSessionCookie(headers.cookie);
  if (session === undefined) return undefined;
  const app = /^csu_([0-9A-Za-z]{22})_/.exec(session)?.[1];
  return app === undefined ? nameByAppHeader(headers['x-app']) : named(parseApp(`dap_${app}`));
}

function nameByBearer(authorization: string, app: string | string[] | undefined): NamedApp {
  const token = /^Bearer +(\S+)$/i.exec(authorization.trim())?.[1] ?? '';
  if (token.startsWith('dvt_')) return nameByAppHeader(app);
  // The claim of a run is the credential of a function.
  if (token.startsWith('rct_')) return named(appInBytes(token.slice('rct_'.length)));
  return /^(?:sat|sk|pk)_/.test(token) ? credential(token) : named(appInJwt(token));
}

function nameByAppHeader(app: string | string[] | undefined): NamedApp {
  return typeof app === 'string' ? named(parseApp(app)) : undefined;
}

/** The publishable key in the path of the MCP endpoint and of its metadata. */
function nameByKeyInPath(url: string): NamedApp {
  const key = /^(?:\/\.well-known\/oauth-protected-resource)?\/mcp\/([^/?]+)/.exec(url)?.[1];
  return key === undefined ? undefined : credential(decode(key));
}

function named(app: string | undefined): NamedApp {
  return app === undefined ? undefined : { app };
}

const credentialPattern = /^(?:[sp]k|sat)_[\w-]{8,200}$/;

function credential(text: string | null): NamedApp {
  return text !== null && credentialPattern.test(text) ? { credential: text } : undefined;
}

function parseApp(text: string): string | undefined {
  return parseId('app', text);
}

const appBytes = 16;

/** The app at the beginning of a token in base64url. */
function appInBytes(token: string): string | undefined {
  const bytes = Buffer.from(token, 'base64url');
  return bytes.length <= appBytes ? undefined : formatUuidBytes(bytes.subarray(0, appBytes));
}

function appInUpload(token: string): string | undefined {
  return memberOf(token.split('.', 1)[0], 'appId', (app) => (uuid.test(app) ? app : undefined));
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function appInJwt(token: string): string | undefined {
  return memberOf(token.split('.', 2)[1], 'app', parseApp);
}

const claimsCharactersMax = 16_384;

function memberOf(text: string | undefined, member: string, read: (value: string) => string | undefined) {
  if (text === undefined || text.length > claimsCharactersMax) return undefined;
  try {
    const value = (JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, unknown> | null)?.[member];
    return typeof value === 'string' ? read(value) : undefined;
  } catch {
    return undefined;
  }
}

function decode(text = ''): string {
  try {
    return text.includes('%') ? decodeURIComponent(text) : text;
  } catch {
    return text;
  }
}
